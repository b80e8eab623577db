package mcpserver

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/tool"
)

// A stream that is read again is kept only once, and no longer than any other.
func TestResumedStreamsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := New(Options{ResumeTimeout: time.Minute}, &scripted{})
		defer srv.Close()
		session := srv.open(newSession(tool.Local, nil))
		serve := func(method, body string, headers ...string) {
			t.Helper()
			r := httptest.NewRequestWithContext(tool.WithCaller(t.Context(), tool.Local), method, "/", strings.NewReader(body))
			for i, headers := 0, append(headers, headerSession, session.id, "Content-Type", "application/json", "Accept", "text/event-stream"); i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			w := httptest.NewRecorder()
			if srv.ServeHTTP(w, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"id":1`) {
				t.Fatalf("%s: %d %s", method, w.Code, w.Body)
			}
		}
		kept := func() []*eventStream {
			session.mu.Lock()
			defer session.mu.Unlock()
			return slices.Clone(session.streams)
		}
		check := func(when string, streams int) {
			t.Helper()
			synctest.Wait()
			if n := len(kept()); n != streams || (srv.replay.Load() == 0) != (streams == 0) {
				t.Errorf("%s: %d streams, %d bytes", when, n, srv.replay.Load())
			}
		}
		for range maxReplay {
			serve("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		}
		for range 2 {
			for _, st := range kept() {
				serve("GET", "", headerLastEvent, eventID(st.id, 0))
			}
		}
		check("read again", maxReplay)
		first := kept()[0]
		time.Sleep(2 * time.Minute)
		check("after ResumeTimeout", 0)

		reader, _ := first.attach(0) // just before it expired
		srv.writeStream(&response{w: httptest.NewRecorder(), r: httptest.NewRequest("GET", "/", nil), session: session, st: first, reader: reader, events: true})
		check("expired while it was read", 0)
	})
}
