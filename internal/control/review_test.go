package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"junctor/internal/guard"
	"junctor/internal/httperr"
	"junctor/internal/listing"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// reviews is a guard with fixed results.
type reviews struct {
	changes  []guard.Change
	err      error
	approved []string
}

func (r *reviews) Changes(_ context.Context, server string) ([]guard.Change, error) {
	return r.changes, r.err
}

func (r *reviews) Approve(_ context.Context, d tool.Definition, by string) error {
	r.approved = append(r.approved, by+" "+d.Name.String())
	return r.err
}

func (c *core) reviewed(r *reviews) http.Handler {
	mux := http.NewServeMux()
	New(Options{Tools: listing.New(listing.Options{Catalog: c.catalog, Search: c.index, Upstreams: c}), Calls: c, Servers: c, Settings: c, Keys: c, Reviews: r,
		Status: func(context.Context) any { return nil }}).Routes(mux)
	return httperr.WithRequestID(mux)
}

func askOf(h http.Handler, caller tool.Caller, method, path, body string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), caller)))
	return w.Code, w.Body.String()
}

func TestChangedToolsAreListedAndApproved(t *testing.T) {
	c := newCore(t)
	var odd tool.Name
	for _, s := range c.catalog.Snapshot().Servers() {
		for _, e := range s.Tools {
			if e.Review.Changed {
				odd = e.Name
			}
		}
	}
	entry := c.catalog.Snapshot().Lookup(odd)
	print := entry.Fingerprint()
	r := &reviews{changes: []guard.Change{
		{Name: odd, Print: store.Fingerprint{Current: print, ApprovedBy: "ann"}, Before: json.RawMessage(`{"a":1}`), After: json.RawMessage(`{"a":2}`)},
		{Name: tool.Name{Server: "gone", Tool: "x"}},
	}}
	path := "/api/servers/" + odd.Server + "/approve"
	ask := func(caller tool.Caller, method, path, body string) (int, string) {
		return askOf(c.reviewed(r), caller, method, path, body)
	}
	for name, tt := range map[string]struct {
		caller       tool.Caller
		method, path string
		body         string
		err          error
		status       int
		says         string
	}{
		"list":                   {admin, "GET", "/api/changes?wait&server=" + odd.Server, "", nil, 200, `"differences":[{"where":"a","before":1,"after":2}]`},
		"list all":               {admin, "GET", "/api/changes?wait", "", nil, 200, `"approvedBy":"ann","offered":true`},
		"list of another":        {admin, "GET", "/api/changes?server=nobody", "", nil, 404, "nobody"},
		"list, store away":       {admin, "GET", "/api/changes", "", errors.New("disk"), 500, "INTERNAL"},
		"not for everyone":       {limited, "GET", "/api/changes", "", nil, 403, "DENIED"},
		"approve, not everyone":  {limited, "POST", path, "{}", nil, 403, "DENIED"},
		"approve all":            {admin, "POST", path, "{}", nil, 200, odd.String()},
		"approve as seen":        {admin, "POST", path, `{"tools":{"` + odd.Tool + `":"` + print + `"}}`, nil, 200, odd.String()},
		"approve, changed again": {admin, "POST", path, `{"tools":{"` + odd.Tool + `":"other"}}`, nil, 400, "changed again"},
		"approve, conflict":      {admin, "POST", path, "{}", store.ErrConflict, 400, "changed again"},
		"approve, store away":    {admin, "POST", path, "{}", errors.New("disk"), 500, "INTERNAL"},
		"approve what is not":    {admin, "POST", path, `{"tools":{"nothing":""}}`, nil, 404, "TOOL_NOT_FOUND"},
		"approve of another":     {admin, "POST", "/api/servers/nobody/approve", "{}", nil, 404, "SERVER_NOT_FOUND"},
		"approve nonsense":       {admin, "POST", path, "[", nil, 400, "INVALID_REQUEST"},
	} {
		t.Run(name, func(t *testing.T) {
			r.err, r.approved = tt.err, nil
			status, body := ask(tt.caller, tt.method, tt.path, tt.body)
			if status != tt.status || !strings.Contains(body, tt.says) {
				t.Errorf("%d %s, want %d and %q", status, body, tt.status, tt.says)
			}
			if strings.Contains(body, "gone:x") {
				t.Error("tells of a server that is not configured")
			}
			if status == 200 && tt.method == "POST" && (len(r.approved) != 1 || r.approved[0] != "a "+odd.String()) {
				t.Errorf("approved %q", r.approved)
			}
		})
	}
}
