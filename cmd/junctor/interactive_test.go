package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"junctor/internal/launch"
	"junctor/internal/script/scripttest"
	"junctor/internal/terminal"
	"junctor/internal/upstream/upstreamtest"
)

// typist runs commands at a terminal, with its own home folder.
type typist struct {
	t   *testing.T
	dir string
}

func newTypist(t *testing.T, files map[string]string) typist {
	t.Helper()
	p := typist{t: t, dir: t.TempDir()}
	for name, text := range files {
		path := filepath.Join(p.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// types runs a command with answer as its input, and returns the exit code and
// the output.
func (p typist) types(answer string, args ...string) (code int, shown string) {
	p.t.Helper()
	var out bytes.Buffer
	w := &environment{
		Launcher: launch.Launcher{
			Terminal: terminal.Terminal{In: strings.NewReader(answer), Out: &out, Err: &out, IsInput: true, Width: func(io.Writer) (int, bool) { return 80, true }},
			Lookup:   func(name string) (string, bool) { return "0", name == "PORT" },
			DataDir:  filepath.Join(p.dir, "data"),
		},
		workDir: filepath.Join(p.dir, "work"),
		home:    p.dir,
		userDir: filepath.Join(p.dir, "config"),
	}
	return run(args, w), out.String()
}

func (p typist) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(name)))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return string(text)
}

const cursorFile = `{"mcpServers": {
	"have": {"command": "h"}, "first": {"command": "a"}, "second": {"command": "b"}, "junctor": {"command": "junctor", "args": ["mcp"]}
}}`

func TestImportPromptSelectsServers(t *testing.T) {
	for answer, want := range map[string]struct {
		code   int
		names  string // of the servers in the file afterwards
		saying string
	}{
		"all\n":         {exitDone, "have first second", "Imported"},
		"2\n":           {exitDone, "have first", "Imported first"}, // the number in the table
		"second, 2\n":   {exitDone, "have first second", "Imported second, first"},
		"none\n":        {exitDone, "have", "STATE"},
		"\n":            {exitDone, "have", "STATE"},
		"1\n":           {exitFailed, "have", `no such server: "have"`},
		"first other\n": {exitFailed, "have", `no such server: "other"`},
		"":              {exitFailed, "have", "no answer"},
	} {
		p := newTypist(t, map[string]string{".cursor/mcp.json": cursorFile, "config/junctor/junctor.json": `{"mcpServers": {"have": {"command": "h"}}}`})
		code, shown := p.types(answer, "import", "cursor")
		if code != want.code || !strings.Contains(shown, want.saying) {
			t.Errorf("%q: exit code %d, shown:\n%s", answer, code, shown)
		}
		file := p.read("config/junctor/junctor.json")
		for _, name := range []string{"have", "first", "second", "junctor"} {
			if got, want := strings.Contains(file, `"`+name+`"`), strings.Contains(want.names, name); got != want {
				t.Errorf("%q: %s is in the file: %v, want %v\n%s", answer, name, got, want, file)
			}
		}
		for line := range strings.Lines(shown) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > 200 {
				t.Errorf("a line of the table does not fit: %q", line)
			}
		}
	}
}

func TestConnectPromptsToMoveServers(t *testing.T) {
	for answer, moved := range map[string]bool{"y\n": true, "n\n": false, "\n": false} {
		p := newTypist(t, map[string]string{".cursor/mcp.json": `{"mcpServers": {"notes": {"command": "n"}}}`})
		code, shown := p.types(answer, "connect", "cursor")
		if code != exitDone || !strings.Contains(shown, "Cursor also has its own servers: notes. Move them") {
			t.Errorf("%q: exit code %d, shown:\n%s", answer, code, shown)
		}
		if got := !strings.Contains(p.read(".cursor/mcp.json"), "notes"); got != moved {
			t.Errorf("%q: moved out: %v", answer, got)
		}
		if got := strings.Contains(p.read("config/junctor/junctor.json"), "notes"); got != moved {
			t.Errorf("%q: moved in: %v", answer, got)
		}
	}
	p := newTypist(t, map[string]string{".cursor/mcp.json": `{"mcpServers": {"notes": {"command": "n"}}}`})
	if code, shown := p.types("", "connect", "cursor"); code != exitFailed || strings.Contains(p.read(".cursor/mcp.json"), "junctor") {
		t.Errorf("without an answer: %d, %s", code, shown)
	}
}

func TestUntrustedConfigurationPrompts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the folder's file names a program of Unix")
	}
	files := map[string]string{"work/junctor.json": `{"mcpServers": {"here": {"command": "no-such-program", "startTimeoutMs": 100}}}`}
	p := newTypist(t, files)
	code, shown := p.types("n\n", "servers", "list")
	if code != exitFailed || !strings.Contains(shown, "would start or connect to") || !strings.Contains(shown, "no-such-program") {
		t.Errorf("refused: exit code %d, shown:\n%s", code, shown)
	}
	if code, shown := p.types("y\n", "servers", "list"); code != exitDone || !strings.Contains(shown, "here") {
		t.Errorf("agreed: exit code %d, shown:\n%s", code, shown)
	}
	if code, shown := p.types("", "servers", "list"); code != exitDone || strings.Contains(shown, "would start") {
		t.Errorf("asked again: exit code %d, shown:\n%s", code, shown)
	}
}

// TestDoctorShowsColorAndProgressOnTerminal: on a terminal, doctor prints
// colours and progress.
func TestDoctorShowsColorAndProgressOnTerminal(t *testing.T) {
	p := newTypist(t, map[string]string{".cursor/mcp.json": `{"mcpServers": {"notes": {"command": "n"}}}`})
	code, shown := p.types("", "doctor")
	for _, want := range []string{"\x1b[32m✓\x1b[0m", "\r\x1b[Kstore …", "has 1 server of its own", "No problems found"} {
		if code != exitDone || !strings.Contains(shown, want) {
			t.Errorf("exit code %d, %q is not shown:\n%s", code, want, shown)
		}
	}
}

// TestToolTextCannotControlTerminal: names and texts of tools come from
// servers, so their control sequences must not reach the terminal.
func TestToolTextCannotControlTerminal(t *testing.T) {
	scripttest.NeedEngine(t)
	const name = "paint\x1b]0;owned\a"
	definition, err := json.Marshal(map[string]any{
		"name": name, "description": "Paints " + name,
		"inputSchema": map[string]any{"type": "object", "properties": map[string]any{name: map[string]any{}}, "required": []string{name}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := upstreamtest.Listen(t, upstreamtest.Script{Tools: []json.RawMessage{definition}})
	p := newTypist(t, map[string]string{"config/junctor/junctor.json": `{"mcpServers":{"test":{"url":"` + server.URL + `"}},
		"toolRules":[{"pattern":["test:*"],"approval":"ask"}],"profiles":{"all":{"servers":["test"]}}}`})
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"test:paint", []string{"tools", "list"}},
		{"test:paint", []string{"tools", "show", "test:" + name}},
		{"score", []string{"tools", "search", "--explain", "paint"}},
		{"Run test:paint", []string{"tools", "call", "test:" + name, name + "=1"}},
		{"test:paint", []string{"profiles", "show", "all"}},
		{"paint", []string{"run", "-e", `console.log("paint\u001b]0;owned\u0007"); return "paint\u001b]0;owned\u0007"`}},
		{"paint", []string{"run", "-e", `return {paint: "\u001b]0;owned\u0007"}`}},
	} {
		if _, shown := p.types("n\n", tt.args...); !strings.Contains(shown, tt.want) || strings.Contains(shown, "\x1b]") || strings.Contains(shown, "\a") {
			t.Errorf("%q shows %q", tt.args, shown)
		}
	}
}
