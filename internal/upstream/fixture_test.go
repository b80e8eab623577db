package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

func TestMain(m *testing.M) {
	upstreamtest.Main()
	os.Exit(m.Run())
}

// fixture is a running Supervisor and what its Sink received.
type fixture struct {
	*upstream.Supervisor
	t *testing.T

	mu          sync.Mutex
	toolSets    map[string][]upstream.ToolSet
	removed     []string
	statuses    map[string][]upstream.Status
	notes       []string
	callerNotes []string // notifications with the caller that they are for
	changed     chan struct{}
	publish     func(upstream.ToolSet) // called before tools are recorded, unless nil
}

func (r *fixture) update(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *fixture) ToolsChanged(o upstream.ToolSet) {
	if r.publish != nil {
		r.publish(o)
	}
	r.update(func() { r.toolSets[o.Config.Name] = append(r.toolSets[o.Config.Name], o) })
}
func (r *fixture) Removed(server string) { r.update(func() { r.removed = append(r.removed, server) }) }
func (r *fixture) StatusChanged(s upstream.Status) {
	r.update(func() { r.statuses[s.Name] = append(r.statuses[s.Name], s) })
}
func (r *fixture) Notified(server, caller, method string, params json.RawMessage) {
	r.update(func() {
		r.notes = append(r.notes, server+" "+method)
		r.callerNotes = append(r.callerNotes, caller+" "+method+" "+string(params))
	})
}

// testOutput is a test's output until the test is over. The stream of a closed
// connection ends a moment later, and logs that.
type testOutput struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *testOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

func (o *testOutput) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = io.Discard
}

// newFixture prepares a Supervisor; see run.
func newFixture(t *testing.T, o upstream.Options, configs ...upstream.Config) *fixture {
	t.Helper()
	r := &fixture{t: t, toolSets: map[string][]upstream.ToolSet{}, statuses: map[string][]upstream.Status{}, changed: make(chan struct{})}
	o.Sink = r
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.DiscoverTimeout == 0 {
		o.DiscoverTimeout = time.Hour // do not mistake a busy machine for a silent server
	}
	if testing.Verbose() {
		out := &testOutput{w: t.Output()}
		t.Cleanup(out.end)
		o.Log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	for _, c := range configs {
		if err := c.Validate(); err != nil {
			t.Fatalf("the test's configuration is wrong: %v", err)
		}
	}
	r.Supervisor = upstream.NewSupervisor(configs, o)
	return r
}

// run starts the Supervisor and stops it when the test ends.
func (r *fixture) run() *fixture {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			r.t.Error(err)
		}
	}()
	r.t.Cleanup(func() { cancel(); <-done })
	return r
}

// eventually waits until cond is true; it is checked whenever the sink is
// called, and periodically.
func (r *fixture) eventually(what string, cond func() bool) {
	r.t.Helper()
	deadline := time.After(time.Minute)
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if cond() {
			return
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			r.t.Fatalf("waited a minute for %s; status: %+v", what, r.Status())
		}
	}
}

func (r *fixture) state(server string, want upstream.State) upstream.Status {
	r.t.Helper()
	var got upstream.Status
	r.eventually(fmt.Sprintf("%s to be %s", server, want), func() bool {
		got, _ = r.Diagnose(server)
		return got.State == want
	})
	return got
}

// awaitTools waits for the nth tool set of a server.
func (r *fixture) awaitTools(server string, n int) upstream.ToolSet {
	r.t.Helper()
	var got upstream.ToolSet
	r.eventually(fmt.Sprintf("tool set %d of %s", n, server), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.toolSets[server]) < n {
			return false
		}
		got = r.toolSets[server][n-1]
		return true
	})
	return got
}

// call calls a tool.
func (r *fixture) call(server, name, arguments string) (string, error) {
	r.t.Helper()
	return r.callAs("", server, name, arguments, tool.Exchange{})
}

func (r *fixture) callAs(caller, server, name, arguments string, ex tool.Exchange) (string, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	params := fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"progressToken":"p"}}`, name, arguments)
	result, err := r.Do(ctx, server, tool.Request{Method: "tools/call", Params: json.RawMessage(params), Caller: caller, Exchange: ex})
	return upstreamtest.TextOf(result), err
}

// ok calls a tool that must succeed.
func (r *fixture) ok(server, name, arguments string) string {
	r.t.Helper()
	text, err := r.call(server, name, arguments)
	if err != nil {
		r.t.Fatalf("%s:%s: %v", server, name, err)
	}
	return text
}

func contains(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("%s = %q, want %q in it", what, got, p)
		}
	}
}
