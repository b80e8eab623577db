package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/mcpclient"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

// right is the lease of one server.
type right struct {
	mu      sync.Mutex
	owner   string
	expires time.Time
	away    bool // the lease store is unavailable
	nodes   map[string]*fixture
}

// holder is the Singletons of one process.
type holder struct {
	*right
	name string
}

func (h holder) Claim(_ context.Context, _ string, ttl time.Duration) (string, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away {
		return "", false, errors.New("the store is away")
	}
	if h.owner == "" || h.owner == h.name || time.Now().After(h.expires) {
		h.owner, h.expires = h.name, time.Now().Add(ttl)
	}
	return h.owner, h.owner == h.name, nil
}

func (h holder) Release(context.Context, string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.owner == h.name {
		h.owner = ""
	}
	return nil
}

func (h holder) Do(ctx context.Context, owner, server string, r tool.Request) (json.RawMessage, error) {
	h.mu.Lock()
	node := h.nodes[owner]
	h.mu.Unlock()
	return node.DoHere(ctx, server, r)
}

func (r *right) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// TestSingletonRunsOnOneNode: one process runs the server, the other forwards
// its calls to it and takes over when the lease moves.
func TestSingletonRunsOnOneNode(t *testing.T) {
	t.Parallel()
	server := upstreamtest.Listen(t, upstreamtest.Script{OldEra: true})
	cfg := server.Config("one")
	cfg.Singleton = true
	rt := &right{nodes: map[string]*fixture{}}
	node := func(name string) *fixture {
		r := newFixture(t, upstream.Options{Singletons: holder{rt, name}}, cfg)
		rt.set(func() { rt.nodes[name] = r })
		return r.run()
	}
	ranBy := func(r *fixture) string { st, _ := r.StatusOf("one"); return st.Node }
	a := node("a")
	a.state("one", upstream.Connected)
	b := node("b")
	b.eventually("b to know the owner", func() bool { return ranBy(b) == "a" })
	if st, _ := b.StatusOf("one"); st.Node != "a" || st.State != upstream.Connecting {
		t.Errorf("before its tools are known: %+v", st)
	}
	b.SetRemote("one", mcpclient.ServerInfo{Name: "remote"}, 14)
	b.SetRemote("none", mcpclient.ServerInfo{}, 1)
	if st := b.state("one", upstream.Connected); st.Tools != 14 {
		t.Errorf("with its tools: %+v", st)
	}
	if info, ok := b.Info("one", ""); !ok || info.Name != "remote" {
		t.Errorf("its info: %+v, %v", info, ok)
	}
	if n := server.Connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
	ctx := context.Background()
	call := tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"echo","arguments":{"a":1}}`)}
	for name, r := range map[string]*fixture{"a": a, "b": b} {
		if got, err := r.Do(ctx, "one", call); err != nil || !strings.Contains(string(got), `a\":1`) {
			t.Errorf("at %s: %s, %v", name, got, err)
		}
	}
	if _, err := b.DoHere(ctx, "one", call); !errors.Is(err, tool.ErrDown) || tool.AsError(err).RetryAfter == 0 {
		t.Errorf("passed on twice: %v", err)
	}
	if _, err := b.DoHere(ctx, "none", call); tool.KindOf(err) != tool.ServerNotFound {
		t.Errorf("an unknown server: %v", err)
	}
	if err := b.Notify(ctx, "one", "", "notifications/x", nil); err == nil {
		t.Error("a notification went to a server that is elsewhere")
	}
	if ranBy(a) != "" {
		t.Error("a does not know that it runs the server")
	}

	// Another process has acquired the lease: a stops immediately.
	rt.set(func() { rt.owner, rt.expires = "c", time.Now().Add(time.Hour) })
	a.eventually("a to have stopped", func() bool { return ranBy(a) == "c" })
	// The lease is free again: one of the two acquires it.
	rt.set(func() { rt.owner = "" })
	var owner *fixture
	runs := func() bool {
		rt.set(func() { owner = rt.nodes[rt.owner] })
		if owner == nil {
			return false
		}
		st, _ := owner.StatusOf("one")
		return st.State == upstream.Connected && st.Node == ""
	}
	a.eventually("one of them to run it", runs)
	// The lease store is unavailable: the owner stops in time.
	rt.set(func() { rt.away = true })
	owner.state("one", upstream.Disconnected)
	rt.set(func() { rt.away = false })
	a.eventually("it again", runs)
}

// lateHolder is a holder whose Claim blocks until the gate is open.
type lateHolder struct {
	holder
	gate chan struct{}
}

func (h lateHolder) Claim(ctx context.Context, server string, ttl time.Duration) (string, bool, error) {
	select {
	case <-h.gate:
	case <-ctx.Done():
	}
	return h.holder.Claim(ctx, server, ttl)
}

// TestCallBeforeOwnerIsKnown: a call that arrives before the owner of the
// server is known is forwarded when it is known.
func TestCallBeforeOwnerIsKnown(t *testing.T) {
	server := upstreamtest.Listen(t, upstreamtest.Script{OldEra: true})
	cfg := server.Config("one")
	cfg.Singleton, cfg.MaxConcurrent = true, 1
	rt := &right{nodes: map[string]*fixture{}}
	a := newFixture(t, upstream.Options{Singletons: holder{rt, "a"}}, cfg).run()
	rt.set(func() { rt.nodes["a"] = a })
	a.state("one", upstream.Connected)
	late := lateHolder{holder{rt, "b"}, make(chan struct{})}
	b := newFixture(t, upstream.Options{Singletons: late}, cfg).run()
	results := make(chan error, 2)
	waiting := make(chan struct{}, 16)
	for range 2 { // one of them is queued behind the other, which is then known to wait too
		go func() {
			_, err := b.Do(context.Background(), "one", tool.Request{
				Method: "tools/call", Params: json.RawMessage(`{"name":"echo","arguments":{}}`),
				Exchange: tool.Exchange{Queued: func(bool) { waiting <- struct{}{} }},
			})
			results <- err
		}()
	}
	<-waiting
	close(late.gate)
	for range 2 {
		if err := <-results; err != nil {
			t.Errorf("a call before the owner was known: %v", err)
		}
	}
}

// TestSingletonWithoutOtherNodes: without other nodes the setting has no
// effect.
func TestSingletonWithoutOtherNodes(t *testing.T) {
	server := upstreamtest.Listen(t, upstreamtest.Script{})
	cfg := server.Config("one")
	cfg.Singleton = true
	r := newFixture(t, upstream.Options{}, cfg).run()
	r.state("one", upstream.Connected)
	before, _ := r.StatusOf("one")
	cfg.Singleton = false
	r.Apply([]upstream.Config{cfg})
	r.ok("one", "echo", `{}`)
	if after, _ := r.StatusOf("one"); after.Since != before.Since {
		t.Errorf("connected at %s, and at %s after a change without effect", before.Since, after.Since)
	}
}

// TestSingletonIsAppliedLive: changing only this setting makes a running server
// require the lease, and no longer require it.
func TestSingletonIsAppliedLive(t *testing.T) {
	server := upstreamtest.Listen(t, upstreamtest.Script{OldEra: true})
	cfg := server.Config("one")
	rt := &right{nodes: map[string]*fixture{}}
	r := newFixture(t, upstream.Options{Singletons: holder{rt, "a"}}, cfg).run()
	r.state("one", upstream.Connected)
	owned := func(by string) func() bool {
		return func() (is bool) {
			rt.set(func() { is = rt.owner == by })
			return is
		}
	}
	single := cfg
	single.Singleton = true
	r.Apply([]upstream.Config{single})
	r.eventually("the right to be claimed", owned("a"))
	r.state("one", upstream.Connected)
	r.Apply([]upstream.Config{cfg})
	r.eventually("the right to be given back", owned(""))
	r.state("one", upstream.Connected)
}
