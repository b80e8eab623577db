package discovery

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// asCaller serves the Face to the caller named in the header X-As.
func (r *fixture) asCaller(callers ...tool.Caller) (send func(as, method, path, session, body string) (int, http.Header, string)) {
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		for _, c := range callers {
			if c.ID == q.Header.Get("X-As") {
				r.Face.ServeHTTP(w, q.WithContext(tool.WithCaller(q.Context(), c)))
				return
			}
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	r.t.Cleanup(func() { hs.CloseClientConnections(); hs.Close() })
	return func(as, method, path, session, body string) (int, http.Header, string) {
		r.t.Helper()
		req, err := http.NewRequestWithContext(ctxFor(r.t), method, hs.URL+path, strings.NewReader(body))
		if err != nil {
			r.t.Fatal(err)
		}
		req.Header.Set("X-As", as)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			r.t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			r.t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(b)
	}
}

// Each call of a batch has the rights of its caller, and a session can only be
// used by its owner.
func TestBatchesAndSessionsOfALimitedCaller(t *testing.T) {
	open, hidden := newTestServer(anyTool("one"), anyTool("two")), newTestServer(anyTool("secret"))
	r := newFixture(t, map[string]*testServer{"open": open, "hidden": hidden})
	send := r.asCaller(tool.Caller{ID: "a", Tools: []string{"open:one"}}, tool.Caller{ID: "b"})
	begin := strings.Replace(initializeBody, "2025-11-25", "2025-03-26", 1)
	_, header, _ := send("a", "POST", "/mcp", "", begin)
	session := header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal("no session")
	}
	execute := func(id, server, name string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"execute_tool","arguments":{"server":"` + server + `","tool":"` + name + `","arguments":{}}}}`
	}
	status, _, body := send("a", "POST", "/mcp", session, "["+strings.Join([]string{
		execute("10", "open", "one"), execute("11", "open", "two"), execute("12", "hidden", "secret"), execute("13", "", "hidden:secret"),
	}, ",")+"]")
	if status != http.StatusOK || !strings.Contains(body, "one {}") {
		t.Errorf("the batch: %d %s", status, body)
	}
	if open.has("tools/call two") || hidden.has("tools/call") {
		t.Error("a call of the batch went past the caller's rights")
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if status, _, body := send("b", method, "/mcp", session, execute("14", "open", "one")); status != http.StatusNotFound {
			t.Errorf("%s on another's session = %d %s", method, status, body)
		}
	}
	if status, _, _ := send("a", "POST", "/mcp/hidden", "", begin); status != http.StatusNotFound {
		t.Errorf("the view of a hidden server = %d", status)
	}
}

// Two tokens of one person may have different rights: a page of a list has
// only what the token of the request allows, not what was cached for another
// token.
func TestCachedListsFollowTheRightsOfTheToken(t *testing.T) {
	t.Parallel()
	hidden := newTestServer(anyTool("secret"))
	hidden.resources = []string{"secret:plans"}
	r := newFixture(t, map[string]*testServer{"open": newTestServer(anyTool("one")), "hidden": hidden})
	all := r.clientAs(tool.Caller{ID: "sub:p"}, mcp.Version20251125, View{Mode: DirectMode})
	if got := string(do(t, all, "resources/list", `{}`)); !strings.Contains(got, "secret:plans") {
		t.Fatalf("resources/list = %s, want secret:plans in it", got)
	}
	for _, limited := range []tool.Caller{
		{ID: "sub:p", Servers: []string{"open"}},
		{ID: "sub:p", Grants: []tool.Grant{{Servers: []string{"open"}}, {Tools: []string{"open:*"}}}},
	} {
		c := r.clientAs(limited, mcp.Version20251125, View{Mode: DirectMode})
		if got := string(do(t, c, "resources/list", `{"cursor":"0"}`)); strings.Contains(got, "secret:plans") || !strings.Contains(got, "note:one") {
			t.Errorf("resources/list of a limited token = %s, want that of the server open", got)
		}
	}
}
