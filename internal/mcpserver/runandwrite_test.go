package mcpserver

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"junctor/internal/mcp"
)

// What a call sends before its answer, and that it goes on, reaches a caller
// while the goroutine of its request runs the call.
func TestResponseIsWrittenWhileItsCallRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		o    Options
		send func(*Request)
	}{
		"a notification": {Options{StreamAfter: time.Hour}, func(r *Request) {
			r.Exchange.Notify(mcp.MethodProgress, json.RawMessage(`{"progressToken":1,"progress":1}`))
		}},
		"a slow call": {Options{StreamAfter: time.Millisecond}, func(*Request) {}},
	} {
		t.Run(name, func(t *testing.T) {
			finish := make(chan struct{})
			s := newSite(t, tt.o, &scripted{serve: func(_ context.Context, r *Request) (json.RawMessage, error) {
				tt.send(r)
				<-finish
				return json.RawMessage(`{"done":true}`), nil
			}})
			body, h := modern(1, "tools/call", `{"name":"x"}`, `{}`)
			resp := s.send(ctxFor(t), "POST", body, h...) // returns when the response has begun
			close(finish)
			e := readEvents(t, resp)
			m := e.want()
			for !m.IsResponse() {
				m = e.want()
			}
			if string(m.Result) != `{"resultType":"complete","done":true}` {
				t.Errorf("answer = %s", m.Result)
			}
		})
	}
}
