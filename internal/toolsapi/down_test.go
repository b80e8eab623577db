package toolsapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/listing"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// someDown is a gateway with two servers that are not connected.
type someDown struct{ noServers }

func (s someDown) StatusOf(name string) (upstream.Status, bool) {
	i := slices.IndexFunc(s.Status(), func(st upstream.Status) bool { return st.Name == name })
	return s.Status()[max(i, 0)], i >= 0
}
func (someDown) Status() []upstream.Status {
	return []upstream.Status{
		{Name: "broken", State: upstream.Disconnected, Reason: "its program exited with code 1"},
		{Name: "locked", State: upstream.AuthRequired, Reason: "it wants a sign-in"},
	}
}

func TestUnavailableServersAreListed(t *testing.T) {
	a := New(Options{Tools: listing.New(listing.Options{Catalog: catalog.New(nil, nil), Upstreams: someDown{}})})
	get := func(path string, caller tool.Caller) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		handlerOf(a).ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), caller)))
		return w.Code, w.Body.String()
	}
	for _, path := range []string{"/tools", "/tools/openai"} {
		status, body := get(path, tool.Local)
		if status != http.StatusOK || !strings.Contains(body, "broken is disconnected: its program exited with code 1") || !strings.Contains(body, "locked is auth_required") {
			t.Errorf("%s = %d %s", path, status, body)
		}
		if _, body := get(path, tool.Caller{ID: "k", Tools: []string{"else:*"}}); strings.Contains(body, "broken") {
			t.Errorf("%s shows a hidden server: %s", path, body)
		}
	}
	for path, want := range map[string]string{
		"/tools/gemini?server=broken": "its program exited with code 1", "/tools?server=locked": "it wants a sign-in",
	} {
		if status, body := get(path, tool.Local); status < 400 || !strings.Contains(body, want) {
			t.Errorf("%s = %d %s", path, status, body)
		}
	}
}
