package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// line is a caller on a byte stream.
type line struct {
	t    testing.TB
	in   *io.PipeWriter
	out  *mcp.Reader
	done chan error
	stop context.CancelFunc
}

func newLine(t testing.TB, s *Server) *line {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	l := &line{t: t, in: inW, out: mcp.NewReader(outR, mcp.FramingLines, mcp.Limits{}, nil), done: make(chan error, 1), stop: cancel}
	go func() {
		l.done <- s.ServeStream(tool.WithCaller(ctx, tool.Local), inR, outW)
		outW.Close()
	}()
	t.Cleanup(func() {
		inW.Close()
		outR.Close()
		cancel()
	})
	return l
}

func (l *line) send(text string) {
	l.t.Helper()
	if _, err := io.WriteString(l.in, text+"\n"); err != nil {
		l.t.Fatal(err)
	}
}

func (l *line) want() mcp.Message {
	l.t.Helper()
	data, err := l.out.Next()
	if err != nil {
		l.t.Fatal(err)
	}
	m, err := mcp.Decode(data, mcp.Limits{})
	if err != nil {
		l.t.Fatalf("%v: %s", err, data)
	}
	return m
}

func (l *line) ask(text string) mcp.Message {
	l.t.Helper()
	l.send(text)
	return l.want()
}

func (l *line) wantEnd() {
	l.t.Helper()
	select {
	case err := <-l.done:
		if err != nil {
			l.t.Errorf("ServeStream = %v", err)
		}
	case <-time.After(time.Minute):
		l.t.Fatal("ServeStream goes on")
	}
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t"}}}`

func TestBothVersionsOnOneStream(t *testing.T) {
	received := make(chan string, 10)
	h := &scripted{notified: func(_ context.Context, s *Session, method string, _ json.RawMessage) {
		received <- method + " " + string(s.client) + " " + s.ID() + s.protocol + s.caller.ID
	}}
	s := New(Options{}, h)
	l := newLine(t, s)
	if m := l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); m.Error == nil || !strings.Contains(m.Error.Message, "initialize first") {
		t.Errorf("before initialize: %+v", m)
	}
	if m := l.ask(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); m.Result == nil {
		t.Errorf("ping before initialize: %+v", m)
	}
	l.send(`{"jsonrpc":"2.0","method":"notifications/early"}`)
	body, _ := modern(2, "tools/list", ``, `{}`)
	if m := l.ask(body); rawjson.FieldString(m.Result, "resultType") != "complete" {
		t.Errorf("stateless: %+v", m)
	}
	if m := l.ask(initialize); rawjson.FieldString(m.Result, "protocolVersion") != mcp.Version20250618 {
		t.Errorf("initialize: %+v", m)
	}
	if m := l.ask(initialize); m.Error == nil {
		t.Errorf("initialize twice: %+v", m)
	}
	l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if got := <-received; got != `notifications/initialized {"name":"t"} 2025-06-18local` {
		t.Errorf("received %s", got)
	}
	if m := l.ask(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"arguments":{"a": 1}}}`); string(m.Result) != `{"a": 1}` || m.ID != `"x"` {
		t.Errorf("call: %+v", m)
	}
	body, _ = modern(3, "tools/list", `{"_meta":{"`+mcp.MetaProtocolVersion+`":"2031-01-01"}}`, `{}`)
	body = strings.ReplaceAll(body, mcp.Version20260728, "2031-01-01")
	if m := l.ask(body); m.Error == nil || m.Error.Code != mcp.CodeUnsupportedProtocol {
		t.Errorf("unknown version: %+v", m)
	}
	s.Notify("notifications/tools/list_changed", nil)
	if m := l.want(); m.Method != "notifications/tools/list_changed" {
		t.Errorf("got %+v", m)
	}
	// A batch is answered message by message.
	l.send(`[{"jsonrpc":"2.0","id":10,"method":"ping"},{"jsonrpc":"2.0","id":11,"method":"ping"}]`)
	if a, b := l.want(), l.want(); a.ID == b.ID || a.Result == nil || b.Result == nil {
		t.Errorf("batch: %+v %+v", a, b)
	}
	l.in.Close()
	l.wantEnd()
}

func TestCancellationOnAStream(t *testing.T) {
	b := newBlocked()
	s := New(Options{MaxCalls: 2}, b)
	l := newLine(t, s)
	l.ask(initialize)
	l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	r := <-b.begun
	if m := l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`); m.Error == nil || m.Error.Code != mcp.CodeInvalidRequest {
		t.Errorf("the same id: %+v", m)
	}
	l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	b.wantEnd(t, errCancelledByCaller)
	r.Exchange.Notify("notifications/progress", nil) // nothing more is sent for it
	if m := l.ask(`{"jsonrpc":"2.0","id":2,"method":"ping"}`); m.ID != "2" {
		t.Errorf("after a cancelled call came %+v", m)
	}
	body, _ := modern(3, "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`, `{}`)
	if m := l.ask(body); m.Method != mcp.MethodSubscriptionsAcknowledged {
		t.Errorf("listen: %+v", m)
	}
	for s.subs.len() == 0 {
		<-ctxTick(t)
	}
	l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	for s.subs.len() > 0 {
		<-ctxTick(t)
	}
	l.send(`{"jsonrpc":"2.0","id":4,"method":"tools/call"}`)
	<-b.begun
	l.stop()
	l.wantEnd()
	b.wantEnd(t, errCallerLeft)
}

// A cancelled call that continues is not mistaken for a later one with its id.
func TestIDOfACancelledCallIsUsedAgain(t *testing.T) {
	for name, initializing := range map[string]bool{"while it runs": false, "before it runs": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				initialized, cancelled := make(chan struct{}), make(chan error, 2)
				release := map[string]chan struct{}{"A": make(chan struct{}), "B": make(chan struct{})}
				l := newLine(t, New(Options{}, &scripted{
					describe: func(context.Context, *Request) (Description, error) {
						<-initialized
						return Description{}, nil
					},
					serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
						name := r.Name()
						<-release[name]
						if ctx.Err() != nil {
							cancelled <- fmt.Errorf("%s: %w", name, context.Cause(ctx))
						}
						of := json.RawMessage(`{"of":"` + name + `"}`)
						r.Exchange.Notify("notifications/progress", of)
						return of, nil
					},
				}))
				l.send(initialize)
				if !initializing {
					close(initialized)
					l.want()
				}
				for _, text := range []string{
					`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"A"}}`,
					`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
					`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"B"}}`,
				} {
					l.send(text)
					synctest.Wait()
				}
				if initializing {
					close(initialized)
					l.want()
				}
				close(release["A"])
				synctest.Wait() // A has ended
				close(release["B"])
				if m := l.want(); m.Method != "notifications/progress" || string(m.Params) != `{"of":"B"}` {
					t.Errorf("got %+v, want the progress of B", m)
				}
				if m := l.want(); m.ID != "1" || string(m.Result) != `{"of":"B"}` {
					t.Errorf("got %+v, want the answer of B", m)
				}
				if m := l.ask(`{"jsonrpc":"2.0","id":2,"method":"ping"}`); m.ID != "2" {
					t.Errorf("after the answer came %+v", m)
				}
				if err := <-cancelled; err.Error() != "A: "+errCancelledByCaller.Error() || len(cancelled) > 0 {
					t.Errorf("cancelled: %v and %d more, want A alone", err, len(cancelled))
				}
				l.in.Close()
				l.wantEnd()
			})
		})
	}
}

func TestAskOnAStream(t *testing.T) {
	s := New(Options{}, asking(1, nil))
	l := newLine(t, s)
	l.ask(initialize)
	t.Run("handshake", func(t *testing.T) {
		l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		l.want() // progress
		q := l.want()
		l.send(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"content":{"x":"yes"}}}`)
		l.want()
		if m := l.want(); string(m.Result) != `{"answers":["yes"]}` {
			t.Errorf("answer = %+v", m)
		}
	})
	t.Run("stateless", func(t *testing.T) {
		body, _ := modern(2, "tools/call", `{"name":"x"}`, elicits)
		l.send(body)
		l.want()
		keys, state := inputs(t, l.want().Result)
		body, _ = modern(3, "tools/call", `{"name":"x","requestState":"`+state+`","inputResponses":{"`+keys[0]+`":{"content":{"x":"yes"}}}}`, elicits)
		l.send(body)
		l.want()
		if m := l.want(); m.ID != "3" || rawjson.FieldString(m.Result, "resultType") != "complete" {
			t.Errorf("answer = %+v", m)
		}
	})
}

// Requests that wait while initialize is answered are not refused.
func TestRequestsDuringInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		h := &scripted{}
		var failed atomic.Bool
		h.describe = func(context.Context, *Request) (Description, error) {
			<-goOn
			if failed.CompareAndSwap(false, true) {
				return Description{}, errors.New("not yet")
			}
			return Description{}, nil
		}
		l := newLine(t, New(Options{}, h))
		for _, fails := range []bool{true, false} {
			l.send(initialize)
			l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			synctest.Wait() // both requests wait
			goOn <- struct{}{}
			a, b := l.want(), l.want()
			if a.ID != "0" || b.ID != "1" || (a.Error != nil) != fails || (b.Error != nil) != fails {
				t.Errorf("fails %v: %+v %+v", fails, a, b)
			}
		}
	})
}

func TestStreamEnds(t *testing.T) {
	t.Run("calls in flight are answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun, goOn := make(chan struct{}), make(chan struct{})
			l := newLine(t, New(Options{}, &scripted{serve: func(ctx context.Context, _ *Request) (json.RawMessage, error) {
				close(begun)
				select {
				case <-goOn:
					return json.RawMessage(`{"late":true}`), nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}}))
			l.ask(initialize)
			l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
			<-begun
			l.in.Close()
			synctest.Wait() // the end of the input has been read
			close(goOn)
			if m := l.want(); string(m.Result) != `{"late":true}` {
				t.Errorf("answer = %+v", m)
			}
			l.wantEnd()
		})
	})
	t.Run("but not indefinitely", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBlocked()
			l := newLine(t, New(Options{}, b))
			l.ask(initialize)
			l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
			<-b.begun
			l.in.Close()
			b.wantEnd(t, errCallerLeft)
			l.want()
			l.wantEnd()
		})
	})
	t.Run("nobody reads", func(t *testing.T) {
		b := newBlocked()
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- New(Options{}, b).ServeStream(context.Background(), inR, outW) }()
		fmt.Fprintln(inW, initialize)
		out := mcp.NewReader(outR, mcp.FramingLines, mcp.Limits{}, nil)
		out.Next()
		fmt.Fprintln(inW, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		r := <-b.begun
		outR.Close()
		r.Exchange.Notify("notifications/progress", nil)
		b.wantEnd(t, errCallerLeft)
		if err := <-done; err == nil {
			t.Error("ServeStream = nil")
		}
	})
	t.Run("the server closes", func(t *testing.T) {
		s := New(Options{}, &scripted{})
		l := newLine(t, s)
		l.ask(initialize)
		s.Close()
		l.wantEnd()
		if err := s.ServeLink(context.Background(), nil); err == nil {
			t.Error("served after Close")
		}
	})
}

func TestServeLink(t *testing.T) {
	s := New(Options{}, &scripted{})
	near, far := mcp.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.ServeLink(context.Background(), far) }()
	c, err := mcpclient.Connect(ctxFor(t), mcpclient.OverLink(near), mcpclient.Options{DiscoverTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Info(); got.Name != "scripted" || got.Protocol != mcp.Version20260728 {
		t.Errorf("Info = %+v", got)
	}
	c.Close()
	if err := <-done; err != nil {
		t.Errorf("ServeLink = %v", err)
	}
}

func TestOutboxIsBounded(t *testing.T) {
	near, far := mcp.Pipe()
	o := newOutbox(near, 1000)
	for i := range 5000 {
		o.put(&mcp.Message{Method: "notifications/progress", Params: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
	}
	if n := len(o.queue); n == 0 || n > outboxMessages {
		t.Errorf("%d queued", n)
	}
	queued := len(o.queue)
	o.put(&mcp.Message{ID: "1", Method: "roots/list"})
	if len(o.queue) != queued+1 {
		t.Error("a question was dropped")
	}
	answered := make(chan struct{})
	go func() {
		o.answer(&mcp.Message{ID: "2", Result: json.RawMessage(`{}`)})
		o.close()
		close(answered)
	}()
	go func() { o.run(); near.Close() }()
	var last mcp.Message
	for {
		m, err := far.Receive()
		if err != nil {
			break
		}
		last = m
	}
	<-answered
	if last.ID != "2" {
		t.Errorf("last message %+v", last)
	}
}

func (t *subscriptionTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}
