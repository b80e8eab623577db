package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// fixture is an executor with a scripted upstream and a call log in memory.
type fixture struct {
	*Executor
	catalog    *catalog.Catalog
	do         func(ctx context.Context, server string, req tool.Request) (json.RawMessage, error)
	connecting []string
	await      func(servers ...string) []string
	out        bytes.Buffer // the program's log

	mu      sync.Mutex
	calls   int
	records []store.Call
	broken  error // returned by the call log
}

func newFixture(t testing.TB, edit ...func(*Options)) *fixture {
	t.Helper()
	r := &fixture{catalog: catalog.New(nil, nil)}
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[]}`), nil
	}
	o := Options{
		Catalog: r.catalog, Upstreams: r, Calls: r, Node: "n1", Config: DefaultConfig(),
		Log: slog.New(slog.NewTextHandler(&r.out, nil)),
	}
	for _, e := range edit {
		e(&o)
	}
	r.Executor = New(o)
	r.offer(t, "fs",
		`{"name":"read","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"}},"required":["path"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}`,
		`{"name":"write","inputSchema":{"type":"object"}}`,
		`{"name":"odd","inputSchema":{"type":7}}`)
	return r
}

func (r *fixture) offer(t testing.TB, server string, raws ...string) {
	t.Helper()
	var defs []tool.Definition
	for _, raw := range raws {
		d, err := tool.ParseDefinition(server, json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		defs = append(defs, d)
	}
	r.catalog.Put(catalog.Server{Name: server}, defs)
}

func (r *fixture) Do(ctx context.Context, server string, req tool.Request) (json.RawMessage, error) {
	r.mu.Lock()
	r.calls++
	r.mu.Unlock()
	return r.do(ctx, server, req)
}

func (r *fixture) Await(_ context.Context, servers ...string) []string {
	if r.await != nil {
		return r.await(servers...)
	}
	return nil
}

func (r *fixture) Connecting() []string { return slices.Clone(r.connecting) }

func (r *fixture) Timeouts(string) (time.Duration, time.Duration) {
	return 30 * time.Second, 10 * time.Minute
}

func (r *fixture) Append(_ context.Context, c store.Call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return r.broken
	}
	r.records = append(r.records, c)
	return nil
}

// only returns the record of the only call, and fails the test if there is not
// exactly one.
func (r *fixture) only(t *testing.T) store.Call {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.records) != 1 {
		t.Fatalf("%d records, want exactly 1", len(r.records))
	}
	return r.records[0]
}

func call(name, arguments string) tool.Call {
	return tool.Call{Face: "test", Caller: tool.Local, Tool: name, Arguments: json.RawMessage(arguments)}
}
