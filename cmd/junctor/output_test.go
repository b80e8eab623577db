package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// on is a command line on a terminal of this width; 0 means in a pipe.
func on(width int, env ...string) (*cli, *bytes.Buffer) {
	var out bytes.Buffer
	return &cli{world: &world{
		out: &out, err: &out,
		lookup:   func(name string) (string, bool) { return "1", len(env) > 0 && env[0] == name },
		terminal: func(io.Writer) (int, bool) { return width, width > 0 },
	}}, &out
}

func TestTable(t *testing.T) {
	const name, does = "files:read_multiple_files", "Read the contents of many files at the same time"
	for label, tt := range map[string]struct {
		width int
		env   []string
		want  string
	}{
		"a pipe":           {0, nil, name + "  paths*: string[]  " + does},
		"wide":             {200, []string{"NO_COLOR"}, name + "  paths*: string[]  " + does},
		"narrow":           {70, []string{"NO_COLOR"}, name + "  paths*: string[]  Read the contents of man…"},
		"the name is last": {40, []string{"NO_COLOR"}, "files:read_multiple…  paths*:…  Read th…"},
		"in colour":        {200, nil, "\x1b[36m" + name + "\x1b[0m  paths*: string[]  " + does},
	} {
		t.Run(label, func(t *testing.T) {
			c, out := on(tt.width, tt.env...)
			tb := newTable("TOOL", "PARAMETERS", "DESCRIPTION")
			tb.row(cell{name, cyan}, "paths*: string[]", does)
			c.printTable(tb)
			if line := strings.Split(out.String(), "\n")[1]; line != tt.want {
				t.Errorf("got  %q\nwant %q", line, tt.want)
			}
		})
	}
}

func TestServerTextCannotControlTerminal(t *testing.T) {
	const hostile = "a\tb\r\x1b[2Jc\u202ed\u009b31m\u200b\nnext"
	c, out := on(80)
	if got, want := c.text(out, hostile), "a\tb [2Jcd31m\nnext"; got != want {
		t.Errorf("on a terminal %q, want %q", got, want)
	}
	c, out = on(0)
	if got := c.text(out, hostile); got != hostile {
		t.Errorf("in a pipe %q", got)
	}
}
