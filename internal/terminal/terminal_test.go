package terminal

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// on returns a terminal of this width; 0 means a pipe.
func on(width int, env ...string) (*Terminal, *bytes.Buffer) {
	var out bytes.Buffer
	return &Terminal{
		Out: &out, Err: &out,
		NoColour: len(env) > 0,
		Width:    func(io.Writer) (int, bool) { return width, width > 0 },
	}, &out
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
			tb := NewTable("TOOL", "PARAMETERS", "DESCRIPTION")
			tb.Cuts = true
			tb.Row(Cell{name, Cyan}, "paths*: string[]", does)
			c.PrintTable(tb)
			if line := strings.Split(out.String(), "\n")[1]; line != tt.want {
				t.Errorf("got  %q\nwant %q", line, tt.want)
			}
		})
	}
}

func TestTableWraps(t *testing.T) {
	c, out := on(80, "NO_COLOR")
	tb := NewTable("SERVER", "STATE", "TOOLS", "TRANSPORT", "ABOUT")
	tb.Row("files", Cell{"disconnected", Red}, 0, "stdio", "its program no-such-program-anywhere cannot be started: the command was not found in /usr/local/bin:/usr/bin")
	tb.Row("ok", "connected", 12, "http", "")
	c.PrintTable(tb)
	const want = `SERVER  STATE         TOOLS  TRANSPORT  ABOUT
files   disconnected  0      stdio      its program no-such-program-anywhere
                                        cannot be started: the command was not
                                        found in /usr/local/bin:/usr/bin
ok      connected     12     http
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	for width, want := range map[int][]string{
		5:  {"ab cd", "efghi", "jklmn", "o p"},
		40: {"ab cd efghijklmno p"},
		1:  {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"},
	} {
		if got := wrap("ab  cd efghijklmno p", width); !slices.Equal(got, want) {
			t.Errorf("wrap at %d = %q, want %q", width, got, want)
		}
	}
}

func TestServerTextCannotControlTerminal(t *testing.T) {
	const hostile = "a\tb\r\x1b[2Jc\u202ed\u009b31m\u200b\nnext"
	c, out := on(80)
	if got, want := c.Text(out, hostile), "a\tb [2Jcd31m\nnext"; got != want {
		t.Errorf("on a terminal %q, want %q", got, want)
	}
	c, out = on(0)
	if got := c.Text(out, hostile); got != hostile {
		t.Errorf("in a pipe %q", got)
	}
}

func TestStreamedReplyKeepsSpaces(t *testing.T) {
	got := ""
	for _, piece := range []string{"did ", "not", " ", "allow\r\n", "\ta\x1b[31m", " ", "\u202eb"} {
		got += Printable(piece)
	}
	if want := "did not allow\n\ta[31m b"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for want, at := range map[string]time.Time{
		"never": {}, "now": now.Add(time.Second), "5s ago": now.Add(-5 * time.Second), "3m ago": now.Add(-3*time.Minute - time.Second),
		"47h ago": now.Add(-47 * time.Hour), "2d ago": now.Add(-50 * time.Hour),
	} {
		if got := Ago(at, now); got != want {
			t.Errorf("ago(%s) = %q, want %q", at, got, want)
		}
	}
}
