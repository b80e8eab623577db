package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/postgres/pgtest"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

// twoNodes starts two gateways on one database, with one server that only one
// of them runs, and returns the current owner first.
func twoNodes(t *testing.T) (owner, other *fixture, server *upstreamtest.HTTP) {
	t.Helper()
	url := pgtest.New(t).Database(t)
	server = upstreamtest.Listen(t, upstreamtest.Script{})
	cfg := fmt.Sprintf(`{"store":{"url":%q},"mcpServers":{"one":{"url":%q,"singleton":true,"sessionMode":"perCaller"}}}`, url, server.URL)
	owner = start(t, cfg, t.TempDir())
	owner.connected("one")
	other = start(t, cfg, t.TempDir())
	other.connected("one")
	if st, _ := other.upstreams.StatusOf("one"); st.Node != owner.nodes.ID() {
		t.Fatal("the second node does not know who runs the server")
	}
	return owner, other, server
}

// connected waits until a server is connected.
func (r *fixture) connected(server string) {
	r.t.Helper()
	for end := time.After(time.Minute); ; {
		if st, _ := r.upstreams.StatusOf(server); st.State == upstream.Connected {
			return
		}
		select {
		case <-end:
			r.t.Fatalf("%s is not connected\n%s", server, r.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestCallsAreForwarded checks that a call to a server that another node runs
// works like any other: with progress, questions, errors and cancellation.
func TestCallsAreForwarded(t *testing.T) {
	owner, other, server := twoNodes(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	call := func(ctx context.Context, name, arguments string, ex tool.Exchange) (tool.Result, error) {
		return other.executor.Call(ctx, tool.Call{Server: "one", Tool: name, Caller: tool.Local, Arguments: json.RawMessage(arguments), Meta: json.RawMessage(`{"progressToken":"p"}`), Exchange: ex})
	}
	got, err := call(ctx, "echo", `{"big": 12345678901234567890,  "odd":"<&>"}`, tool.Exchange{})
	if err != nil || upstreamtest.TextOf(got.Raw) != `{"big": 12345678901234567890,  "odd":"<&>"}` {
		t.Errorf("echo: %s, %v", got.Raw, err)
	}
	var mu sync.Mutex
	var received []string
	_, err = call(ctx, "progress", `{"n":20}`, tool.Exchange{Notify: func(method string, params json.RawMessage) {
		mu.Lock()
		defer mu.Unlock()
		received = append(received, string(rawjson.Field(params, "progress")))
	}})
	if err != nil || len(received) != 20 || received[0] != "1" || received[19] != "20" {
		t.Errorf("progress: %v, %v", received, err)
	}
	elicits := json.RawMessage(`{"elicitation":{"form":{}}}`)
	got, err = call(ctx, "ask", `{}`, tool.Exchange{Capabilities: elicits, Ask: func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		if method != "elicitation/create" || !strings.Contains(string(params), "who are you?") {
			t.Errorf("asked %s %s", method, params)
		}
		return json.RawMessage(`{"action":"accept","content":{"name":"ada"}}`), nil
	}})
	if err != nil || !strings.Contains(upstreamtest.TextOf(got.Raw), "ada") {
		t.Errorf("ask: %s, %v", got.Raw, err)
	}
	got, err = call(ctx, "ask", `{}`, tool.Exchange{Capabilities: elicits, Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return nil, &mcp.Error{Code: -1, Message: "not now"}
	}})
	if !strings.Contains(fmt.Sprint(err, upstreamtest.TextOf(got.Raw)), "not now") {
		t.Errorf("ask refused: %s, %v", got.Raw, err)
	}
	_, err = call(ctx, "refuse", `{}`, tool.Exchange{})
	if refused, ok := errors.AsType[*mcp.Error](err); !ok || refused.Code != -32000 || string(refused.Data) != `{"why":"because"}` {
		t.Errorf("refuse: %v", err)
	}
	brief, stop := context.WithCancel(ctx)
	calls := server.Calls()
	done := make(chan error, 1)
	go func() { _, err := call(brief, "silent", `{}`, tool.Exchange{}); done <- err }()
	for server.Calls() == calls {
		select {
		case <-ctx.Done():
			t.Fatal("the call never came")
		case <-time.After(5 * time.Millisecond):
		}
	}
	stop()
	if err := <-done; tool.KindOf(err) != tool.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	for owner.upstreams.Status()[0].InFlight > 0 {
		select {
		case <-ctx.Done():
			t.Fatal("the owner goes on with a cancelled call")
		case <-time.After(5 * time.Millisecond):
		}
	}
	if _, err := other.nodeSingletons.Do(ctx, "NOSUCHNODE", "one", tool.Request{Method: "x"}); !errors.Is(err, tool.ErrDown) {
		t.Errorf("a node that is gone: %v", err)
	}
	if _, err := other.nodeSingletons.Do(ctx, owner.nodes.ID(), "two", tool.Request{Method: "x"}); tool.KindOf(err) != tool.ServerNotFound {
		t.Errorf("a server that the owner does not have: %v", err)
	}

	// A tool that is added later appears on both nodes.
	if _, err := call(ctx, "change", `{}`, tool.Exchange{}); err != nil {
		t.Fatal(err)
	}
	for len(other.catalog.Snapshot().Server("one").Tools) != 15 {
		select {
		case <-ctx.Done():
			t.Fatalf("the new tool is not seen\n%s", other.log)
		case <-time.After(20 * time.Millisecond):
		}
	}

	// When the owner stops, the other node runs the server.
	owner.stop()
	for {
		if st, _ := other.upstreams.StatusOf("one"); st.Node == "" {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("nobody took over\n%s", other.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
	other.connected("one")
	if _, err := call(ctx, "echo", `{}`, tool.Exchange{}); err != nil {
		t.Errorf("after it took over: %v", err)
	}
}
