package launch

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"junctor/internal/attach"
	"junctor/internal/config"
	"junctor/internal/terminal"
)

// process is the environment of a process that looks for a gateway.
type process struct {
	file, dir, userDir, dataDir, logLevel string
	lookup                                func(string) (string, bool)
}

func (p process) options() config.Options {
	o := config.Options{File: p.file, LookupEnv: p.lookup, BaseDir: p.dir, WorkDir: p.dir, UserDir: p.userDir, Home: p.dir}
	if p.logLevel != "" {
		o.Overrides = []config.Override{{Key: "log.level", Value: p.logLevel, Source: "--log-level"}}
	}
	return o
}

func (p process) launcher(stderr io.Writer) *Launcher {
	return &Launcher{Terminal: terminal.Terminal{Err: stderr, Width: func(io.Writer) (int, bool) { return 0, false }}, Lookup: p.lookup, DataDir: p.dataDir}
}

func (p process) load(t *testing.T) (*Launcher, *config.Config) {
	t.Helper()
	cfg, _, err := config.Load(p.options())
	if err != nil {
		t.Fatal(err)
	}
	return p.launcher(io.Discard), cfg
}

func TestChildProcessesDoNotInheritGatewayKeys(t *testing.T) {
	got := withoutOwnKeys([]string{"A=1", "JUNCTOR_SECRET_KEY=x", "JUNCTOR_ADMIN_KEY=y", "JUNCTOR_CONFIG=z", "odd"})
	if !slices.Equal(got, []string{"A=1", "JUNCTOR_CONFIG=z", "odd"}) {
		t.Errorf("programs may inherit %v", got)
	}
}

// Commands find a gateway that was started without a configuration file after
// the file was created by adding the first server.
func TestSocketStaysWhenTheFirstFileIsWritten(t *testing.T) {
	dir := t.TempDir()
	p := process{lookup: func(string) (string, bool) { return "", false }, dir: dir, userDir: filepath.Join(dir, "config"), dataDir: filepath.Join(dir, "data")}
	socket := func() string {
		l, cfg := p.load(t)
		return l.Socket(cfg)
	}
	before := socket()
	file := filepath.Join(p.userDir, "junctor", "junctor.json")
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

// Processes have the same socket only if the variables that the configuration
// uses have the same values.
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
				p := process{lookup: func(name string) (string, bool) { v, ok := e[name]; return v, ok }, dir: dir, userDir: filepath.Join(dir, "config"), dataDir: "/data"}
				l, cfg := p.load(t)
				return l.Socket(cfg)
			}
			a, b := socket(tt.a), socket(tt.b)
			if a == "" || (a == b) != tt.same {
				t.Errorf("the sockets are %s and %s", a, b)
			}
		})
	}
}

// A process in which a variable has no value, for example one started by an
// agent, uses the only gateway of the file. A process with a different value
// never does.
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
	load := func(env ...string) (*Launcher, *config.Config) {
		p := process{file: file, dir: dir, userDir: dir, dataDir: dir, lookup: func(name string) (string, bool) {
			for _, pair := range env {
				if n, v, _ := strings.Cut(pair, "="); n == name {
					return v, true
				}
			}
			return "", false
		}}
		return p.load(t)
	}
	serve := func(env ...string) string {
		l, cfg := load(env...)
		ln, err := attach.Listen(l.Socket(cfg))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		return l.Socket(cfg)
	}
	expect := func(want string, env ...string) {
		t.Helper()
		l, cfg := load(env...)
		if got := l.Find(t.Context(), cfg); got != want {
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
	expect("") // there are several

	write(`{"mcpServers":{"gh":{"command":"gh","env":{"T":"${TOKEN}","U":"${USER_ID}"}}}}`)
	expect("", "USER_ID=me")
}

// Commands find the running gateway of a file that has become invalid since.
func TestFindGatewayOfInvalidFile(t *testing.T) {
	dir, err := os.MkdirTemp("", "j") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "junctor.json")
	var stderr strings.Builder
	p := process{file: file, dir: dir, userDir: dir, dataDir: dir, lookup: func(name string) (string, bool) { return "secret", name == "TOKEN" }}
	l := p.launcher(&stderr)
	write := func(text string) (*config.Config, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, _, err := config.Load(p.options())
		return cfg, err
	}
	cfg, err := write(`{"mcpServers":{"gh":{"command":"gh","env":{"T":"${TOKEN}"}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	path := l.Socket(cfg)
	ln, err := attach.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = write(`{"mcpServers":`)
	if got := l.FindWithInvalidConfig(t.Context(), p.options(), err); err == nil || got != path {
		t.Errorf("%v: found %q, want %q", err, got, path)
	}
	if note := stderr.String(); !strings.Contains(note, "junctor.json") || !strings.Contains(note, "running gateway") {
		t.Errorf("the note is %q", note)
	}
	p.logLevel = "nonsense" // an error that does not concern the file
	_, err = write(`{}`)
	if got := l.FindWithInvalidConfig(t.Context(), p.options(), err); err == nil || got != "" {
		t.Errorf("%v: found %q", err, got)
	}
	p.logLevel = ""
	ln.Close()
	_, err = write(`{`)
	if got := l.FindWithInvalidConfig(t.Context(), p.options(), err); err == nil || got != "" {
		t.Errorf("nobody listens: found %q", got)
	}
}
