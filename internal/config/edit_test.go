package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEditBytes checks edits of files of every shape.
func TestEditBytes(t *testing.T) {
	npx := json.RawMessage(`{"command":"npx","args":["-y","x"]}`)
	for name, tt := range map[string]struct {
		text string
		edit Edit
		want string
	}{
		"new file": {"", Set("a", npx), `{
  "mcpServers": {
    "a": {
      "command": "npx",
      "args": ["-y", "x"]
    }
  }
}
`},
		"no servers yet": {"{\n  // mine\n  \"listen\": \"127.0.0.1:1\",\n}\n", Set("a", npx), `{
  // mine
  "listen": "127.0.0.1:1",
  "mcpServers": {
    "a": {
      "command": "npx",
      "args": ["-y", "x"]
    }
  },
}
`},
		"a name that is only legal here": {`{"servers": {"My Server": {"command": "x"}, "b": {"command": "y"}}}
`, Remove("My-Server"), `{"servers": { "b": {"command": "y"}}}
`},
		"mcpServers, replace keeps what is the same": {`{
  "mcpServers": {
    // the first
    "a": {
      "command": "npx", // always
      "args": ["-y", "old"], // what
      "cwd": "/tmp", // gone
      "env": { "K": "v" } // gone too
    },
    "b": { "command": "y" }
  }
}
`, Set("a", npx), `{
  "mcpServers": {
    // the first
    "a": {
      "command": "npx", // always
      "args": ["-y", "x"] // what
    },
    "b": { "command": "y" }
  }
}
`},
		"vscode servers": {"{\n\t\"servers\": {\n\t\t\"a\": {\n\t\t\t\"type\": \"http\",\n\t\t\t\"url\": \"u\"\n\t\t}\n\t},\n\t\"inputs\": []\n}\n",
			Set("b", json.RawMessage(`{"url":"v"}`)), "{\n\t\"servers\": {\n\t\t\"a\": {\n\t\t\t\"type\": \"http\",\n\t\t\t\"url\": \"u\"\n\t\t},\n\t\t\"b\": {\n\t\t\t\"url\": \"v\"\n\t\t}\n\t},\n\t\"inputs\": []\n}\n"},
		"vscode settings": {`{"mcp": {"servers": {"a": {"command": "x"}}}}`, Remove("a"), `{"mcp": {"servers": {}}}`},
		"the array":       {"[\n  { \"name\": \"a\", \"url\": \"u\" }\n]\n", Set("b", npx), "[\n  { \"name\": \"a\", \"url\": \"u\" },\n  {\n    \"name\": \"b\",\n    \"command\": \"npx\",\n    \"args\": [\"-y\", \"x\"]\n  }\n]\n"},
		"the array, set":  {"[\n  { \"name\": \"a\", \"url\": \"u\" } // c\n]\n", Set("a", json.RawMessage(`{"url":"v"}`)), "[\n  { \"name\": \"a\", \"url\": \"v\" } // c\n]\n"},
		"backends":        {`{ "backends": [ { "id": "a", "type": "stdio", "command": "x" } ] }`, Set("b", json.RawMessage(`{}`)), `{ "backends": [ { "id": "a", "type": "stdio", "command": "x" }, { "id": "b" } ] }`},
		"backends, gone":  {`{ "backends": [ { "id": "a", "command": "x" }, { "id": "b", "command": "y" } ] }`, Remove("a"), `{ "backends": [ { "id": "b", "command": "y" } ] }`},
		"merge": {"{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\", \"timeoutMs\": 5 } // c\n  }\n}\n",
			Merge("a", json.RawMessage(`{"enabled":false,"timeoutMs":null}`)), "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\", \"enabled\": false } // c\n  }\n}\n"},
		"where it is, not where it would go": {`{"mcpServers": {}, "servers": {"a": {"command": "x"}}}`, Merge("a", json.RawMessage(`{"command":"y"}`)), `{"mcpServers": {}, "servers": {"a": {"command": "y"}}}`},
		"zed":                                {"{\n  \"context_servers\": {\n  }\n}\n", Set("a", json.RawMessage(`{"url":"u"}`)), "{\n  \"context_servers\": {\n    \"a\": {\n      \"url\": \"u\"\n    }\n  }\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := EditBytes([]byte(tt.text), tt.edit)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

// TestEncodedEditHasSameEffect checks that an edit has the same effect after it
// was marshalled and unmarshalled.
func TestEncodedEditHasSameEffect(t *testing.T) {
	for name, e := range map[string]Edit{
		"set":    Set("b", json.RawMessage(`{"url":"https://b.example"}`)),
		"merge":  Merge("a", json.RawMessage(`{"enabled":false,"args":null}`)),
		"remove": Remove("a"),
		"rule":   Rule("a:t", json.RawMessage(`{"enabled":false}`)),
	} {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back Edit
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		const file = `{"mcpServers":{"a":{"command":"x","args":["y"]}}}`
		want, err1 := EditBytes([]byte(file), e)
		got, err2 := EditBytes([]byte(file), back)
		if err1 != nil || err2 != nil || string(got) != string(want) || string(got) == file {
			t.Errorf("%s: %s, %v; want %s, %v", name, got, err2, want, err1)
		}
		if back.Key() != e.Key() || back.Whole() == (name == "merge" || name == "rule") {
			t.Errorf("%s: of %s, whole %v", name, back.Key(), back.Whole())
		}
	}
	for _, bad := range []string{`7`, `{"kind":9,"name":"a"}`, `{"kind":5,"name":"a","server":{}}`} {
		if err := json.Unmarshal([]byte(bad), new(Edit)); err == nil {
			t.Errorf("%s is no edit", bad)
		}
	}
}

func TestEditBytesErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		edit Edit
		want string
	}{
		"bad name":     {"{}", Set("a b", json.RawMessage(`{}`)), "invalid server name"},
		"not object":   {"{}", Set("a", json.RawMessage(`[]`)), "not a JSON object"},
		"null":         {"{}", Set("a", json.RawMessage(`null`)), "not a JSON object"},
		"not there":    {"{}", Remove("a"), ErrNoServer.Error()},
		"there":        {`{"servers":{"a":{"url":"u"}}}`, Add("a", json.RawMessage(`{}`)), ErrServerExists.Error()},
		"merge absent": {"{}", Merge("a", json.RawMessage(`{}`)), ErrNoServer.Error()},
		"broken":       {"{", Remove("a"), "not JSON"},
		"a string":     {`"x"`, Remove("a"), "no place for servers"},
		"odd entry":    {`{"mcpServers":{"a":5}}`, Merge("a", json.RawMessage(`{"url":"u"}`)), "not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := EditBytes([]byte(tt.text), tt.edit)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, %v, want an error with %q", got, err, tt.want)
			}
		})
	}
}

func TestApply(t *testing.T) {
	npx := json.RawMessage(`{"command":"npx","env":{"K":"${SECRET}"}}`)
	env := func(name string) (string, bool) { return "v", name == "SECRET" }

	t.Run("new file in the user's folder", func(t *testing.T) {
		user := t.TempDir()
		path, err := Apply(Options{UserDir: user, LookupEnv: env}, Set("a", npx))
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(user, "junctor", "junctor.json"); path != want {
			t.Errorf("path = %s, want %s", path, want)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode = %v, %v, want 0600: the file may hold secrets", info.Mode(), err)
		}
		cfg, _, err := Load(Options{UserDir: user, LookupEnv: env})
		if err != nil || len(cfg.Servers) != 1 || cfg.Servers[0].Env["K"].Reveal() != "v" {
			t.Errorf("loaded %+v, %v", cfg, err)
		}
	})

	t.Run("keeps permissions and links", func(t *testing.T) {
		dir := t.TempDir()
		real := filepath.Join(dir, "real.json")
		write(t, real, `{"mcpServers":{}}`, 0o640)
		link := filepath.Join(dir, "link.json")
		if err := os.Symlink("real.json", link); err != nil {
			t.Skip("no symbolic links:", err)
		}
		if _, err := Apply(Options{File: link, LookupEnv: env}, Set("a", npx)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Error("the link was replaced by a file")
		}
		if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("mode = %v, %v, want 0640", info.Mode(), err)
		}
		if data, _ := os.ReadFile(real); !strings.Contains(string(data), "${SECRET}") {
			t.Errorf("the variable was not kept: %s", data)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".junctor-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})

	t.Run("refuses new problems, not old ones", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "junctor.json")
		write(t, file, `{"mcpServers":{"old":{"comand":"x"},"two":{"command":"x"}}}`, 0o600)
		o := Options{File: file}
		_, err := Apply(o, Set("a", json.RawMessage(`{"url":"ftp://x"}`)))
		e, ok := errors.AsType[*Error](err)
		if !ok || len(e.Problems) != 1 || e.Problems[0].Key != "mcpServers.a.url" {
			t.Fatalf("err = %v, want one problem at mcpServers.a.url", err)
		}
		if _, err := Apply(o, Remove("two")); err != nil {
			t.Errorf("an old problem stood in the way: %v", err)
		}
		if _, err := Apply(o, Remove("old")); err != nil {
			t.Error(err)
		}
		if data, _ := os.ReadFile(file); string(data) != `{"mcpServers":{}}` {
			t.Errorf("left: %s", data)
		}
	})

	t.Run("nothing to change", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "junctor.json")
		write(t, file, "{ \"mcpServers\": { \"a\": { \"command\": \"x\" } } }", 0o400)
		if _, err := Apply(Options{File: file}, Set("a", json.RawMessage(`{"command":"x"}`))); err != nil {
			t.Error(err)
		}
	})

	t.Run("errors", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := Apply(Options{}, Remove("a")); err == nil || !strings.Contains(err.Error(), "--config") {
			t.Errorf("no place: %v", err)
		}
		if _, err := Apply(Options{File: dir}, Remove("a")); err == nil || !strings.Contains(err.Error(), "is a folder") {
			t.Errorf("a folder: %v", err)
		}
		file := filepath.Join(dir, "x.json")
		write(t, file, "{}", 0o600)
		if _, err := Apply(Options{File: file}, Remove("a")); !errors.Is(err, ErrNoServer) {
			t.Errorf("not there: %v", err)
		}
	})

	t.Run("a found file must be trusted and stays so", func(t *testing.T) {
		work, user := t.TempDir(), t.TempDir()
		write(t, filepath.Join(work, "junctor.json"), `{"mcpServers":{}}`, 0o600)
		o := Options{WorkDir: work, UserDir: user}
		if _, err := Apply(o, Set("a", json.RawMessage(`{"command":"x"}`))); !isUntrusted(err) {
			t.Fatalf("err = %v, want it refused", err)
		}
		asked := 0
		o.Trust = func(TrustRequest) (bool, error) { asked++; return true, nil }
		if _, err := Apply(o, Set("a", json.RawMessage(`{"command":"x"}`))); err != nil {
			t.Fatal(err)
		}
		o.Trust = nil
		if _, _, err := Load(o); err != nil || asked != 1 {
			t.Errorf("after our own edit: %v, asked %d times", err, asked)
		}
	})

	t.Run("a file that .env names stays trusted with its variables", func(t *testing.T) {
		work, user := t.TempDir(), t.TempDir()
		write(t, filepath.Join(work, ".env"), "MCP_JSON_PATH=servers/mcp.json\nURL=http://localhost/mcp\n", 0o600)
		write(t, filepath.Join(work, "servers", "mcp.json"), `{"mcpServers":{"a":{"url":"${URL}"}}}`, 0o600)
		o := Options{WorkDir: work, UserDir: user, Trust: func(TrustRequest) (bool, error) { return true, nil }}
		if _, _, err := Load(o); err != nil {
			t.Fatal(err)
		}
		o.Trust = nil
		if _, err := Apply(o, Set("b", json.RawMessage(`{"command":"x"}`))); err != nil {
			t.Fatal(err)
		}
		cfg, notes, err := Load(o)
		if err != nil || len(cfg.Servers) != 2 || cfg.Servers[0].URL != "http://localhost/mcp" {
			t.Errorf("after our own edit: %v, %v", notes, err)
		}
	})
}

func isUntrusted(err error) bool {
	_, ok := errors.AsType[*UntrustedError](err)
	return ok
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
