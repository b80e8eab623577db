package agentify

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"junctor/internal/pipenettest"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/wsconn"
)

// TestEndOfCredentialReachesStream checks that a client gets a close frame when
// its credential ends, even while an entry is being written, and that a client
// that reads nothing is disconnected within two seconds.
func TestEndOfCredentialReachesStream(t *testing.T) {
	for name, reads := range map[string]bool{"client reads": true, "client reads nothing": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &Debug{Logs: telemetry.NewRing[telemetry.LogEntry](10)}
				ctx, end := context.WithCancelCause(tool.WithCaller(t.Context(), tool.Local))
				defer end(nil)
				served := make(chan struct{})
				s := pipenettest.Start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(served)
					if err := d.watchLogs(w, r.WithContext(ctx)); err != nil {
						t.Error(err)
					}
				})})
				c, _, err := websocket.Dial(t.Context(), pipenettest.URL, &websocket.DialOptions{HTTPClient: &http.Client{Transport: s.Transport(t)}})
				if err != nil {
					t.Fatal(err)
				}
				defer c.CloseNow()
				synctest.Wait()
				for range 3 {
					d.Logs.Add(telemetry.LogEntry{Level: "INFO", Message: "a line"})
				}
				synctest.Wait() // the first is being written
				begun := time.Now()
				end(tool.ErrCredentialEnded)
				synctest.Wait()
				for reads {
					if _, _, err := c.Read(t.Context()); err != nil {
						if code := websocket.CloseStatus(err); code != wsconn.CredentialEnded {
							t.Errorf("close code %d, want %d", code, wsconn.CredentialEnded)
						}
						break
					}
				}
				<-served
				if took := time.Since(begun); took > 2*time.Second {
					t.Errorf("the connection ended after %s", took)
				}
			})
		})
	}
}
