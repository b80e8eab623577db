package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/control"
	"junctor/internal/upstream/upstreamtest"
)

// TestServersOfOtherClientsAreImported imports from a home directory with the
// files of two clients. The servers must be running and the secret redacted.
func TestServersOfOtherClientsAreImported(t *testing.T) {
	good := entry(t, upstreamtest.Stdio(t, "x", upstreamtest.Script{}))
	withSecret := strings.Replace(good, `"env":{`, `"env":{"GITHUB_TOKEN":"ghp_0123456789abcdefghij0123456789abcdef",`, 1)
	home := t.TempDir()
	r := start(t, fmt.Sprintf("{\n  // keep this comment\n  \"mcpServers\": {\"have\": %s}\n}", good), t.TempDir(), func(o *Options) {
		o.Reload.Home = home
		o.Reload.LookupEnv = func(string) (string, bool) { return "", false }
	})
	put := func(path, text string) {
		t.Helper()
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(".cursor/mcp.json", fmt.Sprintf(`{"mcpServers":{"one":%s,"have":{"url":"https://other.example/mcp"},"me":{"command":"junctor","args":["mcp"]}}}`, withSecret))
	put(".codeium/windsurf/mcp_config.json", `{"mcpServers": {"bad": 1}}`)
	put(".gemini/settings.json", `{"mcpServers": {`)

	code, body := r.ask("GET", "/api/import", "")
	var list struct {
		Candidates []control.Candidate
		Problems   []string
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	states := map[string]string{}
	for _, c := range list.Candidates {
		states[c.As] = c.State
		if c.As == "one" && (len(c.Secrets) != 1 || c.Client != "cursor" || c.Starts == "") {
			t.Errorf("one = %+v", c)
		}
		if c.As == "have" && (c.Starts != "https://other.example/mcp" || !strings.Contains(strings.Join(c.Notes, " "), "differs")) {
			t.Errorf("have = %+v", c)
		}
	}
	if states["one"] != "new" || states["have"] != "differs" || states["me"] != "self" || len(list.Problems) != 2 {
		t.Errorf("states %v, problems %q", states, list.Problems)
	}
	if strings.Contains(body, "ghp_") {
		t.Errorf("a secret is shown: %s", body)
	}
	for name, in := range map[string]string{"unknown": `{"names":["one","nope"]}`, "itself": `{"names":["me"]}`, "nothing": `{"names":[]}`} {
		if code, body := r.ask("POST", "/api/import", in); code != 400 {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	if code, body := r.ask("POST", "/api/import", `{"names":["one"]}`); code != 200 || !strings.Contains(body, `"added":["one"]`) {
		t.Fatalf("%d %s", code, body)
	}
	if code, body := r.ask("POST", "/api/call", `{"server":"one","tool":"echo"}`); code != 200 {
		t.Errorf("call: %d %s", code, body)
	}
	text, _ := os.ReadFile(r.file)
	if s := string(text); !strings.Contains(s, "// keep this comment") || strings.Contains(s, "ghp_") || !strings.Contains(s, "${GITHUB_TOKEN}") {
		t.Errorf("the file: %s", s)
	}
	env := filepath.Join(filepath.Dir(r.file), ".env")
	if text, _ := os.ReadFile(env); !strings.Contains(string(text), "ghp_") {
		t.Errorf("the secret is not kept: %s", text)
	}
	if info, err := os.Stat(env); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if _, body := r.ask("GET", "/api/import", ""); !strings.Contains(body, `"as":"one","state":"same"`) {
		t.Errorf("after it: %s", body)
	}

	// Imported servers are in the audit log, even if the import partly fails.
	put(".cursor/mcp.json", fmt.Sprintf(`{"mcpServers":{"two":%[1]s,"three":%[1]s,"odd":{"command":"${command:pick}"}}}`, good))
	for name, in := range map[string]string{"two": `{"names":["two","odd"]}`, "three": `{"names":["three"]}`} {
		want := "not imported: odd"
		if name == "three" {
			want = "takes effect only when the file is valid"
			r.write(`{"mcpServers":{"typo":{"comand":"x"}}}`)
		} else {
			r.write(`{}`)
		}
		if code, body := r.ask("POST", "/api/import", in); code != 400 || !strings.Contains(body, want) || strings.Contains(body, "was written") != (name == "three") {
			t.Errorf("%s: %d %s", name, code, body)
		}
		if _, body := r.ask("GET", "/api/audit?action=server.import", ""); !strings.Contains(body, fmt.Sprintf(`"target":%q`, name)) || strings.Contains(body, "odd") {
			t.Errorf("%s in the audit log: %s", name, body)
		}
	}
}
