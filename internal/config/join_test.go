package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"junctor/internal/telemetry"
)

// seedOptions is the example of the agentify seed.
const seedOptions = `{
  "logLevel": "debug",
  "OPENAI_API_KEY": "sk-passed",
  "DEBUG_PORT": 3001,
  "backends": [
    {"id": "filesystem", "type": "stdio", "command": "npx",
     "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp/a", "/tmp/b"]},
    {"id": "mcpBrowserbase", "type": "stdio", "command": "npx",
     "args": ["-y", "@smithery/cli@latest", "run", "@browserbasehq/mcp-browserbase", "--key", "bb_api_x"]}
  ]
}`

func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func TestClientOptionsMergeWithFile(t *testing.T) {
	for name, tt := range map[string]struct {
		vars map[string]string
		file string
		key  string
	}{
		"alone":              {nil, `{}`, "sk-passed"},
		"environment wins":   {map[string]string{"OPENAI_API_KEY": "sk-env"}, `{}`, "sk-env"},
		"nothing hides it":   {map[string]string{"OPENAI_API_KEY": ""}, `{}`, "sk-passed"},
		"the file's key too": {nil, `{"OPENAI_API_KEY":"sk-file"}`, "sk-file"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{LookupEnv: env(tt.vars)}
			base, _, err := Parse("junctor.json", []byte(tt.file), o)
			if err != nil {
				t.Fatal(err)
			}
			options, _, err := ParseOptions([]byte(seedOptions), o)
			if err != nil {
				t.Fatal(err)
			}
			joined := base.Join(options)
			if got, _ := joined.Lookup("OPENAI_API_KEY"); got != tt.key {
				t.Errorf("key = %q, want %q", got, tt.key)
			}
			if joined.DebugPort != 3001 || joined.Log.Level != telemetry.LevelDebug || len(joined.Servers) != 2 {
				t.Errorf("port %d, level %s, %d servers", joined.DebugPort, joined.Log.Level, len(joined.Servers))
			}
			if len(base.Servers) != 0 || base.DebugPort != 0 {
				t.Error("the base has changed")
			}
		})
	}
}

func TestJoinReplacesNamedEntries(t *testing.T) {
	base, _, err := Parse("junctor.json", []byte(`{
		"mcpServers": {"filesystem": {"command": "old"}, "git": {"command": "git-server"}},
		"llm": [{"provider": "gemini"}, {"provider": "openai", "model": "a"}],
		"toolRules": [{"pattern": "*", "approval": "ask"}]}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	options, _, err := ParseOptions([]byte(`{"backends":[{"id":"filesystem","type":"stdio","command":"new"}],
		"llm": {"provider": "openai", "model": "a", "temperature": 0},
		"toolRules": [{"pattern": "git:*", "approval": "auto"}], "DEBUG_PORT": null}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	joined := base.Join(options)
	var servers, models []string
	for _, s := range joined.Servers {
		servers = append(servers, s.Name+"="+s.Command)
	}
	for _, m := range joined.LLM {
		models = append(models, m.ID())
	}
	if want := []string{"git=git-server", "filesystem=new"}; !slices.Equal(servers, want) {
		t.Errorf("servers %v, want %v", servers, want)
	}
	if want := []string{"openai/a", "gemini/"}; !slices.Equal(models, want) {
		t.Errorf("models %v, want %v", models, want)
	}
	if len(joined.ToolRules) != 2 || joined.ToolRules[1].Pattern[0] != "git:*" {
		t.Errorf("rules %+v", joined.ToolRules)
	}
	for _, s := range joined.Effective() {
		if s.Key == "mcpServers.filesystem.command" && (s.Value != "new" || s.From != "initializationOptions") {
			t.Errorf("%+v", s)
		}
	}
	if joined.Sets("debugPort") || !joined.Sets("mcpServers.git.command") {
		t.Error("Sets is wrong about what was set")
	}
	if empty := (&Config{}).Join(options); len(empty.Servers) != 1 {
		t.Errorf("joined to nothing: %+v", empty.Servers)
	}
}

func TestInvalidOptionsAreAllReported(t *testing.T) {
	_, _, err := ParseOptions([]byte(`{"logLevel":"loud","OPENAI_API_KEY":"","DEBUG_PORT":70000,"listen":"0.0.0.0:1","frobnicate":1,
		"backends":[{"id":"bad name","type":"stdio","command":"x"},{"id":"b","type":"stdio","command":7},{"type":"stdio","command":"y"}]}`), Options{})
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	text := e.Error()
	for _, want := range []string{"logLevel", "OPENAI_API_KEY", "DEBUG_PORT", "listen", "frobnicate", "bad name", "command", "has no name"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing about %q in\n%s", want, text)
		}
	}
	for _, broken := range []string{``, `[]`, `"x"`, `7`, `null`, `{"a":`} {
		if _, _, err := ParseOptions([]byte(broken), Options{}); err == nil {
			t.Errorf("%s passes", broken)
		}
	}
}

// Values of variables in the file and in a client's options are secrets of the
// joined configuration, so that logs and records do not contain them.
func TestJoinKeepsSecretsOfVariables(t *testing.T) {
	o := Options{LookupEnv: env(map[string]string{"FILE_TOKEN": "from-the-file-1", "CLIENT_TOKEN": "from-the-client-1"})}
	base, _, err := Parse("junctor.json", []byte(`{"mcpServers":{"a":{"command":"a","args":["${FILE_TOKEN}"]}}}`), o)
	if err != nil {
		t.Fatal(err)
	}
	options, _, err := ParseOptions([]byte(`{"backends":[{"id":"b","type":"stdio","command":"b","args":["--x","${CLIENT_TOKEN}"]}]}`), o)
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]*Config{"joined": base.Join(options), "without a file": (&Config{}).Join(options)} {
		want := []telemetry.Secret{"from-the-client-1"}
		if name == "joined" {
			want = append(want, "from-the-file-1")
		}
		for _, secret := range want {
			if !slices.Contains(cfg.Secrets(), secret) {
				t.Errorf("%s: %s is not among the secrets", name, secret.Reveal())
			}
		}
	}
	if slices.Contains(base.Secrets(), "from-the-client-1") {
		t.Error("the base has changed")
	}
}
