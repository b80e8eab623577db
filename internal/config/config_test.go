package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"junctor/internal/upstream"
)

func TestDefaultIsValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	cfg, notes, err := Load(Options{})
	if err != nil || len(notes) > 0 || cfg.Place().Path != "" || cfg.Listen != defaultListen {
		t.Errorf("Load of nothing = %+v, %v, %v", cfg, notes, err)
	}
	if _, ok := Default().Lookup("X"); ok {
		t.Error("a default configuration knows variables")
	}
}

// TestPrecedence checks that flags override the environment, which overrides
// .env, which overrides the file.
func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "junctor.json")
	write(t, file, `{"log":{"level":"error"},"listen":"0.0.0.0:1","chat":{"maxTokenCount":1}}`, 0o600)
	write(t, filepath.Join(dir, ".env"), "LOG_LEVEL=warn\nPORT=2\nMAX_TOKEN_COUNT=2\nDEBUG_PORT=7\n", 0o600)
	env := map[string]string{"LOG_LEVEL": "debug", "PORT": " 3 "}
	o := Options{File: file, LookupEnv: func(n string) (string, bool) { v, ok := env[n]; return v, ok }}
	cfg := loaded(t, o)
	if cfg.Log.Level != "debug" || cfg.Listen != "0.0.0.0:3" || cfg.Chat.MaxTokenCount != 2 || cfg.DebugPort != 7 {
		t.Errorf("level %s, listen %s, tokens %d, debug %d", cfg.Log.Level, cfg.Listen, cfg.Chat.MaxTokenCount, cfg.DebugPort)
	}
	o.Overrides = []Override{{"log.level", "trace", "--log-level"}, {"listen", "[::1]:4", "--listen"}, {"chat.maxTokenCount", "9", "--tokens"}}
	cfg = loaded(t, o)
	if cfg.Log.Level != "trace" || cfg.Listen != "[::1]:4" || cfg.Chat.MaxTokenCount != 9 {
		t.Errorf("level %s, listen %s, tokens %d", cfg.Log.Level, cfg.Listen, cfg.Chat.MaxTokenCount)
	}
	for _, s := range cfg.Effective() {
		if s.Key == "listen" && (s.Source != "--listen" || s.From != "--listen") {
			t.Errorf("listen is from %+v", s)
		}
	}
	o.Overrides = []Override{{"log.level", "loud", "--log-level"}}
	if _, _, err := Load(o); err == nil || !strings.Contains(err.Error(), "--log-level") {
		t.Errorf("err = %v, want it to name the flag", err)
	}
}

func TestLookup(t *testing.T) {
	cfg, _, err := Parse("options", []byte(`{"OPENAI_API_KEY":"option","GEMINI_API_KEY":"${G:-g}"}`),
		Options{LookupEnv: func(n string) (string, bool) { return "real", n == "OPENAI_API_KEY" }})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := cfg.Lookup("OPENAI_API_KEY"); !ok || v != "real" {
		t.Errorf("the environment must win: %q", v)
	}
	if v, ok := cfg.Lookup("GEMINI_API_KEY"); !ok || v != "g" {
		t.Errorf("the file's own: %q", v)
	}
	if _, ok := cfg.Lookup("OTHER"); ok {
		t.Error("found what is not there")
	}
	if strings.Contains(outcome(cfg, nil, nil), "option") {
		t.Error("the key is shown")
	}
}

// TestProblemsHavePositions checks that every problem has the position of the
// wrong value or of the object that contains it.
func TestProblemsHavePositions(t *testing.T) {
	_, _, err := Parse("f.json", []byte("{\n  \"store\": {\n    \"retention\": {\"ageDays\": -1}\n  }\n}"), Options{})
	if got, want := err.Error(), "f.json:3:30: store.retention.ageDays: must be between 0 and 36500"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestProblemListIsTruncated(t *testing.T) {
	text := "{" + strings.Repeat(`"zzzz": 1, `, 300) + "}"
	_, _, err := Parse("f.json", []byte(text), Options{})
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Problems) != maxProblems+1 || !strings.HasPrefix(e.Problems[maxProblems].Msg, "and 200 more") {
		t.Errorf("got %d problems, the last %v", len(e.Problems), e.Problems[len(e.Problems)-1])
	}
}

func TestParseBounds(t *testing.T) {
	if _, _, err := Parse("x", make([]byte, maxFile+1), Options{}); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Error(err)
	}
	big := `{"mcpServers":{"a":{"command":"` + strings.Repeat("${A}", 1000) + `"}}}`
	_, _, err := Parse("x", []byte(big), Options{LookupEnv: func(string) (string, bool) { return strings.Repeat("y", 10_000), true }})
	if err == nil || !strings.Contains(err.Error(), "is longer than") {
		t.Errorf("a billion laughs: %v", err)
	}
}

func TestSuggest(t *testing.T) {
	names := []string{"command", "timeoutMs", "authorization_token", "url"}
	for in, want := range map[string]string{
		"comand": "command", "Command": "command", "timeout_ms": "timeoutMs", "authorizationToken": "authorization_token",
		"ulr": "url", "x": "", "completely": "", "": "", strings.Repeat("a", 100): "",
	} {
		if want != "" {
			want = `; did you mean "` + want + `"?`
		}
		if got := suggest(in, names); got != want {
			t.Errorf("suggest(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLooksSecret(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		want        bool
	}{
		{"GITHUB_TOKEN", "ghp_0123456789abcdefghij", true},
		{"x", "sk-proj-0123456789abcdefghij", true},
		{"x", "AKIAIOSFODNN7EXAMPLE", true},
		{"x", "eyJhbGciOi.eyJzdWIiOi.sig", true},
		{"Authorization", "Bearer abcdefghijk", true},
		{"API_KEY", "your_api_key", true},
		{"DB_PASSWORD", "hunter22", true},
		{"x", "postgres://u:p@h/db", true},
		{"x", "0123456789abcdef0123456789abcdef", true},
		{"API_KEY", "${API_KEY}", false},
		{"API_KEY", "", false},
		{"API_KEY", "<your key>", false},
		{"x", "abcdefghijklmnopqrstuvwxyzabcdefghij", false},
		{"key", "abcdefgh", true},
		{"keyboard", "qwertz-de", false},
		{"API_KEY_FILE", "/run/secrets/key", false},
		{"TOKEN_URL", "https://as.example.com/token", false},
		{"AUTH", "required", false},
		{"MAX_TOKENS", "8192", false},
		{"LOG_LEVEL", "debug", false},
		{"x", "@modelcontextprotocol/server-filesystem", false},
		{"x", "https://example.com/path", false},
	} {
		if got := LooksSecret(tt.name, tt.value); got != tt.want {
			t.Errorf("LooksSecret(%q, %q) = %v", tt.name, tt.value, got)
		}
	}
}

func TestMaskArgs(t *testing.T) {
	in := []string{"-e", "GITHUB_TOKEN=ghp_0123456789", "--api-key", "abcdefgh", "--token=secret99", "--header", "Authorization: Bearer abcdefghi",
		"https://x.example.com/mcp?apiKey=abcdefgh&n=1", "--url=https://u:pw123456@h.example.com/", "--port", "8080", "--path=/tmp", "plain"}
	got := strings.Join(MaskArgs(in), "\n")
	want := strings.Join([]string{"-e", "GITHUB_TOKEN=[redacted]", "--api-key", "[redacted]", "--token=[redacted]", "--header", "Authorization: [redacted]",
		"https://x.example.com/mcp?apiKey=[redacted]&n=1", "--url=https://u:[redacted]@h.example.com/", "--port", "8080", "--path=/tmp", "plain"}, "\n")
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := MaskArgs([]string{"https://user:pw@h.example.com/x"})[0]; strings.Contains(got, "pw@") {
		t.Error(got)
	}
	for _, s := range []string{"://", "http://[::1", "x://y?%zz"} {
		if got := MaskArgs([]string{s})[0]; got != s {
			t.Errorf("MaskArgs(%q) = %q", s, got)
		}
	}
}

// TestNoSecretIsShown checks that a canary in every secret setting of a file
// appears in no view.
func TestNoSecretIsShown(t *testing.T) {
	const canary = "sk-canary0123456789"
	cfg, _, err := Parse("f", []byte(`{
		"mcpServers": {
			"a": {"command": "x", "args": ["--key", "`+canary+`", "K=`+canary+`"], "env": {"A": "`+canary+`"}},
			"b": {"url": "https://h.example.com/?k=`+canary+`", "headers": {"X": "`+canary+`"}, "authorization_token": "`+canary+`",
			      "oauth": {"clientId": "i", "clientSecret": "`+canary+`"}},
			"c": {"command": "x", "args": ["${CANARY}", "a-${CANARY}"], "env": {"B": "p${CANARY}"}}
		},
		"llm": {"provider": "openai", "apiKey": "`+canary+`"},
		"auth": {"keys": [{"name": "a", "key": "`+canary+`"}]},
		"store": {"url": "postgres://u:`+canary+`@h/d"},
		"telemetry": {"otlp": {"endpoint": "http://h", "headers": {"a": "`+canary+`"}}}
	}`), Options{LookupEnv: func(n string) (string, bool) { return canary, n == "CANARY" }})
	if err != nil {
		t.Fatal(err)
	}
	if got := outcome(cfg, nil, nil); strings.Contains(got, canary) {
		t.Errorf("the canary is shown:\n%s", got)
	}
}

func TestCwdAndCommand(t *testing.T) {
	for name, tt := range map[string]struct{ server, command, cwd string }{
		"in PATH":             {`"command":"npx"`, "npx", ""},
		"beside the file":     {`"command":"./run.sh"`, "/base/run.sh", ""},
		"from cwd":            {`"command":"../run.sh","cwd":"/srv/a"`, "/srv/run.sh", "/srv/a"},
		"home":                {`"command":"~/run.sh","cwd":"~"`, "/home/run.sh", "/home"},
		"absolute":            {`"command":"/bin/x","cwd":"sub"`, "/bin/x", "/base/sub"},
		"a slash in the name": {`"command":"tools/x"`, "tools/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _, err := Parse("f", []byte(`{"mcpServers":{"a":{`+tt.server+`}}}`), Options{BaseDir: "/base", Home: "/home"})
			if err != nil {
				t.Fatal(err)
			}
			if s := cfg.Servers[0]; filepath.ToSlash(s.Command) != tt.command || filepath.ToSlash(s.Cwd) != tt.cwd {
				t.Errorf("command %q in %q, want %q in %q", s.Command, s.Cwd, tt.command, tt.cwd)
			}
		})
	}
}

// TestServerWithoutVariable checks that a server with a variable that is not set
// results in a note with the variable's name and does not prevent others from
// loading.
func TestServerWithoutVariable(t *testing.T) {
	for _, disabled := range []string{"true", "false"} {
		cfg, notes, err := Parse("f", []byte(`{"mcpServers":{"github":{"url":"${BASE}/mcp","headers":{"A":"${TOKEN} ${TOKEN}"},"disabled":`+disabled+`},"on":{"command":"x"}}}`), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(notes) == 0 || !strings.Contains(notes[0].Msg, "environment variable BASE is not set; export it") || len(cfg.Servers) != 2 {
			t.Errorf("notes %v", notes)
		}
		s, _ := cfg.Server("github")
		if want := []string{"BASE", "TOKEN"}; !slices.Equal(s.Unset, want) {
			t.Errorf("unset variables %q, want %q", s.Unset, want)
		}
	}
	// Outside of servers, a variable that is not set is an error.
	if _, _, err := Parse("f", []byte(`{"store":{"url":"${DATABASE}"}}`), Options{}); err == nil || !strings.Contains(err.Error(), "DATABASE is not set") {
		t.Errorf("store.url without its variable: %v", err)
	}
	// Other errors of such a server remain errors.
	if _, _, err := Parse("f", []byte(`{"mcpServers":{"off":{"url":"ftp://x","disabled":true}}}`), Options{}); err == nil {
		t.Error("loaded with a bad URL")
	}
}

func TestServerLookup(t *testing.T) {
	cfg := &Config{Servers: []upstream.Config{{Name: "a"}}}
	if _, ok := cfg.Server("b"); ok {
		t.Error("found b")
	}
}

// TestWriteFileErrors checks that a failed write returns an error and leaves
// nothing behind.
func TestWriteFileErrors(t *testing.T) {
	dir := t.TempDir()
	if err := WriteFile(filepath.Join(dir, "no", "such", "x"), nil); err == nil {
		t.Error("wrote into a folder that is not there")
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "d"), nil); err == nil {
		t.Error("wrote over a folder")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".junctor-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestOTLPEndpointOfEnvironment(t *testing.T) {
	for name, tt := range map[string]struct {
		file, value, want string
		others            map[string]string
		notes             int
	}{
		"alone":         {file: `{}`, value: "http://collector:4318/", want: "http://collector:4318/v1/traces"},
		"with a path":   {file: `{}`, value: "https://collector/otlp", want: "https://collector/otlp/v1/traces"},
		"file wins":     {file: `{"telemetry":{"otlp":{"endpoint":"http://mine"}}}`, value: "http://collector:4318", want: "http://mine"},
		"not over HTTP": {file: `{}`, value: "collector:4317", notes: 1},
		"for gRPC":      {file: `{}`, value: "http://collector:4317", others: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, notes: 1},
		"metrics by gRPC": {file: `{}`, value: "http://collector:4318", want: "http://collector:4318/v1/traces",
			others: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}},
		"traces off": {file: `{}`, value: "http://collector:4318", others: map[string]string{"OTEL_TRACES_EXPORTER": "none"}},
		"SDK off":    {file: `{}`, value: "http://collector:4318", others: map[string]string{"OTEL_SDK_DISABLED": "true"}},
		"not set":    {file: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, notes, err := Parse("junctor.json", []byte(tt.file), Options{LookupEnv: func(name string) (string, bool) {
				if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
					return tt.value, tt.value != ""
				}
				v, ok := tt.others[name]
				return v, ok
			}})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if cfg.Telemetry.OTLP != nil {
				got = cfg.Telemetry.OTLP.Endpoint
			}
			if got != tt.want || len(notes) != tt.notes {
				t.Errorf("traces go to %q, want %q; notes %v", got, tt.want, notes)
			}
		})
	}
}
