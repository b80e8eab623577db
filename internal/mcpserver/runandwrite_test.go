package mcpserver

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
)

// Messages before the response, and the start of the event stream after
// StreamAfter, reach the caller while the goroutine of its request runs the
// call.
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

// A request counts as being answered until its response is written, in both
// eras. A stream that only listens does not.
func TestRequestsBeingAnsweredAreCounted(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	s := newSite(t, Options{}, &scripted{serve: func(_ context.Context, r *Request) (json.RawMessage, error) {
		began <- struct{}{}
		<-finish
		return json.RawMessage(`{}`), nil
	}})
	session := s.open(mcp.Version20251125, `{}`)
	listening, h := modern(1, mcp.MethodListen, `{"notifications":{"toolsListChanged":true}}`, `{}`)
	s.send(ctxFor(t), "POST", listening, h...)
	s.send(ctxFor(t), "GET", "", session...)
	body, h := modern(2, "tools/call", `{"name":"x"}`, `{}`)
	answered := make(chan struct{})
	for _, send := range []func(){
		func() { s.post(body, h...) },
		func() { s.post(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x"}}`, session...) },
	} {
		go func() { send(); answered <- struct{}{} }()
		<-began
	}
	if n := s.Answering(); n != 2 {
		t.Errorf("%d requests are being answered, want 2", n)
	}
	close(finish)
	<-answered
	<-answered
	for ctx := ctxFor(t); s.Answering() != 0; { // the handler returns after the client has read
		select {
		case <-ctxTick(t):
		case <-ctx.Done():
			t.Fatalf("%d requests are being answered, want none", s.Answering())
		}
	}
}

// A request on a byte stream counts until the client reads its response.
func TestRequestsOnStreamsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		s := New(Options{}, &scripted{serve: func(context.Context, *Request) (json.RawMessage, error) {
			<-finish
			return json.RawMessage(`{}`), nil
		}})
		l := newLine(t, s)
		want := func(n int, when string) {
			t.Helper()
			synctest.Wait()
			if got := s.Answering(); got != n {
				t.Errorf("%d requests are being answered %s, want %d", got, when, n)
			}
		}
		listening, _ := modern(1, mcp.MethodListen, `{"notifications":{"toolsListChanged":true}}`, `{}`)
		l.ask(listening)
		want(0, "while the client listens")
		body, _ := modern(2, "tools/call", `{"name":"x"}`, `{}`)
		l.send(body)
		want(1, "during a call")
		close(finish)
		want(1, "before the answer is read")
		if m := l.want(); m.ID != "2" {
			t.Errorf("answer %+v", m)
		}
		want(0, "at the end")
	})
}
