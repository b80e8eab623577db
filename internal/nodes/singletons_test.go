package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/sqlite"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// forwardTo returns a function that forwards a request from one node to
// another one with the given executor, and the singletons of both.
func forwardTo(t *testing.T, execute Executor) (do func(context.Context, tool.Request) (json.RawMessage, error), from, to *Singletons) {
	t.Helper()
	st, err := sqlite.Open(context.Background(), store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() { _ = st.Run(ctx) })
	// Both nodes use one handle of the store, so that messages are announced
	// immediately.
	node := func(execute Executor) *Singletons {
		n := New(Options{Store: st, Name: "test", Log: slog.New(slog.DiscardHandler)})
		n.leaseTime = time.Minute // a slow machine must not make a node look dead
		s := n.Singletons(execute)
		if _, _, err := st.Acquire(ctx, lease(n.id), n.id, n.leaseTime); err != nil {
			t.Fatal(err)
		}
		running.Go(func() { _ = n.Run(ctx) })
		awaitRunning(t, n)
		return s
	}
	from, to = node(nil), node(execute)
	return func(ctx context.Context, r tool.Request) (json.RawMessage, error) {
		return from.Do(ctx, to.node.ID(), "one", r)
	}, from, to
}

// TestForwardedRequest checks that a forwarded request arrives unchanged, and
// so do its notifications, questions, answers and result.
func TestForwardedRequest(t *testing.T) {
	var got tool.Request
	do, _, _ := forwardTo(t, func(ctx context.Context, server string, r tool.Request) (json.RawMessage, error) {
		got = r
		r.Exchange.Queued(true)
		r.Exchange.Queued(false)
		r.Exchange.Notify("notifications/progress", json.RawMessage(`{"progress":1}`))
		r.Exchange.Notify(methodQueued, json.RawMessage(`{"waiting":true}`)) // sent by the server
		answer, err := r.Exchange.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"who?"}`))
		if err != nil {
			return nil, err
		}
		if _, err := r.Exchange.Ask(ctx, "roots/list", nil); err == nil || !strings.Contains(err.Error(), "not now") {
			t.Errorf("a refused question: %v", err)
		}
		r.Exchange.Repaired()
		return fmt.Appendf(nil, `{"server": %q, "answer":%s}`, server, answer), nil
	})
	var mu sync.Mutex
	var events []string
	event := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, fmt.Sprintf(format, args...))
	}
	result, err := do(limit(t), tool.Request{
		Method: "tools/call", Params: json.RawMessage(`{"name":"x","arguments":{"big": 12345678901234567890, "odd":"<&>"}}`), Caller: "ada",
		Exchange: tool.Exchange{
			Capabilities: json.RawMessage(`{"elicitation":{}}`), PassInput: true,
			Queued:   func(waiting bool) { event("queued %t", waiting) },
			Notify:   func(method string, params json.RawMessage) { event("%s %s", method, params) },
			Repaired: func() { event("repaired") },
			Ask: func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
				if method == "roots/list" {
					return nil, &mcp.Error{Code: -1, Message: "not now"}
				}
				event("%s %s", method, params)
				return json.RawMessage(`{"action":"accept"}`), nil
			},
		},
	})
	if want := `{"server": "one", "answer":{"action":"accept"}}`; err != nil || string(result) != want {
		t.Errorf("result %s, %v; want %s", result, err, want)
	}
	want := []string{"queued true", "queued false", `notifications/progress {"progress":1}`, `elicitation/create {"message":"who?"}`, "repaired"}
	if !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
	if got.Method != "tools/call" || got.Caller != "ada" || !got.Exchange.PassInput || string(got.Exchange.Capabilities) != `{"elicitation":{}}` ||
		string(got.Params) != `{"name":"x","arguments":{"big": 12345678901234567890, "odd":"<&>"}}` {
		t.Errorf("executed %+v", got)
	}
}

// TestForwardedRequestWithoutCallbacks checks that a caller without callbacks
// gets no notifications or questions.
func TestForwardedRequestWithoutCallbacks(t *testing.T) {
	do, from, _ := forwardTo(t, func(_ context.Context, _ string, r tool.Request) (json.RawMessage, error) {
		if r.Exchange.Notify != nil || r.Exchange.Ask != nil {
			t.Error("callbacks that the caller does not have")
		}
		r.Exchange.Queued(true)
		r.Exchange.Repaired()
		return nil, nil
	})
	if result, err := do(limit(t), tool.Request{Method: "ping"}); err != nil || string(result) != "{}" {
		t.Errorf("%s, %v", result, err)
	}
	if _, err := from.Do(limit(t), "NOSUCHNODE", "one", tool.Request{Method: "ping"}); !errors.Is(err, tool.ErrDown) {
		t.Errorf("a node that does not exist: %v", err)
	}
}

// TestForwardedErrors checks that errors of the server, even one that looks
// like the gateway's, and errors of the gateway are preserved.
func TestForwardedErrors(t *testing.T) {
	var fail error
	do, _, to := forwardTo(t, func(context.Context, string, tool.Request) (json.RawMessage, error) { return nil, fail })
	ctx := limit(t)

	fail = &mcp.Error{Code: -32000, Message: "refused", Data: json.RawMessage(`{"code":"INTERNAL","down":true}`)}
	_, err := do(ctx, tool.Request{Method: "tools/call"})
	if e, ok := errors.AsType[*mcp.Error](err); !ok || e.Code != -32000 || e.Message != "refused" || string(e.Data) != `{"code":"INTERNAL","down":true}` || errors.Is(err, tool.ErrDown) {
		t.Errorf("an error of the server: %v", err)
	}

	in := &tool.Error{Kind: tool.UpstreamFailed, Msg: "down", Details: map[string]any{"a": "b"}, RetryAfter: 3 * time.Second, Err: tool.ErrDown}
	fail = in
	_, err = do(ctx, tool.Request{Method: "tools/call"})
	out := tool.AsError(err)
	if out.Kind != in.Kind || out.Msg != in.Msg || fmt.Sprint(out.Details) != fmt.Sprint(in.Details) || out.RetryAfter != in.RetryAfter || !errors.Is(err, tool.ErrDown) {
		t.Errorf("%+v became %+v", in, out)
	}

	fail = errors.New("password=secret")
	if _, err = do(ctx, tool.Request{Method: "tools/call"}); tool.KindOf(err) != tool.Internal || strings.Contains(err.Error(), "secret") {
		t.Errorf("an unknown error: %v", err)
	}

	to.Stop()
	if _, err := do(ctx, tool.Request{Method: "tools/call"}); !errors.Is(err, tool.ErrDown) || tool.AsError(err).RetryAfter == 0 {
		t.Errorf("a node that stops: %v", err)
	}
	if _, err := outcome(mcp.Message{Result: json.RawMessage(`{`)}); err == nil {
		t.Error("a response that is none was accepted")
	}
	if _, err := outcome(mcp.Message{Error: &mcp.Error{Code: 1, Message: "no data"}}); err == nil || !strings.Contains(err.Error(), "no data") {
		t.Errorf("an error without data: %v", err)
	}
}

// TestForwardedRequestCancelled checks that canceling the caller cancels the
// request on the other node, including a question.
func TestForwardedRequestCancelled(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	do, _, to := forwardTo(t, func(ctx context.Context, _ string, r tool.Request) (json.RawMessage, error) {
		close(began)
		_, err := r.Exchange.Ask(ctx, "roots/list", nil)
		ended <- err
		return nil, err
	})
	ctx, cancel := context.WithCancel(limit(t))
	done := make(chan error, 1)
	go func() {
		_, err := do(ctx, tool.Request{Method: "tools/call", Exchange: tool.Exchange{
			Ask: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}})
		done <- err
	}()
	select {
	case <-began:
	case err := <-done:
		t.Fatalf("never executed: %v", err)
	}
	if to.Idle() {
		t.Error("idle during a request")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the question was answered")
	}
	wait(t, "no request in flight", to.Idle)
}

// TestForwardedRequestOfLostNode checks that a request whose node is lost
// during execution fails with an error that it may have been executed.
func TestForwardedRequestOfLostNode(t *testing.T) {
	do, from, to := forwardTo(t, nil)
	to.node.Handle(forwardKind, func(context.Context, []byte, *Conn) {}) // closes the connection
	_, err := do(limit(t), tool.Request{Method: "tools/call"})
	if e := tool.AsError(err); !strings.Contains(e.Msg, "may have been executed") || errors.Is(err, tool.ErrDown) {
		t.Errorf("lost during the call: %v", err)
	}
	to.node.Handle(forwardKind, to.serve)
	l := dial(t, from.node, to.node, forwardKind, "no header")
	if _, err := receive(t, l); err == nil {
		t.Error("a request without a header was answered")
	}
}

// TestForwardedRequestHasRightsOfItsCaller checks that the executing node gets
// the caller's rights. In a request of an older node, which does not send
// them, the caller has no rights.
func TestForwardedRequestHasRightsOfItsCaller(t *testing.T) {
	var got tool.Caller
	do, from, to := forwardTo(t, func(ctx context.Context, _ string, _ tool.Request) (json.RawMessage, error) {
		got = tool.CallerFrom(ctx)
		return nil, nil
	})
	for _, caller := range []tool.Caller{
		{ID: "ada", Name: "Ada"},
		{ID: "ada", Tools: []string{"one:*"}},
		{ID: "ada", Servers: []string{}},
		{ID: "ada", Grants: []tool.Grant{{Servers: []string{"one"}}}},
		{ID: "ada", Profiles: tool.Profiles{tool.UnknownProfile("p")}},
		{ID: tool.Local.ID},
		tool.Local,
	} {
		if _, err := do(tool.WithCaller(limit(t), caller), tool.Request{Method: "ping", Caller: caller.ID}); err != nil {
			t.Fatal(err)
		}
		if got.ID != caller.ID || got.Name != caller.Name || got.Admin != caller.Admin || got.Limited() != caller.Limited() {
			t.Errorf("executed for %+v, want %+v", got, caller)
		}
	}
	ctx := limit(t)
	l, err := from.node.Dial(ctx, to.node.ID(), forwardKind, []byte(`{"server":"one","caller":"local"}`+"\n"+`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := mcpserver.ReceiveResponse(ctx, l, messageLimits, func(*mcp.Message) {}); err != nil {
		t.Fatal(err)
	}
	if got.ID != "" || got.Admin {
		t.Errorf("the request of an older node is executed for %+v", got)
	}
}
