package webui

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// directives returns the directives of the frame's policy for a query.
func directives(t *testing.T, query url.Values) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	page().ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1:8787"+AppFrame+"?"+query.Encode(), nil))
	if w.Code != 200 || w.Header().Get("X-Frame-Options") != "" || !strings.Contains(w.Body.String(), "sandbox-proxy-ready") {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	found := map[string]string{}
	for d := range strings.SplitSeq(w.Header().Get("Content-Security-Policy"), "; ") {
		name, value, _ := strings.Cut(d, " ")
		if _, twice := found[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		found[name] = value
	}
	return found
}

func TestAppsReachNothingByDefault(t *testing.T) {
	got := directives(t, nil)
	for name, want := range map[string]string{
		"sandbox": "allow-scripts allow-forms", "default-src": "'none'", "script-src": "'unsafe-inline' blob:",
		"connect-src": "'none'", "frame-src": "'none'", "base-uri": "'none'", "form-action": "'none'", "object-src": "'none'", "frame-ancestors": "'self'",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestAppsReachOriginsThatTheyDeclare(t *testing.T) {
	got := directives(t, url.Values{
		"connect":  {"https://api.example.com", "wss://live.example.com:8443"},
		"resource": {"https://*.cdn.example.com", "cdn.example.org"},
		"frame":    {"https://player.example.com"},
		"base":     {"https://base.example.com"},
	})
	for name, want := range map[string]string{
		"connect-src": "https://api.example.com wss://live.example.com:8443",
		"img-src":     "data: blob: https://*.cdn.example.com cdn.example.org",
		"script-src":  "'unsafe-inline' blob: https://*.cdn.example.com cdn.example.org",
		"frame-src":   "https://player.example.com", "base-uri": "https://base.example.com",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestAppsCannotWidenTheirPolicy(t *testing.T) {
	for _, evil := range []string{
		"*", "https:", "https://*", "'self'", "'unsafe-eval'", "data:", "https://a.example; script-src *", "https://a.example https://b.example",
		"https://a.example\r\nX-Evil: 1", "https://a.example,https://b.example", "http://127.0.0.1:8787", "ws://127.0.0.1:8787/ws", "", "https://" + strings.Repeat("a.", 200) + "example",
	} {
		for _, list := range []string{"connect", "resource", "frame", "base"} {
			if got, want := directives(t, url.Values{list: {evil}}), directives(t, nil); len(got) != len(want) || got["connect-src"] != "'none'" || got["img-src"] != want["img-src"] || got["frame-src"] != "'none'" || got["base-uri"] != "'none'" {
				t.Errorf("%s=%q: %v", list, evil, got)
			}
		}
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = "https://a.example"
	}
	if got := directives(t, url.Values{"connect": many}); strings.Count(got["connect-src"], " ") != maxSources-1 {
		t.Errorf("connect-src has %d bytes", len(got["connect-src"]))
	}
}
