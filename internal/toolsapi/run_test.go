package toolsapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/codemode"
	"junctor/internal/listing"
)

// sessionsOf notes the sessions of scripts.
type sessionsOf struct{ seen []string }

func (s *sessionsOf) Run(_ context.Context, r codemode.Request) (codemode.Outcome, error) {
	s.seen = append(s.seen, r.Session)
	return codemode.Outcome{}, nil
}

// The name of a session is kept in memory and in records, so its length is
// bounded.
func TestSessionsOfScriptsHaveShortNames(t *testing.T) {
	t.Parallel()
	scripts := &sessionsOf{}
	a := New(Options{Tools: listing.New(listing.Options{Catalog: catalog.New(nil, nil), Upstreams: noServers{}}), Scripts: scripts})
	for length, want := range map[int]int{maxSession: http.StatusOK, maxSession + 1: http.StatusRequestEntityTooLarge} {
		w := httptest.NewRecorder()
		a.runScript(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/run", strings.NewReader(`{"code":"return 1","session":"`+strings.Repeat("s", length)+`"}`)))
		if w.Code != want {
			t.Errorf("a session of %d bytes: HTTP %d %s; want %d", length, w.Code, w.Body, want)
		}
	}
	if len(scripts.seen) != 1 {
		t.Errorf("%d scripts ran, want 1", len(scripts.seen))
	}
}
