package oauth

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"junctor/internal/httperr"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// face serves the routes to one caller.
func (r *fixture) face(caller *tool.Caller) *httptest.Server {
	mux := http.NewServeMux()
	r.Routes(mux)
	ts := httptest.NewServer(httperr.WithRequestID(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mux.ServeHTTP(w, q.WithContext(tool.WithCaller(q.Context(), *caller)))
	})))
	r.t.Cleanup(ts.Close)
	return ts
}

func send(t *testing.T, method, address string, header http.Header) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func TestSignInFromThePage(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	caller := tool.Caller{ID: "key:k", Servers: []string{"jira"}}
	ts := r.face(&caller)
	if status, body, _ := send(t, "POST", ts.URL+"/api/mcp/jira/authorize", nil); status != 403 || strings.Contains(body, "state=") {
		t.Errorf("the first login by a limited key: %d %s", status, body)
	}
	caller.Servers = nil
	r.SetCallback("http://127.0.0.1:8787" + CallbackPath)
	begin := func(header http.Header) string {
		t.Helper()
		status, body, _ := send(t, "POST", ts.URL+"/api/mcp/jira/authorize", header)
		var got struct{ URL string }
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || got.URL == "" {
			t.Fatalf("authorize = %d %s", status, body)
		}
		return got.URL
	}
	if u, _ := url.Parse(begin(nil)); u.Query().Get("redirect_uri") != "http://127.0.0.1:8787/oauth/callback" {
		t.Errorf("redirect of a program: %s", u)
	}
	// No request header affects the redirect URI or causes another
	// registration.
	registered := len(w.registered)
	for _, header := range []http.Header{{"Origin": {ts.URL}}, {"Origin": {"https://evil.example"}}, {"X-Forwarded-Host": {"evil.example"}}} {
		if u, _ := url.Parse(begin(header)); u.Query().Get("redirect_uri") != "http://127.0.0.1:8787/oauth/callback" {
			t.Errorf("redirect with %v: %s", header, u)
		}
	}
	if len(w.registered) != registered {
		t.Errorf("%d registrations", len(w.registered))
	}
	address := begin(nil)
	q := visit(t, address)
	status, body, header := send(t, "GET", ts.URL+CallbackPath+"?"+q.Encode(), nil)
	if status != 200 || !strings.Contains(body, "Signed in") || !strings.Contains(body, "jira") || strings.Contains(body, q.Get("code")) {
		t.Errorf("callback = %d %s", status, body)
	}
	if !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") || header.Get("Referrer-Policy") != "no-referrer" || header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", header)
	}
	if strings.Contains(body, "<script") || strings.Contains(body, "http://") || strings.Contains(body, "https://") {
		t.Errorf("the page loads something: %s", body)
	}
	if status, body, _ := send(t, "GET", ts.URL+CallbackPath+"?"+q.Encode(), nil); status != 400 || !strings.Contains(body, "Not signed in") {
		t.Errorf("a second time: %d %s", status, body)
	}
	// A working login cannot be replaced by a caller without administrator's
	// rights.
	if status, _, _ := send(t, "POST", ts.URL+"/api/mcp/jira/authorize", nil); status != 403 {
		t.Errorf("another login: %d", status)
	}
	if status, _, _ := send(t, "DELETE", ts.URL+"/api/mcp/jira/authorize", nil); status != 403 {
		t.Errorf("a logout: %d", status)
	}
	caller.Admin = true
	if begin(nil) == "" {
		t.Error("an administrator may not sign in anew")
	}
	if status, _, _ := send(t, "DELETE", ts.URL+"/api/mcp/jira/authorize", nil); status != 204 || r.kept() != nil {
		t.Errorf("logout = %d", status)
	}
	// Markup from an authorization server is escaped.
	q = visit(t, begin(nil))
	q.Set("error", "<script>alert(1)</script>")
	if status, body, _ := send(t, "GET", ts.URL+CallbackPath+"?"+q.Encode(), nil); status != 403 || strings.Contains(body, "<script") {
		t.Errorf("callback = %d %s", status, body)
	}
}

func TestServerNamesInPath(t *testing.T) {
	r := newFixture(t, newWorld(t))
	caller := tool.Caller{ID: "key:k", Servers: []string{"other"}}
	ts := r.face(&caller)
	for _, name := range []string{"jira", "nope", "..%2f..%2fetc", "a%00b", "%3Cscript%3E", "a%0d%0ab", strings.Repeat("a", 500), "jira%2fproxy", "other"} {
		for _, method := range []string{"POST", "DELETE"} {
			status, body, _ := send(t, method, ts.URL+"/api/mcp/"+name+"/authorize", nil)
			if want := 404; status != want && !(name == "other" && method == "DELETE" && status == 403) {
				t.Errorf("%s %s = %d %s", method, name, status, body)
			}
			if strings.Contains(body, "<script>") || len(body) > 2000 {
				t.Errorf("%s %s shows %s", method, name, body)
			}
		}
	}
}

func TestClientCredentialsNeedNoUser(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.cfg.OAuth = &upstream.OAuth{ClientID: "robot", ClientSecret: "secret of it", Grant: upstream.ClientCredentials}
	ts := r.face(&tool.Caller{ID: "local", Admin: true})
	status, body, _ := send(t, "POST", ts.URL+"/api/mcp/jira/authorize", nil)
	if status != 200 || strings.TrimSpace(body) != `{"authorized":true}` {
		t.Errorf("authorize = %d %s", status, body)
	}
}
