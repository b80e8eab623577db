package chat

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// meanwhile is a store with hooks that run once. next runs after messages have
// been numbered, before they are stored.
type meanwhile struct {
	Store
	next  atomic.Pointer[func()]
	lease atomic.Pointer[func()] // before the lease of a session is acquired
	read  atomic.Pointer[func()] // after the record of a session was read
	empty atomic.Bool            // Values returns none
}

func (m *meanwhile) Session(ctx context.Context, id string) (store.Session, error) {
	rec, err := m.Store.Session(ctx, id)
	if do := m.read.Swap(nil); do != nil {
		(*do)()
	}
	return rec, err
}

func (m *meanwhile) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (store.Lease, bool, error) {
	if strings.HasPrefix(name, leaseName("")) {
		if do := m.lease.Swap(nil); do != nil {
			(*do)()
		}
	}
	return m.Store.Acquire(ctx, name, owner, ttl)
}

func (m *meanwhile) Values(ctx context.Context, space string) ([]store.Value, error) {
	if m.empty.Load() {
		return nil, nil
	}
	return m.Store.Values(ctx, space)
}

func (m *meanwhile) AppendEvents(ctx context.Context, session string, events ...store.Event) error {
	if do := m.next.Swap(nil); do != nil {
		(*do)()
	}
	return m.Store.AppendEvents(ctx, session, events...)
}

// twoNodes returns two gateways that share a store.
func twoNodes(t *testing.T, opts ...option) (a, b *fixture, stores [2]*meanwhile) {
	t.Helper()
	shared := func(i int) option {
		return func(o *Options, models *[]llm.Config) {
			stores[i] = &meanwhile{Store: o.Store}
			o.Store = stores[i]
			withSharedStore(o, models)
		}
	}
	a = newFixture(t, slowScript, append(opts, shared(0))...)
	b = &fixture{t: t, model: a.model, store: a.store, logs: a.logs}
	b.start(append(opts, shared(1))...)
	return a, b, stores
}

func (r *fixture) patch(id, body string) {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodPatch, r.server.URL+"/api/sessions/"+id, strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Error(err)
		return
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		r.t.Errorf("PATCH %s: %s", body, res.Status)
	}
}

// TestSessionIsChangedDuringReplyOnAnotherNode checks that a change made on one
// node while the reply runs on another is kept, and that every client receives
// every message.
func TestSessionIsChangedDuringReplyOnAnotherNode(t *testing.T) {
	a, b, stores := twoNodes(t)
	first := a.connect("")
	first.sendText("stall")
	first.kind(wire.TypeText)
	second := b.connect("sessionId=" + first.id)
	second.kind(wire.TypeText)
	clients := []*client{first, second}
	title := func(want string) {
		t.Helper()
		for _, c := range clients {
			c.readUntil(func(m message) bool { return m.Type == wire.TypeSession && m.Payload.Title == want })
		}
	}

	second.send("preferences", map[string]any{"systemPrompt": "Be brief."})
	for _, c := range clients { // including the one on the node with the reply
		c.readUntil(func(m message) bool {
			return m.Type == wire.TypeSession && strings.Contains(string(m.Raw), "Be brief.")
		})
	}
	b.patch(first.id, `{"pinned":true,"title":"one"}`)
	title("one")
	onA := func() { a.patch(first.id, `{"title":"two"}`); a.open(first.id).flush() }
	stores[1].next.Store(&onA) // the other node uses the number first
	b.patch(first.id, `{"pinned":true}`)
	title("two")
	onB := func() { b.patch(first.id, `{"title":"three"}`); b.open(first.id).flush() }
	stores[0].next.Store(&onB)
	second.send("abort", nil)
	for _, c := range clients {
		if _, stop := c.reply(); stop != stopAborted {
			t.Errorf("stop %s", stop)
		}
	}
	a.awaitIdle(first.id)

	rec, err := a.store.Session(t.Context(), first.id)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := metadataOf(&rec)
	if err != nil || rec.Title != "three" || !meta.Pinned || meta.Preferences.SystemPrompt != "Be brief." || meta.Turn.Active {
		t.Errorf("stored: %q %+v, %v", rec.Title, meta, err)
	}
	if got, want := sequence(t, first), sequence(t, second); got != want || got == "" || first.seq != second.seq {
		t.Errorf("the first node sent %q up to %d, the second %q up to %d", got, first.seq, want, second.seq)
	}
	events, err := a.store.Events(t.Context(), first.id, 0, 0)
	if err != nil || int64(len(events)) != first.seq {
		t.Errorf("%d of %d messages are stored: %v", len(events), first.seq, err)
	}
	if logs := a.logs.String(); strings.Contains(logs, "cannot store messages") {
		t.Error(logs)
	}
}

// TestMessageWhileAnotherNodeChecksForDeadReply checks that a message waits
// while another node briefly has the lease to check whether a reply has ended.
func TestMessageWhileAnotherNodeChecksForDeadReply(t *testing.T) {
	a, _, stores := twoNodes(t)
	c := a.connect("")
	c.sendText("hello")
	c.reply()
	a.awaitIdle(c.id)
	release := func() {
		if err := a.store.Release(t.Context(), leaseName(c.id), "another"); err != nil {
			t.Error(err)
		}
	}
	take := func() {
		if _, held, err := a.store.Acquire(t.Context(), leaseName(c.id), "another", time.Minute); err != nil || !held {
			t.Errorf("the lease is not free: %v", err)
		}
		stores[0].lease.Store(&release) // before the second attempt
	}
	stores[0].lease.Store(&take)
	c.sendText("again")
	if text, stop := c.reply(); text != "You said: again" || stop != stopEnd {
		t.Errorf("%q, %s", text, stop)
	}
}

// TestLateStopOnAnotherNodeStopsNoLaterReply checks that an abort that arrives
// after its reply has ended does not stop the next reply, which can still be
// aborted.
func TestLateStopOnAnotherNodeStopsNoLaterReply(t *testing.T) {
	a, b, stores := twoNodes(t)
	first := a.connect("")
	first.sendText("stall")
	first.kind(wire.TypeText)
	second := b.connect("sessionId=" + first.id)
	second.kind(wire.TypeText)
	stores[0].empty.Store(true)
	if !b.host.loaded(first.id).Abort(t.Context()) {
		t.Fatal("the second node does not know of the reply")
	}
	first.send("abort", nil)
	first.reply()
	second.reply()
	a.awaitIdle(first.id)
	stores[0].empty.Store(false)

	first.sendText("once")
	<-a.ups.begun
	a.host.runCommands(t.Context())
	if left, err := a.store.Values(t.Context(), commandSpace); err != nil || len(left) > 0 {
		t.Errorf("commands that are left: %v, %v", left, err)
	}
	close(a.ups.release)
	if _, stop := first.reply(); stop != stopEnd {
		t.Errorf("the next reply ends with %q, want %q", stop, stopEnd)
	}
	second.reply()
	a.awaitIdle(first.id)

	first.sendText("stall")
	second.kind(wire.TypeText)
	second.send("abort", nil)
	if _, stop := first.reply(); stop != stopAborted {
		t.Errorf("a reply that is stopped in time ends with %q, want %q", stop, stopAborted)
	}
}

// TestFirstConnectionFollowsOtherNodes checks that the connection that created
// a session receives changes and messages from another node.
func TestFirstConnectionFollowsOtherNodes(t *testing.T) {
	a, b, _ := twoNodes(t)
	first := a.connect("")
	first.sendText("hello")
	first.reply()
	a.awaitIdle(first.id)
	b.patch(first.id, `{"title":"changed"}`) // where it is not loaded yet
	first.readUntil(func(m message) bool { return m.Type == wire.TypeSession && m.Payload.Title == "changed" })
	second := b.connect("sessionId=" + first.id)
	second.sendText("over there")
	if text, _ := first.reply(); text != "You said: over there" {
		t.Errorf("%q", text)
	}
	sequence(t, first)
}

// TestMetadataBeforeFirstMessageIsStored checks that settings chosen before the
// first message are stored together with the session.
func TestMetadataBeforeFirstMessageIsStored(t *testing.T) {
	a, b, _ := twoNodes(t)
	narrow := tool.Caller{ID: tool.Local.ID, Chat: true, Profiles: tool.Profiles{tool.UnknownProfile("part")}}
	s, err := a.host.Open(t.Context(), narrow, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetPreferences(t.Context(), narrow, wire.Preferences{SystemPrompt: "Be brief."}); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), narrow, "hello", ""); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	there, err := b.host.Open(t.Context(), narrow, s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got := there.preferences().SystemPrompt; got != "Be brief." {
		t.Errorf("system prompt %q", got)
	}
}

// TestReplyThatEndsWhileItIsLoadedIsComplete checks that a reply that ends on
// one node while another one loads the session is not marked as interrupted.
func TestReplyThatEndsWhileItIsLoadedIsComplete(t *testing.T) {
	a, b, stores := twoNodes(t)
	c := a.connect("")
	c.sendText("stall")
	c.kind(wire.TypeText)
	end := func() {
		s := a.host.loaded(c.id)
		s.Abort(t.Context())
		if err := s.wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stores[1].lease.Store(&end)
	s := b.open(c.id)
	h := s.History().Messages
	if len(h) != 2 || h[1].Notice != noticeAborted || s.Active() {
		t.Errorf("active: %t, history %+v", s.Active(), h)
	}
	if got := a.awaitIdle(c.id).History().Messages; len(got) != len(h) {
		t.Errorf("%d messages on the first node, %d on the second", len(got), len(h))
	}
}

// TestReplyThatBeginsBeforeRefreshGoesOn checks that a refresh that had to wait
// for the lock does not affect a reply that the same process started in the
// meantime.
func TestReplyThatBeginsBeforeRefreshGoesOn(t *testing.T) {
	a, _, _ := twoNodes(t)
	c := a.connect("")
	c.sendText("hello")
	c.reply()
	s := a.awaitIdle(c.id)
	before := len(s.History().Messages)

	s.recordMu.Lock()
	done := make(chan error, 1)
	go func() { done <- s.refresh(t.Context()) }()
	for stacks := make([]byte, 1<<20); ; runtime.Gosched() { // until it waits for the lock
		all := string(stacks[:runtime.Stack(stacks, true)])
		if slices.ContainsFunc(strings.Split(all, "\n\n"), func(stack string) bool {
			return strings.Contains(stack, "sync.Mutex.Lock") && strings.Contains(stack, "(*Session).refresh(")
		}) {
			break
		}
	}
	s.mu.Lock()
	s.turn = &turn{session: s, done: make(chan struct{}), cancel: func(error) {}}
	s.mu.Unlock()
	if err := s.save(t.Context(), func(m *metadata) { m.Turn.Active = true }); err != nil {
		t.Fatal(err)
	}
	s.recordMu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if h := s.History().Messages; len(h) != before {
		t.Errorf("the refresh adds %+v to the history", h[before:])
	}
	s.mu.Lock()
	s.turn = nil
	s.mu.Unlock()
}

// TestOlderRecordChangesNothing checks that a record read before a change but
// applied after it does not undo the change.
func TestOlderRecordChangesNothing(t *testing.T) {
	for name, read := range map[string]func(*Session, context.Context) error{"record": (*Session).readRecord, "session": (*Session).refresh} {
		t.Run(name, func(t *testing.T) {
			a, b, stores := twoNodes(t)
			narrow := tool.Caller{ID: tool.Local.ID, Chat: true, Profiles: tool.Profiles{tool.UnknownProfile("part")}}
			s, err := a.host.Open(t.Context(), narrow, "")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Send(t.Context(), narrow, "hello", ""); err != nil {
				t.Fatal(err)
			}
			if err := s.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			change := func() {
				b.patch(s.ID(), `{"title":"changed"}`)
				there := b.open(s.ID())
				err := there.writtenBy(t.Context(), &tool.Local)
				if err == nil {
					err = there.SetPreferences(t.Context(), tool.Local, wire.Preferences{SystemPrompt: "Be brief."})
				}
				there.flush()
				if err == nil {
					err = s.catchUp(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			}
			stores[0].read.Store(&change)
			if err := read(s, t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.mu.Lock(); s.title != "changed" || s.meta.Preferences.SystemPrompt != "Be brief." || len(s.meta.Profiles) > 0 {
				t.Errorf("title %q, %+v, profiles %q", s.title, s.meta.Preferences, s.meta.Profiles)
			}
			s.mu.Unlock()
		})
	}
}

// TestMessageChoosesModelOnSharedStore checks that the model given with a
// message answers that message.
func TestMessageChoosesModelOnSharedStore(t *testing.T) {
	a, _, _ := twoNodes(t, withModels(llm.Config{Name: "m", Provider: llm.OpenAI, Model: "gpt-test"}, llm.Config{Name: "n", Provider: llm.Anthropic, Model: "claude-test"}))
	c := a.connect("")
	c.sendText("hello")
	c.reply()
	c.send("message", map[string]any{"text": "hello", "model": "n"})
	if m := c.kind(wire.TypeSession); m.Payload.Model != "n" {
		t.Errorf("session %s", m.Raw)
	}
	c.reply()
	if h := a.awaitIdle(c.id).History().Messages; h[len(h)-1].Model != "n" {
		t.Errorf("model %q", h[len(h)-1].Model)
	}
}
