package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/attach"
	"junctor/internal/config"
	"junctor/internal/terminal"
)

// A gateway that was started without a configuration is the one that commands
// talk to after the first server was added, which made the file.
func TestSocketStaysWhenTheFirstFileIsWritten(t *testing.T) {
	dir := t.TempDir()
	c := &cli{world: &world{
		lookup:  func(string) (string, bool) { return "", false },
		workDir: dir,
		home:    dir,
		userDir: filepath.Join(dir, "config"),
		dataDir: filepath.Join(dir, "data"),
	}}
	socket := func() string {
		cfg, err := c.load(c.options(hereToo))
		if err != nil {
			t.Fatal(err)
		}
		return c.socket(cfg)
	}
	before := socket()
	file := filepath.Join(c.userDir, "junctor", "junctor.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := socket(); before == "" || after != before {
		t.Errorf("the socket is %q before and %q after", before, after)
	}
}

// Processes with other values of the variables that the configuration uses have
// other sockets, and with the same values the same one.
func TestSocketFollowsTheVariablesOfTheConfiguration(t *testing.T) {
	const file = `{"mcpServers":{"gh":{"command":"gh","env":{"T":"${GH_TOKEN}","U":"${GH_USER:-anonymous}"}}}}`
	type env map[string]string
	for name, tt := range map[string]struct {
		file, dotenv string
		a, b         env
		same         bool
	}{
		"other token":            {file: file, a: env{"GH_TOKEN": "one"}, b: env{"GH_TOKEN": "two"}},
		"same token":             {file: file, a: env{"GH_TOKEN": "one"}, b: env{"GH_TOKEN": "one", "OTHER": "x"}, same: true},
		"no token":               {file: file, a: env{"GH_TOKEN": "one"}, b: env{}},
		"other than the default": {file: file, a: env{"GH_TOKEN": "one"}, b: env{"GH_TOKEN": "one", "GH_USER": "me"}},
		"token of .env":          {file: file, dotenv: "GH_TOKEN=one", a: env{"GH_TOKEN": "one"}, b: env{}, same: true},
		"token over .env":        {file: file, dotenv: "GH_TOKEN=one", a: env{"GH_TOKEN": "two"}, b: env{}},
		"how to run":             {file: file, a: env{"GH_TOKEN": "one", "PORT": "1", "LOG_LEVEL": "debug"}, b: env{"GH_TOKEN": "one"}, same: true},
		"server of a variable":   {a: env{"MCP_SERVER_DIST": "/a"}, b: env{"MCP_SERVER_DIST": "/b"}},
		"its folder":             {a: env{"MCP_SERVER_DIST": "/a", "MCP_BASE_PATH": "/x"}, b: env{"MCP_SERVER_DIST": "/a"}},
		"its folder alone":       {a: env{"MCP_BASE_PATH": "/x"}, b: env{}, same: true},
		"values that swap names": {file: `{"mcpServers":{"gh":{"command":"gh","args":["${A}","${B}"]}}}`, a: env{"A": "1", "B": "2"}, b: env{"A": "2", "B": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"junctor.json": tt.file, ".env": tt.dotenv} {
				path := filepath.Join(dir, "config", "junctor", file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if text != "" {
					if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			socket := func(e env) string {
				c := &cli{world: &world{
					Terminal: terminal.Terminal{Err: io.Discard},
					lookup:   func(name string) (string, bool) { v, ok := e[name]; return v, ok },
					workDir:  dir,
					home:     dir,
					userDir:  filepath.Join(dir, "config"),
					dataDir:  "/data",
				}}
				cfg, err := c.load(c.options(hereToo))
				if err != nil {
					t.Fatal(err)
				}
				return c.socket(cfg)
			}
			a, b := socket(tt.a), socket(tt.b)
			if a == "" || (a == b) != tt.same {
				t.Errorf("the sockets are %s and %s", a, b)
			}
		})
	}
}

// A process in whose environment a variable has no value, as agents start them,
// uses the only gateway of the file; one with another value never does.
func TestFindGatewayWithUnsetVariable(t *testing.T) {
	dir, err := os.MkdirTemp("", "j") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "junctor.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	process := func(env ...string) (*cli, *config.Config) {
		c := &cli{world: &world{
			Terminal: terminal.Terminal{Err: io.Discard},
			lookup: func(name string) (string, bool) {
				for _, pair := range env {
					if n, v, _ := strings.Cut(pair, "="); n == name {
						return v, true
					}
				}
				return "", false
			},
			workDir: dir,
			home:    dir,
			userDir: dir,
			dataDir: dir,
		}}
		c.flags.config = file
		cfg, err := c.load(c.options(hereToo))
		if err != nil {
			t.Fatal(err)
		}
		return c, cfg
	}
	serve := func(env ...string) string {
		c, cfg := process(env...)
		ln, err := attach.Listen(c.socket(cfg))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		return c.socket(cfg)
	}
	expect := func(want string, env ...string) {
		t.Helper()
		c, cfg := process(env...)
		if got := c.find(t.Context(), cfg); got != want {
			t.Errorf("with %q: %q, want %q", env, got, want)
		}
	}
	write(`{"mcpServers":{"gh":{"command":"gh","env":{"T":"${TOKEN}"}}}}`)
	one := serve("TOKEN=1")
	expect(one, "TOKEN=1")
	expect(one)
	expect("", "TOKEN=2")
	two := serve("TOKEN=2")
	expect(two, "TOKEN=2")
	expect("") // which of them is anybody's guess

	write(`{"mcpServers":{"gh":{"command":"gh","env":{"T":"${TOKEN}","U":"${USER_ID}"}}}}`)
	expect("", "USER_ID=me")
}

// A file that has become invalid does not keep commands from the gateway that
// runs with what it was before.
func TestFindGatewayOfInvalidFile(t *testing.T) {
	dir, err := os.MkdirTemp("", "j") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "junctor.json")
	var stderr strings.Builder
	c := &cli{world: &world{
		Terminal: terminal.Terminal{Err: &stderr},
		lookup:   func(name string) (string, bool) { return "secret", name == "TOKEN" },
		workDir:  dir,
		home:     dir,
		userDir:  dir,
		dataDir:  dir,
	}}
	c.flags.config = file
	write := func(text string) (*config.Config, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return c.load(c.options(hereToo))
	}
	cfg, err := write(`{"mcpServers":{"gh":{"command":"gh","env":{"T":"${TOKEN}"}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	path := c.socket(cfg)
	ln, err := attach.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = write(`{"mcpServers":`)
	if got := c.findDespite(t.Context(), c.options(hereToo), err); err == nil || got != path {
		t.Errorf("%v: found %q, want %q", err, got, path)
	}
	if note := stderr.String(); !strings.Contains(note, "junctor.json") || !strings.Contains(note, "running gateway") {
		t.Errorf("the note is %q", note)
	}
	c.flags.logLevel = "nonsense" // is no fault of the file
	_, err = write(`{}`)
	if got := c.findDespite(t.Context(), c.options(hereToo), err); err == nil || got != "" {
		t.Errorf("%v: found %q", err, got)
	}
	c.flags.logLevel = ""
	ln.Close()
	_, err = write(`{`)
	if got := c.findDespite(t.Context(), c.options(hereToo), err); err == nil || got != "" {
		t.Errorf("nobody listens: found %q", got)
	}
}
