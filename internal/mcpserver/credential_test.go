package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// revocable is a credential that a test ends.
type revocable struct {
	servers []string // that its caller may use; nil for all

	mu      sync.Mutex
	ended   bool
	users   map[*func()]struct{}
	changed chan struct{} // receives after a stop function was called
}

func newRevocable() *revocable {
	return &revocable{users: map[*func()]struct{}{}, changed: make(chan struct{}, 1000)}
}

func (c *revocable) OnEnd(f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		go f()
	}
	c.users[&f] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.users, &f)
		c.changed <- struct{}{}
	}
}

func (c *revocable) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for f := range c.users {
		go (*f)()
	}
}

// await waits until n functions are registered with OnEnd.
func (c *revocable) await(n int) {
	for {
		c.mu.Lock()
		have := len(c.users)
		c.mu.Unlock()
		if have == n {
			return
		}
		<-c.changed
	}
}

// newKeyedSite serves callers that are admitted with a credential.
func newKeyedSite(t testing.TB, h Handler, credential func() *revocable) *site {
	t.Helper()
	s := New(Options{}, h)
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := credential()
		ctx, cancel := context.WithCancelCause(tool.SetCredential(r.Context(), c))
		defer c.OnEnd(func() { cancel(tool.ErrCredentialEnded) })()
		s.ServeHTTP(w, r.WithContext(tool.WithCaller(ctx, tool.Caller{ID: "key:k", Servers: c.servers})))
	}))
	t.Cleanup(func() {
		s.Close()
		hs.CloseClientConnections()
		hs.Close()
	})
	return &site{Server: s, t: t, url: hs.URL}
}

// TestStreamsEndWithTheirCredential ends the credential of a caller that has
// a session with an open stream and a call, two calls of the stateless era, of
// which one is answered without a stream, and a parked one.
func TestStreamsEndWithTheirCredential(t *testing.T) {
	c := newRevocable()
	begun, ended := make(chan struct{}, 10), make(chan error, 10)
	s := newKeyedSite(t, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		if rawjson.FieldString(r.Params, "name") == "ask" {
			_, err := r.Exchange.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"q"}`))
			ended <- err
			return nil, err
		}
		begun <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}}, func() *revocable { return c })
	h := s.open(mcp.Version20251125, `{}`)
	own := s.send(ctxFor(t), http.MethodGet, "", h...)
	defer own.Body.Close()
	over := make(chan string, 4)
	read := func(r *http.Response, name string) {
		_, _ = io.Copy(io.Discard, r.Body)
		over <- name
	}
	go read(own, "own stream")
	go read(s.send(ctxFor(t), http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`, append(h, "Accept", "text/event-stream")...), "call of a session")
	body, mh := modern(2, "tools/call", `{"name":"wait"}`, elicits)
	streamed := s.send(ctxFor(t), http.MethodPost, body, append(slices.Clone(mh), "Accept", "text/event-stream")...)
	go read(streamed, "stateless call")
	go func() { // there is no response until the end
		read(s.send(ctxFor(t), http.MethodPost, body, append(mh, "Accept", "application/json")...), "stateless call without a stream")
	}()
	<-begun
	<-begun
	<-begun
	asks, ah := modern(3, "tools/call", `{"name":"ask"}`, elicits)
	parked, err := mcp.Decode([]byte(s.post(asks, ah...).body), mcp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	inputs(t, parked.Result)
	sessionEnded := make(chan struct{})
	s.sessions.get(h[1], "key:k").OnEnd(func() { close(sessionEnded) })

	c.end()
	for range 4 {
		if err := <-ended; err == nil {
			t.Error("a call went on")
		}
	}
	for range 4 {
		<-over
	}
	<-sessionEnded // perhaps after its streams, which end with their requests too
	if s.sessions.get(h[1], "key:k") != nil {
		t.Error("the session lives on")
	}
}

// A call that has sent nothing yet is refused when its credential ends.
func TestCallIsRefusedWhenItsCredentialEnds(t *testing.T) {
	c, begun := newRevocable(), make(chan struct{})
	s := newKeyedSite(t, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	}}, func() *revocable { return c })
	go func() {
		<-begun
		c.end()
	}()
	body, h := modern(1, "tools/call", `{"name":"wait"}`, `{}`)
	wantBody(t, s.post(body, append(h, "Accept", "application/json")...), http.StatusUnauthorized, tool.ErrCredentialEnded.Error())
}

// TestSessionFollowsItsNewestCredential uses a session with a second token
// before the first one expires.
func TestSessionFollowsItsNewestCredential(t *testing.T) {
	first, second := newRevocable(), newRevocable()
	var current atomic.Pointer[revocable]
	current.Store(first)
	s := newKeyedSite(t, &scripted{}, current.Load)
	h := s.open(mcp.Version20251125, `{}`)
	first.await(1) // the session
	current.Store(second)
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, h...), 200)
	first.await(0)
	first.end()
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, h...), 200)
	done := make(chan struct{})
	s.sessions.get(h[1], "key:k").OnEnd(func() { close(done) })
	second.end()
	<-done
}

// A session gets only the notifications that are allowed by the credential with
// which it was last used.
func TestNotificationsFollowTheNewestCredential(t *testing.T) {
	wide, narrow := newRevocable(), newRevocable()
	narrow.servers = []string{"ours"}
	var current atomic.Pointer[revocable]
	s := newKeyedSite(t, &scripted{}, current.Load)
	current.Store(wide)
	h := s.open(mcp.Version20251125, `{}`)
	theirs := func(c *tool.Caller) bool { return c.MaySee("theirs") }
	s.NotifyCallers(theirs, "notifications/one", nil)
	current.Store(narrow)
	e := readEvents(t, s.send(ctxFor(t), http.MethodGet, "", h...))
	s.NotifyCallers(theirs, "notifications/two", nil)
	s.Notify("notifications/three", nil)
	for _, want := range []string{"notifications/one", "notifications/three"} {
		if m := e.want(); m.Method != want {
			t.Errorf("got %s, want %s", m.Method, want)
		}
	}
}

// endedAtOnce is a credential that ends while OnEnd is called. It receives what
// the function passed to OnEnd panicked with.
type endedAtOnce chan any

func (c endedAtOnce) OnEnd(f func()) (stop func()) {
	go func() {
		defer func() { c <- recover() }()
		f()
	}()
	for range 10_000 { // f returns, unless it waits for the caller of OnEnd
		runtime.Gosched()
	}
	return func() {}
}

func TestCredentialEndsWhileAStreamIsHijacked(t *testing.T) {
	s := New(Options{}, &scripted{})
	defer s.Close()
	session := s.open(newSession(tool.Local, nil))
	st := session.standalone.(*eventStream)
	credential := make(endedAtOnce, 1)
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reader, _ := st.attach(0)
		r = r.WithContext(tool.SetCredential(r.Context(), credential))
		if !s.hijackStream(&response{w: w, r: r, session: session, st: st, reader: reader}) {
			t.Error("not hijacked")
		}
	}))
	defer hs.Close()
	resp, err := http.Get(hs.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if p := <-credential; p != nil {
		t.Fatalf("panic: %v", p)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // until the stream ends
}
