package app

import (
	"encoding/json"
	"net/http"
	"testing"

	"junctor/internal/httperr"
)

// TestUnknownAPIPathsAreNotAnsweredWithThePage checks that unknown API paths
// and methods get 404 or 405 instead of the page.
func TestUnknownAPIPathsAreNotAnsweredWithThePage(t *testing.T) {
	r := start(t, `{}`, t.TempDir())
	for name, tt := range map[string]struct {
		method, path string
		status       int
		allow        string
	}{
		"no such path":        {"GET", "/api/nonsense", 404, ""},
		"no such path to do":  {"POST", "/api/nonsense", 404, ""},
		"no such socket":      {"GET", "/ws/nonsense", 404, ""},
		"no metadata":         {"GET", "/.well-known/oauth-authorization-server", 404, ""},
		"another method":      {"GET", "/api/mcp/junctor/proxy", 405, "POST"},
		"one of two methods":  {"PUT", "/api/mcp/junctor/authorize", 405, "POST, DELETE"},
		"reading only":        {"PUT", "/api/connections", 405, "GET"},
		"writing to the page": {"POST", "/", 405, "GET"},
		"a path of nobody":    {"GET", "/healthz", 404, ""},
		"almost an API":       {"GET", "/tool/gemini", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, r.url+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var body httperr.Body
			err = json.NewDecoder(res.Body).Decode(&body)
			if err != nil || res.StatusCode != tt.status || res.Header.Get("Allow") != tt.allow || body.Error != http.StatusText(tt.status) || body.Message == "" {
				t.Errorf("%d, Allow %q, %+v, %v", res.StatusCode, res.Header.Get("Allow"), body, err)
			}
		})
	}
}
