package chat

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"junctor/internal/catalog"
	"junctor/internal/listing"
	"junctor/internal/llm"
	"junctor/internal/pipenettest"
	"junctor/internal/tool"
	"junctor/internal/wsconn"
)

// endingConnection is a WebSocket in a synctest bubble. Writes block until the
// other side reads.
type endingConnection struct {
	client  *websocket.Conn
	net     net.Conn // the client's side
	watcher *Watcher
	end     func()        // ends the caller's credential
	served  chan struct{} // closed when the gateway has closed the connection
}

func newEndingConnection(t *testing.T) *endingConnection {
	t.Helper()
	h := quiet(nil)
	h.Models = func() *llm.Set { return llm.NewSet() }
	h.Tools = listing.New(listing.Options{Catalog: catalog.New(nil, nil), Upstreams: states{}})
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	e := &endingConnection{end: func() { cancel(tool.ErrCredentialEnded) }, served: make(chan struct{})}
	s := pipenettest.Start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(e.served)
		h.ServeWS(w, r.WithContext(ctx))
	})})
	dial := func(ctx context.Context, _, _ string) (_ net.Conn, err error) {
		e.net, err = s.Dial(ctx)
		return e.net, err
	}
	var err error
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	e.client, _, err = websocket.Dial(t.Context(), pipenettest.URL, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.client.CloseNow() })
	if _, _, err := e.client.Read(t.Context()); err != nil { // the greeting
		t.Fatal(err)
	}
	for _, s := range h.sessions {
		for w := range s.watchers {
			e.watcher = w
		}
	}
	return e
}

// writeReply starts to write messages, which the client does not read yet.
func (e *endingConnection) writeReply() {
	for range 3 {
		e.watcher.Send("text", map[string]string{"content": "a part of the reply"})
	}
	synctest.Wait()
}

// closeCode reads until the connection is closed and returns the close code.
func (e *endingConnection) closeCode(t *testing.T) websocket.StatusCode {
	t.Helper()
	for {
		if _, _, err := e.client.Read(t.Context()); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func TestEndOfCredentialReachesClient(t *testing.T) {
	for name, tt := range map[string]struct{ reply, send bool }{
		"idle":                 {},
		"reply is written":     {reply: true},
		"client sends as well": {reply: true, send: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEndingConnection(t)
				if tt.reply {
					e.writeReply()
				}
				e.end()
				synctest.Wait()
				if tt.send {
					if err := e.client.Write(t.Context(), websocket.MessageText, []byte(`{"type":"history"}`)); err != nil {
						t.Error(err)
					}
					synctest.Wait()
				}
				if code := e.closeCode(t); code != wsconn.CredentialEnded {
					t.Errorf("close code %d, want %d", code, wsconn.CredentialEnded)
				}
				<-e.served
			})
		})
	}
}

// TestConnectionEndsSoonAfterCredential checks that a connection is closed
// within two seconds after its credential ends, whatever the client does.
func TestConnectionEndsSoonAfterCredential(t *testing.T) {
	for name, client := range map[string]func(*endingConnection){
		"reads nothing":               func(e *endingConnection) { e.writeReply() },
		"does not answer close frame": func(e *endingConnection) { go func() { _, _ = io.Copy(io.Discard, e.net) }() },
		"stops in the middle of a message": func(e *endingConnection) {
			go func() { _, _ = io.Copy(io.Discard, e.net) }()
			// A frame with a text of 1,000 bytes, whose rest comes slowly.
			_, _ = e.net.Write([]byte{0x81, 0x80 | 126, 1000 >> 8, 1000 & 0xff, 0, 0, 0, 0, '{'})
			go func() {
				time.Sleep(time.Second / 2)
				_, _ = e.net.Write([]byte{' '})
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEndingConnection(t)
				client(e)
				begun := time.Now()
				e.end()
				<-e.served
				if took := time.Since(begun); took > 2*time.Second {
					t.Errorf("the connection ended after %s", took)
				}
				synctest.Wait()
				if _, err := e.net.Write([]byte{' '}); err == nil {
					t.Error("the client's side is still open")
				}
			})
		})
	}
}
