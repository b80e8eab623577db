package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
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

// A call on the goroutine of its request ends when its caller leaves.
func TestCallEndsWhenItsCallerLeaves(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	s := newSite(t, Options{StreamAfter: time.Hour}, &scripted{serve: func(ctx context.Context, _ *Request) (json.RawMessage, error) {
		close(begun)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}})
	body, h := modern(1, "tools/call", `{"name":"x"}`, `{}`)
	ctx, leave := context.WithCancel(ctxFor(t))
	go func() {
		<-begun
		leave()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Error("a caller that has left got an answer")
	}
	if err := <-ended; err != errCallerLeft {
		t.Errorf("the call ended with %v", err)
	}
}
