package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// ledger is a server that keeps tasks, subscriptions and a log level for
// whoever is connected, as most servers do.
type ledger struct {
	server *mcpserver.Server

	mu      sync.Mutex
	seen    []string
	tasks   []string
	release chan struct{} // calls of the tool hold return when it is closed
	holding chan struct{} // receives a value for each call of hold
	ending  chan struct{} // resources/unsubscribe returns when it is closed; nil: immediately
	suffix  string        // of the ids of tasks
	links   []mcp.Link    // its ends of the connections
	away    bool          // it cannot be reached
}

// cut closes all connections. If away is set, it refuses new ones.
func (l *ledger) cut(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, link := range l.links {
		link.Close()
	}
	l.links, l.away = nil, away
}

func (l *ledger) dial(context.Context) (mcpclient.Transport, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return nil, errors.New("the ledger is away")
	}
	near, far := mcp.Pipe()
	l.links = append(l.links, far)
	go func() { _ = l.server.ServeLink(context.Background(), handshakeOnly{far}) }()
	return mcpclient.OverLink(near), nil
}

func newLedger() *ledger {
	l := &ledger{release: make(chan struct{}), holding: make(chan struct{}, 10)}
	l.server = mcpserver.New(mcpserver.Options{DrainTimeout: time.Millisecond}, l)
	return l
}

func (l *ledger) Describe(context.Context, *mcpserver.Request) (mcpserver.Description, error) {
	return mcpserver.Description{
		Info:         json.RawMessage(`{"name":"ledger","version":"1"}`),
		Capabilities: json.RawMessage(`{"logging":{},"resources":{"subscribe":true},"tools":{},"tasks":{"list":{}}}`),
	}, nil
}

func (l *ledger) Notified(_ context.Context, _ *mcpserver.Session, method string, _ json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, method)
}

func (l *ledger) Serve(_ context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r.Method {
	case "tools/list":
		return json.RawMessage(`{"tools":[{"name":"hold","inputSchema":{"type":"object"}}]}`), nil
	case "tools/call":
		if rawjson.Field(r.Params, "task") != nil {
			id := fmt.Sprintf("task-%d%s", len(l.tasks)+1, l.suffix)
			l.tasks = append(l.tasks, id)
			return json.RawMessage(`{"task":{"taskId":"` + id + `","status":"working"}}`), nil
		}
		l.holding <- struct{}{}
		l.mu.Unlock()
		<-l.release
		l.mu.Lock()
		return json.RawMessage(`{"content":[]}`), nil
	case "tasks/list":
		var list []string
		for _, id := range l.tasks {
			list = append(list, `{"taskId":"`+id+`","status":"completed"}`)
		}
		return json.RawMessage(`{"tasks":[` + strings.Join(list, ",") + `],"nextCursor":"x"}`), nil
	case "tasks/get", "tasks/result", "tasks/cancel":
		l.seen = append(l.seen, r.Method+" "+rawjson.FieldString(r.Params, "taskId"))
		return json.RawMessage(`{"report":"of ` + rawjson.FieldString(r.Params, "taskId") + `"}`), nil
	case "resources/subscribe", "resources/unsubscribe":
		l.seen = append(l.seen, r.Method+" "+rawjson.FieldString(r.Params, "uri"))
		if ending := l.ending; ending != nil && r.Method == "resources/unsubscribe" {
			l.mu.Unlock()
			<-ending
			l.mu.Lock()
		}
		return json.RawMessage(`{}`), nil
	case "logging/setLevel":
		l.seen = append(l.seen, r.Method+" "+rawjson.FieldString(r.Params, "level"))
		return json.RawMessage(`{}`), nil
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: r.Method}
}

func (l *ledger) count(what string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.seen {
		if s == what {
			n++
		}
	}
	return n
}

// handshakeOnly hides server/discover, so that sessions are of the handshake era.
type handshakeOnly struct{ mcp.Link }

func (l handshakeOnly) Receive() (mcp.Message, error) {
	for {
		m, err := l.Link.Receive()
		if err != nil || m.Method != "server/discover" {
			return m, err
		}
		if err := l.Send(&mcp.Message{ID: m.ID, Error: &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "unknown"}}); err != nil {
			return m, err
		}
	}
}

// runLedger runs a Supervisor with the ledger as its server.
func runLedger(t *testing.T, mode upstream.SessionMode, edit ...func(*upstream.Options)) (*fixture, *ledger) {
	l := newLedger()
	cfg := upstream.DefaultConfig()
	cfg.Name, cfg.Transport, cfg.SessionMode = "ledger", upstream.InProcess, mode
	o := upstream.Options{InProcess: map[string]upstream.Dialer{"ledger": l.dial}}
	for _, e := range edit {
		e(&o)
	}
	r := newFixture(t, o, cfg).run()
	r.state("ledger", upstream.Connected)
	return r, l
}

// as sends a request of a caller.
func (r *fixture) as(caller, method, params string) (string, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	result, err := r.Do(ctx, "ledger", tool.Request{Method: method, Params: json.RawMessage(params), Caller: caller})
	return string(result), err
}

func (r *fixture) mustAs(caller, method, params string) string {
	r.t.Helper()
	got, err := r.as(caller, method, params)
	if err != nil {
		r.t.Fatalf("%s: %s %s: %v", caller, method, params, err)
	}
	return got
}

func TestTasksBelongToTheirCaller(t *testing.T) {
	owners := &sharedOwners{owners: map[string]string{}}
	for _, mode := range []upstream.SessionMode{upstream.Shared, upstream.PerCaller} {
		t.Run(string(mode), func(t *testing.T) {
			r, l := runLedger(t, mode, func(o *upstream.Options) { o.Tasks = owners })
			const start = `{"name":"hold","arguments":{},"task":{"ttl":60000}}`
			r.mustAs("a", "tools/call", start) // task-1
			r.mustAs("b", "tools/call", start) // task-2
			if got := r.mustAs("b", "tasks/list", `{}`); got != `{"tasks":[{"taskId":"task-2","status":"completed"}],"nextCursor":"x"}` {
				t.Errorf("b lists %s", got)
			}
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel", "tasks/future"} {
				if got, err := r.as("b", method, `{"taskId":"task-1"}`); err == nil || !strings.Contains(err.Error(), "no such task") {
					t.Errorf("b: %s of a's task = %s, %v", method, got, err)
				}
				if l.count(method+" task-1") != 0 {
					t.Errorf("%s of b reached the server", method)
				}
			}
			if got := r.mustAs("a", "tasks/result", `{"taskId":"task-1"}`); got != `{"report":"of task-1"}` {
				t.Errorf("a gets %s", got)
			}
			l.server.Notify("notifications/tasks/status", json.RawMessage(`{"taskId":"task-1","status":"completed"}`))
			l.server.Notify("notifications/tasks/status", json.RawMessage(`{"taskId":"unknown","status":"completed"}`))
			l.server.Notify("notifications/tools/list_changed", nil) // comes last
			r.eventually("the notifications", func() bool { return r.received("tools/list_changed") })
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, note := range r.callerNotes {
				if strings.Contains(note, "tasks/status") && !strings.HasPrefix(note, "a ") {
					t.Errorf("sent: %q", note)
				}
			}
		})
	}
	// Another process, or this one after a restart, has the owners too.
	r, l := runLedger(t, upstream.Shared, func(o *upstream.Options) { o.Tasks = owners })
	l.tasks = []string{"task-1", "task-2"}
	if got := r.mustAs("a", "tasks/list", `{}`); !strings.Contains(got, "task-1") || strings.Contains(got, "task-2") {
		t.Errorf("a lists %s in another process", got)
	}
}

// received reports whether a notification containing part was received.
func (r *fixture) received(part string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.callerNotes, func(s string) bool { return strings.Contains(s, part) })
}

type sharedOwners struct {
	mu     sync.Mutex
	owners map[string]string
}

func (o *sharedOwners) ClaimTask(_ context.Context, server, id, caller string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.owners[server+id] == "" {
		o.owners[server+id] = caller
	}
	return nil
}

func (o *sharedOwners) TaskOwner(_ context.Context, server, id string) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.owners[server+id], nil
}

func TestSubscriptionsOfCallersAreCounted(t *testing.T) {
	r, l := runLedger(t, upstream.Shared)
	const uri = `{"uri":"note:one"}`
	r.mustAs("a", "resources/subscribe", uri)
	r.mustAs("b", "resources/unsubscribe", uri) // never subscribed
	r.mustAs("b", "resources/subscribe", uri)
	r.mustAs("b", "resources/unsubscribe", uri)
	if n := l.count("resources/unsubscribe note:one"); n != 0 {
		t.Errorf("a's subscription was ended %d times by b", n)
	}
	r.mustAs("a", "resources/unsubscribe", uri)
	if n := l.count("resources/unsubscribe note:one"); n != 1 {
		t.Errorf("the server was notified of the end %d times", n)
	}
}

// TestSubscriptionFollowsTheEndOfAnotherCallers: the server gets the requests
// about one resource in the order in which subscribers were added and removed,
// and an unanswered one does not delay those about other resources.
func TestSubscriptionFollowsTheEndOfAnotherCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := runLedger(t, upstream.Shared)
		const one, two = `{"uri":"note:one"}`, `{"uri":"note:two"}`
		r.mustAs("a", "resources/subscribe", one)
		l.ending = make(chan struct{})
		var wg sync.WaitGroup
		for _, request := range [][2]string{{"a", "resources/unsubscribe"}, {"b", "resources/subscribe"}} {
			wg.Go(func() {
				if _, err := r.as(request[0], request[1], one); err != nil {
					t.Errorf("%s: %v", request, err)
				}
			})
			synctest.Wait()
		}
		if n := l.count("resources/subscribe note:one"); n != 1 {
			t.Errorf("b was subscribed while a's end was under way: %q", l.seen)
		}
		r.mustAs("b", "resources/subscribe", two)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Do(ctx, "ledger", tool.Request{Method: "resources/subscribe", Params: json.RawMessage(one), Caller: "c"}); tool.KindOf(err) != tool.Canceled {
			t.Errorf("a cancelled request: %v", err)
		}
		close(l.ending)
		wg.Wait()
		if n := l.count("resources/subscribe note:one"); n != 2 || l.seen[len(l.seen)-1] != "resources/subscribe note:one" {
			t.Errorf("seen: %q", l.seen)
		}
	})
}

func TestLogLevelsOfCallersAreKeptApart(t *testing.T) {
	r, l := runLedger(t, upstream.Shared)
	set := func(caller, level string) { r.mustAs(caller, "logging/setLevel", `{"level":"`+level+`"}`) }
	set("a", "debug")
	set("b", "emergency")
	if l.count("logging/setLevel emergency") != 0 {
		t.Error("b silenced the server for a")
	}
	set("a", "error")
	if l.count("logging/setLevel error") != 1 {
		t.Error("the server was not given the most verbose level that is left")
	}
	if _, err := r.as("a", "logging/setLevel", `{"level":"loud"}`); err != nil {
		t.Error(err) // the ledger accepts any level
	}
	// A message of a call is sent to its caller if the caller's own level
	// allows it.
	var got []string
	done := make(chan error, 1)
	go func() {
		_, err := r.callAs("b", "ledger", "hold", `{}`, tool.Exchange{Notify: func(_ string, params json.RawMessage) {
			got = append(got, rawjson.FieldString(params, "data"))
		}})
		done <- err
	}()
	<-l.holding
	l.server.Notify("notifications/message", json.RawMessage(`{"level":"error","data":"low"}`))
	l.server.Notify("notifications/message", json.RawMessage(`{"level":"emergency","data":"high"}`))
	close(l.release)
	if err := <-done; err != nil || !slices.Equal(got, []string{"high"}) {
		t.Errorf("b got %q, %v", got, err)
	}
}

func TestLogMessagesReachNoOtherCaller(t *testing.T) {
	for _, mode := range []upstream.SessionMode{upstream.Shared, upstream.PerCaller} {
		t.Run(string(mode), func(t *testing.T) {
			r, l := runLedger(t, mode)
			var wg sync.WaitGroup
			for _, caller := range []string{"a", "b"} { // two calls in flight
				wg.Go(func() {
					if _, err := r.callAs(caller, "ledger", "hold", `{}`, tool.Exchange{}); err != nil {
						t.Error(err)
					}
				})
				<-l.holding
			}
			for _, method := range []string{"notifications/message", "notifications/elicitation/complete", "notifications/vendor"} {
				l.server.Notify(method, json.RawMessage(`{"level":"info","data":"private","elicitationId":"1"}`))
			}
			l.server.Notify("notifications/tools/list_changed", nil)
			r.eventually("the last one", func() bool { return r.received("tools/list_changed") })
			close(l.release)
			wg.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, note := range r.callerNotes {
				if strings.Contains(note, "private") && !(mode == upstream.PerCaller && (strings.HasPrefix(note, "a ") || strings.HasPrefix(note, "b "))) {
					t.Errorf("sent: %q", note)
				}
			}
		})
	}
}

// What the server logs while the call of b is the only one in flight may be
// about a call of a that is over.
func TestLateLogMessagesReachNoOtherCaller(t *testing.T) {
	r, l := runLedger(t, upstream.Shared)
	r.mustAs("a", "tools/call", `{"name":"hold","arguments":{},"task":{"ttl":60000}}`)
	var got []string
	done := make(chan error, 1)
	go func() {
		_, err := r.callAs("b", "ledger", "hold", `{}`, tool.Exchange{Notify: func(_ string, params json.RawMessage) {
			got = append(got, rawjson.FieldString(params, "data"))
		}})
		done <- err
	}()
	<-l.holding
	l.server.Notify("notifications/message", json.RawMessage(`{"level":"info","data":"private"}`))
	l.server.Notify("notifications/tools/list_changed", nil) // comes last
	r.eventually("the last one", func() bool { return r.received("tools/list_changed") })
	close(l.release)
	if err := <-done; err != nil || len(got) > 0 || r.received("private") {
		t.Errorf("b got %q, %v", got, err)
	}
}
