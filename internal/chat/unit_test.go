package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/approval"
	"junctor/internal/catalog"
	"junctor/internal/chat/wire"
	"junctor/internal/listing"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/search"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// leases is a store that supports only leases and values.
type leases struct {
	Store
	mu       sync.Mutex
	held     bool
	err      error
	asked    int
	conflict int // the number of writes to fail with a conflict
	value    []byte
}

func (l *leases) Acquire(context.Context, string, string, time.Duration) (store.Lease, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	return store.Lease{}, l.held, l.err
}

func (l *leases) set(held bool, err error) (asked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.err = held, err
	return l.asked
}

func (l *leases) Release(context.Context, string, string) error { return l.err }

func (l *leases) Value(context.Context, string, string) (store.Value, error) {
	if l.value == nil {
		return store.Value{}, store.ErrNotFound
	}
	return store.Value{Data: l.value, Version: 1}, l.err
}

func (l *leases) PutValue(_ context.Context, v store.Value, _ int64) (store.Value, error) {
	if l.conflict > 0 {
		l.conflict--
		return store.Value{}, store.ErrConflict
	}
	l.value = v.Data
	return v, l.err
}

func quiet(s Store) *Host {
	return New(Options{Store: s, Log: slog.New(slog.DiscardHandler), Config: DefaultConfig(), Approvals: &approval.Standing{Store: s}})
}

func TestLosingTheLeaseEndsTheReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leases{held: true}
		s := &Session{host: quiet(l), id: "s"}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		done := make(chan struct{})
		go func() { defer close(done); s.renew(ctx, &turn{cancel: cancel}) }()
		time.Sleep(defaultLeaseTime) // in the bubble's own time
		if n := l.set(true, errors.New("the database is away for a moment")); n != 2 && n != 3 || ctx.Err() != nil {
			t.Errorf("renewed %d times in %v, %v", n, defaultLeaseTime, ctx.Err())
		}
		time.Sleep(defaultLeaseTime / 2)
		if ctx.Err() != nil {
			t.Error("a hiccup of the store ended the reply")
		}
		l.set(false, nil)
		<-done
		if !errors.Is(context.Cause(ctx), errAborted) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
	})
}

// changing is a store whose change notifications and event queries are
// controlled by the test.
type changing struct {
	Store
	changed chan struct{}
	queries atomic.Int64
	query   func() // called during each query; may be nil
}

func (c *changing) Watch(context.Context, string) <-chan struct{} { return c.changed }

func (c *changing) Events(context.Context, string, int64, int) ([]store.Event, error) {
	c.queries.Add(1)
	if c.query != nil {
		c.query()
	}
	return nil, nil
}

// TestReplyOnSharedStoreIsNotRead checks that a process does not query the
// events that it stores itself while it sends a reply. While the reply waits,
// it queries once after each change, and again if messages were sent during the
// query.
func TestReplyOnSharedStoreIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &changing{changed: make(chan struct{}, 1)}
		s := &Session{host: quiet(c), id: "s", turn: &turn{}}
		send := func() {
			s.mu.Lock()
			s.outbox.sent++
			s.mu.Unlock()
			c.changed <- struct{}{}
		}
		queries := func(want int64, when string) {
			t.Helper()
			synctest.Wait()
			if n := c.queries.Swap(0); n != want {
				t.Errorf("%d queries %s, want %d", n, when, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.forwardChanges(ctx)
		for range 100 { // in the bubble's own time
			send()
			time.Sleep(50 * time.Millisecond)
		}
		queries(0, "while the reply is sent")
		time.Sleep(2 * time.Second)
		queries(1, "when it waits")
		c.query = func() {
			c.query = nil
			s.mu.Lock()
			s.outbox.sent++ // so that the query's events are not forwarded
			s.mu.Unlock()
		}
		c.changed <- struct{}{} // by another process
		time.Sleep(2 * time.Second)
		queries(2, "when messages are sent during the first")
	})
}

func TestDropNotificationIsSentOnce(t *testing.T) {
	r := newFixture(t, llmtest.Script{})
	s := r.open("")
	dropped := 0
	watch := func() *Watcher {
		w, err := s.Watch(t.Context(), tool.Local, -1)
		if err != nil {
			t.Fatal(err)
		}
		onDrop := func() { dropped++ }
		w.onDrop.Store(&onDrop)
		return w
	}
	left, slow := watch(), watch()
	left.Close()
	slow.drop()
	slow.Close()
	if dropped != 1 {
		t.Errorf("%d were notified, want the slow one alone", dropped)
	}
	for _, w := range []*Watcher{left, slow} {
		select {
		case <-w.done:
		default:
			t.Error("not gone")
		}
	}
}

func TestAllowAlwaysRetriesOnConflict(t *testing.T) {
	l := &leases{conflict: 2}
	h := quiet(l)
	for _, name := range []string{"a:b", "c:d", "a:b"} {
		if err := h.Approvals.AllowAlways(t.Context(), tool.Caller{ID: "me"}, name); err != nil {
			t.Fatal(err)
		}
	}
	allowed := func(subject string) bool {
		yes, err := h.Approvals.AllowedAlways(t.Context(), "me", subject)
		return yes && err == nil
	}
	if string(l.value) != `["a:b","c:d"]` || !allowed("c:d") || allowed("e:f") {
		t.Errorf("kept %s", l.value)
	}
	l.conflict = 100
	if err := h.Approvals.AllowAlways(t.Context(), tool.Caller{ID: "me"}, "x:y"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("%v", err)
	}
	l.err = errors.New("down")
	if allowed("c:d") {
		t.Error("allowed without knowing")
	}
}

type failingSearch struct{}

func (failingSearch) Search(search.Query) ([]search.Hit, error) { return nil, errors.New("broken") }

type noHits struct{}

func (noHits) Search(q search.Query) ([]search.Hit, error) {
	return []search.Hit{{Name: tool.Name{Server: "gone", Tool: "x"}}}, nil
}

func TestMetaToolsTolerateInvalidArguments(t *testing.T) {
	h := quiet(&leases{})
	o := listing.Options{Catalog: catalog.New(nil, nil), Search: failingSearch{}, Upstreams: states{}}
	h.Tools = listing.New(o)
	for name, tt := range map[string]struct {
		call tool.Name
		args string
		says string
	}{
		"search that fails":  {metaSearch, `{"query":"x","server":"s","limit":-3}`, "INTERNAL"},
		"details of nothing": {metaDetails, `{"tool":"nope"}`, "TOOL_NOT_FOUND"},
		"execute nothing":    {metaExecute, `{"tool":"nope"}`, "TOOL_NOT_FOUND"},
		"wrong types":        {metaSearch, `{"query":7}`, "INVALID_ARGUMENTS"},
	} {
		res, target := h.metaCall(&tool.Local, wire.Preferences{}, &llm.ToolCall{ID: "1", Tool: tt.call, Arguments: json.RawMessage(tt.args)})
		if target != nil || !res.IsError || !strings.Contains(string(res.Content), tt.says) {
			t.Errorf("%s: %s", name, res.Content)
		}
	}
	o.Search = noHits{}
	h.Tools = listing.New(o)
	if res, _ := h.metaCall(&tool.Local, wire.Preferences{}, &llm.ToolCall{ID: "1", Tool: metaSearch, Arguments: json.RawMessage(`{"query":"x"}`)}); res.IsError || !strings.Contains(string(res.Content), "nothing found") {
		t.Errorf("nothing found: %s", res.Content)
	}
}

func TestGuidanceIsBounded(t *testing.T) {
	c := catalog.New(nil, nil)
	for i := range 40 {
		name := fmt.Sprintf("s%02d", i)
		c.Put(catalog.Server{Name: name, Guidance: tool.Guidance{Text: strings.Repeat("ü", 10_000)}, Description: "A server.\nOf many words."}, []tool.Definition{definition(t, name, "x", `{"type":"object"}`)})
	}
	c.Put(catalog.Server{Name: "empty", Guidance: tool.Guidance{Text: "never shown"}}, nil)
	long := guidance(c.Snapshot(), &tool.Local, requestTools{}, nil)
	if len(long) > maxGuidanceTotal+maxGuidance || !strings.Contains(long, "left out") || strings.Contains(long, "never shown") {
		t.Errorf("%d bytes", len(long))
	}
	short := guidance(c.Snapshot(), &tool.Local, requestTools{meta: true}, []wire.ServerState{{Server: "x", State: "disconnected"}})
	if len(short) > 5000 || !strings.Contains(short, "## Server s39\nA server. Of many words.") || !strings.Contains(short, "x (disconnected)") {
		t.Errorf("%d bytes: %.200s", len(short), short)
	}
	limited := tool.Caller{ID: "k", Servers: []string{"s01"}}
	if only := guidance(c.Snapshot(), &limited, requestTools{meta: true}, nil); strings.Contains(only, "s02") || !strings.Contains(only, "s01") {
		t.Errorf("a limited caller is told of %q", only)
	}
}

func TestUnknownToolErrorSuggestsName(t *testing.T) {
	h := quiet(&leases{})
	c := catalog.New(nil, nil)
	h.Tools = listing.New(listing.Options{Catalog: c, Upstreams: states{}})
	s := &Session{host: h}
	turn := &turn{caller: tool.Local}
	call := &llm.ToolCall{ID: "1", Name: "calc__ad"}
	if res := s.unknown(turn, call, requestTools{}); !strings.Contains(string(res.Content), "Use only the tools that you were given") {
		t.Errorf("%s", res.Content)
	}
	if res := s.unknown(turn, call, requestTools{meta: true, tools: h.meta}); !strings.Contains(string(res.Content), "tools__search") {
		t.Errorf("%s", res.Content)
	}
	c.Put(catalog.Server{Name: "calc"}, []tool.Definition{definition(t, "calc", "add", `{"type":"object"}`)})
	if res := s.unknown(turn, call, h.toolsFor(t.Context(), &tool.Local, 100, wire.Preferences{})); !strings.Contains(string(res.Content), "Did you mean calc__add?") {
		t.Errorf("%s", res.Content)
	}
}

func TestMarkdownOfImagesNoticesAndMalformedCalls(t *testing.T) {
	md := wire.Markdown(wire.SessionInfo{Model: "m"}, wire.HistoryPayload{Messages: []wire.HistoryMessage{
		{Role: llm.User, Parts: []llm.Part{{Image: &llm.Image{}}}},
		{Role: llm.Assistant, Notice: noticeAborted, Parts: []llm.Part{{Text: "half"}, {Call: &llm.ToolCall{Name: "made_up", Arguments: json.RawMessage("nonsense")}}}},
		{Role: llm.Tool, Parts: []llm.Part{{Result: llm.TextResult(&llm.ToolCall{Name: "made_up"}, "a\n```\nfence\n```", true)}}},
	}})
	for _, want := range []string{"# Conversation", "· m", "*(a picture)*", "*(aborted)*", "**Call of `made_up`**", "nonsense", "**Failure of `made_up`**\n\n````\na\n```"} {
		if !strings.Contains(md, want) {
			t.Errorf("lacks %q:\n%s", want, md)
		}
	}
}
