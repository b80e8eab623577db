package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/tool"
)

// post sends a message to a view over HTTP.
func (r *fixture) post(path, session, body string) (status int, header http.Header, answer string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(ctxFor(r.t), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Error(err)
		return 0, nil, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Error(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

const initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func TestSubscribeWhileSessionEnds(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"a": newTestServer(issueTool)})
	for round := range 20 {
		_, header, _ := r.post("/mcp/a", "", initializeBody)
		session := header.Get("Mcp-Session-Id")
		if session == "" {
			t.Fatal("no session")
		}
		var wg sync.WaitGroup
		subscribed := make(chan struct{}, 1)
		for w := range 8 {
			wg.Go(func() {
				for i := range 50 {
					status, _, _ := r.post("/mcp/a", session, fmt.Sprintf(
						`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"note:%d-%d-%d"}}`, 10+w*1000+i, round, w, i))
					select {
					case subscribed <- struct{}{}:
					default:
					}
					if status == http.StatusNotFound {
						return
					}
				}
			})
		}
		<-subscribed
		req, err := http.NewRequestWithContext(ctxFor(t), http.MethodDelete, r.url+"/mcp/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Mcp-Session-Id", session)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		wg.Wait()
	}
	f := &r.Face.follows
	eventually(t, "nothing is left of the sessions", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.followers) == 0 && len(f.counts) == 0
	})
}

// subscriber connects to the view of server a and subscribes to resources.
func (r *fixture) subscriber(uris ...string) *mcpclient.Client {
	r.t.Helper()
	c := r.client(mcp.Version20251125, View{Server: "a"})
	for _, uri := range uris {
		do(r.t, c, "resources/subscribe", `{"uri":"`+uri+`"}`)
	}
	return c
}

// subscribed returns the only session with subscriptions.
func (r *fixture) subscribed() *mcpserver.Session {
	f := &r.Face.follows
	f.mu.Lock()
	defer f.mu.Unlock()
	for who := range f.followers {
		return who.session
	}
	r.t.Fatal("no session has a subscription")
	return nil
}

func TestEndOfSessionKeepsSubscriptionsOfTheNext(t *testing.T) {
	a := newTestServer(issueTool)
	a.old = true // the stateless era has no such requests
	held, release := make(chan string, 1), make(chan struct{})
	var once sync.Once
	a.before = func(what string) error {
		if uri, ok := strings.CutPrefix(what, "resources/unsubscribe "); ok {
			once.Do(func() { held <- uri; <-release })
		}
		return nil
	}
	r := newFixture(t, map[string]*testServer{"a": a})
	r.subscriber("note:one", "note:two")
	f, session := &r.Face.follows, r.subscribed()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.end(r.Face, &mcpserver.Request{Caller: tool.Local, Session: session}, session)
	}()
	other := map[string]string{"note:one": "note:two", "note:two": "note:one"}[<-held]
	r.subscriber(other)
	close(release)
	<-ended
	a.mu.Lock()
	defer a.mu.Unlock()
	last := ""
	for _, what := range a.seen {
		if strings.HasSuffix(what, "subscribe "+other) {
			last = what
		}
	}
	if last != "resources/subscribe "+other {
		t.Errorf("the last request about %s: %q, of %q", other, last, a.seen)
	}
}

// A subscription that shares one in progress must not succeed before that one.
func TestSubscriptionWaitsForTheOneUnderWay(t *testing.T) {
	a := newTestServer(issueTool)
	a.old = true // the stateless era has no such requests
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	a.before = func(what string) (err error) {
		if what == "resources/subscribe note:one" {
			once.Do(func() {
				held <- struct{}{}
				<-release
				err = &mcp.Error{Code: mcp.CodeInternalError, Message: "not now"}
			})
		}
		return err
	}
	r := newFixture(t, map[string]*testServer{"a": a})
	subscribe := func(ctx context.Context, uri string) error {
		_, err := r.Face.follows.change(ctx, r.Face, &mcpserver.Request{Method: "resources/subscribe", Caller: tool.Local}, "a", uri)
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- subscribe(ctxFor(t), "note:one") }()
	<-held
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := subscribe(cancelled, "note:one"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request beside the one under way: %v", err)
	}
	if err := subscribe(ctxFor(t), "note:two"); err != nil {
		t.Errorf("another resource: %v", err)
	}
	a.forget()
	close(release)
	if err := <-failed; err == nil {
		t.Error("the first one succeeded")
	}
	if err := subscribe(ctxFor(t), "note:one"); err != nil || !a.has("resources/subscribe note:one") {
		t.Errorf("the next one: %v; seen: %q", err, a.seen)
	}
}

// A subscription survives a restart of the server, which the client does not
// notice.
func TestSubscriptionOutlivesRestartOfServer(t *testing.T) {
	a := newTestServer(issueTool)
	a.old = true // the stateless era has no such requests
	r := newFixture(t, map[string]*testServer{"a": a})
	updated := make(chan struct{}, 1)
	c := r.client(mcp.Version20251125, View{Server: "a"}, func(o *mcpclient.Options) {
		o.OnNotification = func(method string, _ json.RawMessage) {
			if method != mcp.MethodResourceUpdated {
				return
			}
			select {
			case updated <- struct{}{}:
			default:
			}
		}
	})
	do(t, c, "resources/subscribe", `{"uri":"note:one"}`)
	a.forget()
	if err := r.sup.Restart("a"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server is subscribed to again", func() bool { return a.has("resources/subscribe note:one") })
	eventually(t, "the client gets an update", func() bool {
		a.server.Notify(mcp.MethodResourceUpdated, json.RawMessage(`{"uri":"note:one"}`))
		select {
		case <-updated:
			return true
		default:
			return false
		}
	})
}

// For a resource that is not in any list, the servers are tried in turn. The
// request to unsubscribe goes to the server that accepted the subscription.
func TestUnsubscribeReachesTheSubscribedServer(t *testing.T) {
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		t.Run(version, func(t *testing.T) {
			a, b := newTestServer(), newTestServer()
			a.old, b.old = true, true // the stateless era has no such requests
			a.before = func(what string) error {
				if what == "resources/subscribe note:linked" {
					return &mcp.Error{Code: mcp.CodeResourceNotFound, Message: "not here"}
				}
				return nil
			}
			r := newFixture(t, map[string]*testServer{"a": a, "b": b})
			c := r.client(version, View{Mode: DirectMode})
			do(t, c, "resources/subscribe", `{"uri":"note:linked"}`)
			eventually(t, "b is subscribed to", func() bool { return b.has("resources/subscribe note:linked") })
			do(t, c, "resources/unsubscribe", `{"uri":"note:linked"}`)
			eventually(t, "b is unsubscribed from", func() bool { return b.has("resources/unsubscribe note:linked") })
			if a.has("resources/unsubscribe") {
				t.Error("the other server was unsubscribed from")
			}
		})
	}
}

// A client may cancel a subscription that the server has received and not yet
// answered.
func TestCanceledSubscriptionReachesTheServer(t *testing.T) {
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		t.Run(version, func(t *testing.T) {
			s := newTestServer()
			s.old = true // the stateless era has no such requests
			answer := make(chan struct{})
			t.Cleanup(func() { close(answer) })
			s.before = func(what string) error {
				if strings.HasPrefix(what, "resources/subscribe ") {
					<-answer
				}
				return nil
			}
			r := newFixture(t, map[string]*testServer{"a": s})
			c := r.client(version, View{Mode: DirectMode})
			ctx, cancel := context.WithCancel(t.Context())
			var subscribed sync.WaitGroup
			subscribed.Go(func() {
				_, _ = c.Do(ctx, tool.Request{Method: "resources/subscribe", Params: json.RawMessage(`{"uri":"note:one"}`)})
			})
			eventually(t, "the server has the subscription", func() bool { return s.has("resources/subscribe note:one") })
			cancel()
			subscribed.Wait()
			do(t, c, "resources/unsubscribe", `{"uri":"note:one"}`) // in the stateless era, the client cancels its stream
			eventually(t, "the server is unsubscribed from", func() bool { return s.has("resources/unsubscribe note:one") })
		})
	}
}

// The owner of a URI may change while a client is subscribed to it.
func TestUnsubscribeAfterTheOwnerHasChanged(t *testing.T) {
	a, b := newTestServer(), newTestServer()
	a.old, b.old = true, true // the stateless era has no such requests
	a.resources, b.resources = []string{"note:a"}, []string{"note:b", "note:both"}
	r := newFixture(t, map[string]*testServer{"a": a, "b": b})
	c := r.client(mcp.Version20251125, View{Mode: DirectMode})
	do(t, c, "resources/subscribe", `{"uri":"note:both"}`)
	a.mu.Lock()
	a.resources = append(a.resources, "note:both")
	a.mu.Unlock()
	if got := do(t, c, "resources/list", `{}`); !strings.Contains(string(got), "junctor:b:note:both") {
		t.Fatalf("the lists are %s", got)
	}
	do(t, c, "resources/subscribe", `{"uri":"note:both"}`)
	if !a.has("resources/subscribe note:both") || !b.has("resources/subscribe note:both") {
		t.Fatalf("subscribed: %q and %q", a.seen, b.seen)
	}
	do(t, c, "resources/unsubscribe", `{"uri":"note:both"}`)
	if !a.has("resources/unsubscribe note:both") || !b.has("resources/unsubscribe note:both") {
		t.Errorf("unsubscribed: %q and %q", a.seen, b.seen)
	}
}

// A session stores what it needs to unsubscribe, but not the message of its
// first subscription, which may be large.
func TestSubscriptionKeepsNoMessage(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"a": newTestServer(issueTool)})
	r.subscriber("note:one")
	var f subscriptions
	message := subscribeWithLargeMessage(r, &f, r.subscribed())
	eventually(t, "the message is not referred to any more", func() bool {
		time.Sleep(50 * time.Millisecond) // between collections
		runtime.GC()
		return message.Value() == nil
	})
	runtime.KeepAlive(&f)
}

//go:noinline
func subscribeWithLargeMessage(r *fixture, f *subscriptions, s *mcpserver.Session) weak.Pointer[byte] {
	r.t.Helper()
	req := &mcpserver.Request{
		Method: "resources/subscribe", Caller: tool.Local, Session: s, Header: http.Header{},
		Params: json.RawMessage(`{"uri":"note:two","more":"` + strings.Repeat("x", 1<<20) + `"}`),
	}
	req.Exchange.Notify = func(string, json.RawMessage) { _ = req.Arguments() } // like a session's, it refers to its request
	if _, err := f.change(ctxFor(r.t), r.Face, req, "a", "note:2"); err != nil {
		r.t.Fatal(err)
	}
	return weak.Make(&req.Params[0])
}
