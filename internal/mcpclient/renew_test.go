package mcpclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// forgetful returns a server that has lost its first session and accepts calls
// only on a session whose handshake is complete. initialized reports whether it
// accepts notifications/initialized of a later session.
func forgetful(t *testing.T, initialized func(w http.ResponseWriter, r *http.Request, session string) bool) (*webServer, http.Handler) {
	var whole sync.Map
	s := &webServer{t: t, deleted: make(chan string, 8)}
	s.handle = func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		session := r.Header.Get("Mcp-Session-Id")
		_, complete := whole.Load(session)
		switch {
		case noStream(w, r):
		case session == "s1":
			w.WriteHeader(http.StatusNotFound)
		case !complete:
			w.Header().Set("Content-Type", "application/json")
			w.Write(mcp.AppendMessage(nil, &mcp.Message{ID: m.ID, Error: &mcp.Error{Code: mcp.CodeInvalidParams, Message: "request before the end of the handshake"}}))
		default:
			plain(w, m, fmt.Sprintf(`{"session":%q}`, session))
		}
	}
	return s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if session := r.Header.Get("Mcp-Session-Id"); session != "s1" && rawjson.FieldString(body, "method") == "notifications/initialized" {
			if !initialized(w, r, session) {
				return
			}
			whole.Store(session, true)
		}
		s.ServeHTTP(w, r)
	})
}

// A call that is cancelled while it replaces the session returns immediately.
// The replacement continues, and calls wait until the new session is complete.
func TestHTTPRenewalOutlivesItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held, release := make(chan struct{}), make(chan struct{})
		s, handler := forgetful(t, func(_ http.ResponseWriter, r *http.Request, _ string) bool {
			close(held)
			select {
			case <-release:
				return true
			case <-r.Context().Done():
				return false
			}
		})
		var renewed atomic.Int32
		c := pipeWeb(t, Options{OnSessionReplaced: func() { renewed.Add(1) }}, HTTPOptions{}, handler)
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, err := c.Do(ctx, toolsCall)
			first <- err
		}()
		<-held
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if result, err := c.Do(t.Context(), toolsCall); err != nil || string(result) != `{"session":"s2"}` {
					t.Errorf("a call beside the renewal: %s, %v", result, err)
				}
			})
		}
		synctest.Wait()
		cancel()
		if err := <-first; tool.KindOf(err) != tool.Canceled {
			t.Errorf("the cancelled call: %v", err)
		}
		close(release)
		wg.Wait()
		if result, err := c.Do(t.Context(), toolsCall); err != nil || string(result) != `{"session":"s2"}` {
			t.Errorf("a call after the renewal: %s, %v", result, err)
		}
		if n := s.sessions.Load(); n != 2 || renewed.Load() != 1 {
			t.Errorf("%d sessions, OnSessionReplaced %d times, want 2 and 1", n, renewed.Load())
		}
	})
}

// A session whose handshake failed is not used: the next call makes another one.
func TestHTTPRenewalIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, handler := forgetful(t, func(w http.ResponseWriter, _ *http.Request, session string) bool {
			if session == "s2" {
				w.WriteHeader(http.StatusUnauthorized)
			}
			return session != "s2"
		})
		c := pipeWeb(t, Options{}, HTTPOptions{}, handler)
		if _, err := c.Do(t.Context(), toolsCall); tool.KindOf(err) != tool.UpstreamAuthRequired {
			t.Errorf("the first call: %v", err)
		}
		if result, err := c.Do(t.Context(), toolsCall); err != nil || string(result) != `{"session":"s3"}` {
			t.Errorf("the next call: %s, %v", result, err)
		}
	})
}
