package audit

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/sqlite"
	"junctor/internal/sqlite/sqlitetest"
	"junctor/internal/store"
	"junctor/internal/tool"
)

func newLog(t *testing.T) *Log {
	t.Helper()
	cfg := store.DefaultConfig()
	cfg.Path = sqlitetest.Create(t, filepath.Join(t.TempDir(), "junctor.db"))
	s, err := sqlite.Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return New(s, nil, slog.New(slog.DiscardHandler))
}

func TestEntriesAreKeptAndSelected(t *testing.T) {
	l := newLog(t)
	ann := tool.WithCaller(t.Context(), tool.Caller{ID: "key:1", Name: "ann"})
	l.Audit(ann, "key.add", "k1", map[string]any{"admin": true})
	l.Audit(ann, "key.revoke", "k1", nil)
	l.Audit(tool.WithCaller(t.Context(), tool.Local), "server.add", "files", strings.Repeat("x", maxDetail))
	for name, tt := range map[string]struct {
		q    Query
		want string
	}{
		"all, newest first": {Query{}, "server.add key.revoke key.add"},
		"a limit":           {Query{Limit: 1}, "server.add"},
		"an actor's name":   {Query{Actor: "ann"}, "key.revoke key.add"},
		"an actor's id":     {Query{Actor: "local"}, "server.add"},
		"an object":         {Query{Action: "key"}, "key.revoke key.add"},
		"an action":         {Query{Action: "key.add"}, "key.add"},
		"not a prefix":      {Query{Action: "k"}, ""},
	} {
		list, err := l.Entries(t.Context(), tt.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range list {
			got = append(got, e.Action)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %v, want %s", name, got, tt.want)
		}
	}
	all, err := l.Entries(t.Context(), Query{})
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	if older, err := l.Entries(t.Context(), Query{Before: all[1].ID}); err != nil || len(older) != 1 || older[0].Action != "key.add" || string(older[0].Detail) != `{"admin":true}` {
		t.Errorf("before %s: %+v, %v", all[1].ID, older, err)
	}
	if !strings.Contains(string(all[0].Detail), "bytes") {
		t.Errorf("a large detail is kept: %.60s", all[0].Detail)
	}
}

func TestAuditLogIsForAdministrators(t *testing.T) {
	l := newLog(t)
	mux := http.NewServeMux()
	l.Routes(mux)
	for want, caller := range map[int]tool.Caller{200: tool.Local, 403: {ID: "key:1"}} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/api/audit", nil).WithContext(tool.WithCaller(t.Context(), caller)))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", caller.ID, w.Code, want)
		}
	}
}
