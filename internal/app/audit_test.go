package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"junctor/internal/audit"
	"junctor/internal/postgres/pgtest"
	"junctor/internal/upstream/upstreamtest"
)

// TestEveryChangeIsAudited makes each kind of change through the API and finds
// its audit entry, with both stores. Logins to servers and clients of the
// authorization server are tested in their packages.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); everyChangeIsAudited(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		everyChangeIsAudited(t, fmt.Sprintf(`"store":{"url":%q},`, pgtest.New(t).Database(t)))
	})
}

func everyChangeIsAudited(t *testing.T, store string) {
	up := upstreamtest.Listen(t, upstreamtest.Script{})
	server := fmt.Sprintf(`{"url":%q}`, up.URL)
	r := start(t, `{`+store+`"builtin":false,"mcpServers":{"up":`+server+`},"toolRules":[{"pattern":"up:whoami","approval":"ask"}]}`, t.TempDir())
	r.connected("up")
	const key = "admin-key-for-the-tests"
	find := func(action, target string) *audit.Entry {
		t.Helper()
		code, body := r.ask("GET", "/api/audit?action="+action, "")
		var out struct{ Entries []audit.Entry }
		if err := json.Unmarshal([]byte(body), &out); err != nil || code != 200 {
			t.Fatalf("%d %s", code, body)
		}
		for _, e := range out.Entries {
			if target == "" || e.Target == target {
				return &e
			}
		}
		return nil
	}
	session := ""
	steps := []struct {
		action, target, method, path, body string
	}{
		{"key.add", "bot", "POST", "/api/keys", `{"name":"bot"}`},
		{"key.revoke", "bot", "DELETE", "/api/keys/bot", ""},
		{"profile.add", "part", "PUT", "/api/profiles/part", `{"servers":["up"]}`},
		{"profile.change", "part", "PUT", "/api/profiles/part", `{"servers":[]}`},
		{"profile.remove", "part", "DELETE", "/api/profiles/part", ""},
		{"server.add", "other", "POST", "/api/servers", `{"servers":{"mcpServers":{"other":` + server + `}}}`},
		{"server.change", "other", "PUT", "/api/servers/other", `{"server":` + server + `}`},
		{"server.disable", "other", "PATCH", "/api/servers/other", `{"enabled":false}`},
		{"server.enable", "other", "PATCH", "/api/servers/other", `{"enabled":true}`},
		{"server.restart", "other", "POST", "/api/servers/other/restart", ""},
		{"server.remove", "other", "DELETE", "/api/servers/other", ""},
		{"tool.change", "up:echo", "PATCH", "/api/tools/up/echo", `{"enabled":false}`},
		{"config.change", "toolRules", "PATCH", "/api/config", `{"set":{"toolRules":[{"pattern":"up:whoami","approval":"ask"}]}}`},
		{"config.change", "llm", "PATCH", "/api/config", `{"set":{"llm":[{"provider":"openai","model":"m","apiKey":"sk-0123456789abcdefghij"}]}}`},
		{"session.begin", "", "POST", "/api/session", `{"key":"` + key + `"}`},
		{"approval.deny", "up:whoami", "POST", "/api/approvals/{waiting}", `{"action":"deny","reason":"no"}`},
		{"approval.allow", "up:whoami", "POST", "/api/approvals/{waiting}", `{"action":"allow","scope":"always"}`},
		{"approval.revoke", "up:whoami", "DELETE", "/api/approvals/up:whoami", ""},
	}
	page, err := http.NewRequestWithContext(t.Context(), "GET", r.url+"/api/approvals/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	page.Header.Set("X-API-Key", key)
	res, err := http.DefaultClient.Do(page)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := res.Body.Read(make([]byte, 1)); err != nil { // from now on calls wait for approval
		t.Fatal(err)
	}
	for _, s := range steps {
		path, called := s.path, make(chan struct{})
		if strings.Contains(path, "{waiting}") {
			go func() {
				defer close(called)
				r.ask("POST", "/call_tool", `{"server":"up","tool":"whoami","arguments":{}}`)
			}()
			path = strings.Replace(path, "{waiting}", r.waiting(), 1)
		} else {
			close(called)
		}
		code, body := r.ask(s.method, path, s.body)
		if code >= 300 {
			t.Fatalf("%s: %d %s", s.action, code, body)
		}
		<-called
		if e := find(s.action, s.target); e == nil || e.Actor == "" || e.Name == "" {
			t.Errorf("%s %s is not in the audit log: %+v", s.action, s.target, e)
		}
		if s.action == "session.begin" {
			var in struct{ Session string }
			if err := json.Unmarshal([]byte(body), &in); err != nil {
				t.Fatal(err)
			}
			session = in.Session
		}
	}
	if code, body := r.as("DELETE", "/api/session", "", "X-Junctor-Session", session); code != 204 || find("session.end", "") == nil {
		t.Errorf("sign-out: %d %s", code, body)
	}
	// The editor of a file is unknown, but the change is not.
	r.write(`{` + store + `"builtin":false,"mcpServers":{"up":` + server + `},"profiles":{"filed":{}}}`)
	eventually(t, "the change of the file", func() bool {
		e := find("config.change", r.file)
		return e != nil && e.Actor == "file" && strings.Contains(string(e.Detail), `"profiles"`)
	})
	if _, body := r.ask("GET", "/api/audit?limit=1000", ""); strings.Contains(body, "sk-0123456789") || strings.Contains(body, key) {
		t.Errorf("the audit log has a secret: %s", body)
	}
}

// waiting returns the id of the call that is waiting for approval.
func (r *fixture) waiting() (id string) {
	r.t.Helper()
	eventually(r.t, "a call that waits", func() bool {
		_, body := r.ask("GET", "/api/approvals", "")
		var out struct{ Waiting []struct{ ID string } }
		if json.Unmarshal([]byte(body), &out) == nil && len(out.Waiting) > 0 {
			id = out.Waiting[0].ID
		}
		return id != ""
	})
	return id
}
