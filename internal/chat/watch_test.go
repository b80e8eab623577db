package chat

import (
	"context"
	"strings"
	"testing"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/store"
)

// spy reports the acquisitions of watch leases.
type spy struct {
	Store
	marks chan bool // whether the lease was free
}

func (s *spy) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (store.Lease, bool, error) {
	l, held, err := s.Store.Acquire(ctx, name, owner, ttl)
	if strings.HasPrefix(name, "chat-watch/") && err == nil {
		s.marks <- held
	}
	return l, held, err
}

func TestReplyContinuesWhileWatchedOnOtherNode(t *testing.T) {
	spies := []*spy{{marks: make(chan bool, 1000)}, {marks: make(chan bool, 1000)}}
	shared := func(i int) option {
		return func(o *Options, models *[]llm.Config) {
			withSharedStore(o, models)
			o.Config.DisconnectGraceMs = 20
			spies[i].Store = o.Store
			o.Store = spies[i]
		}
	}
	a := newFixture(t, slowScript, shared(0))
	b := &fixture{t: t, model: a.model, store: a.store, logs: a.logs}
	b.start(shared(1))
	first := a.connect("")
	first.sendText("stall")
	first.kind(wire.TypeText)
	other := b.connect("sessionId=" + first.id)
	other.kind(wire.TypeText)
	<-spies[1].marks // the second node holds the watch lease
	first.conn.CloseNow()
	for range 3 { // the grace period ends repeatedly
		if free := <-spies[0].marks; free {
			t.Fatal("the first node does not see that it is watched on the second")
		}
	}
	if s := a.open(first.id); !s.Active() {
		t.Error("the reply was stopped")
	}
	other.conn.CloseNow()
	s := a.awaitIdle(first.id) // no watchers are left
	if h := s.History().Messages; len(h) != 2 || h[1].Notice != noticeAborted {
		t.Errorf("history %+v", h)
	}
}

func TestReplyIsForwardedBetweenNodes(t *testing.T) {
	a := newFixture(t, slowScript, withSharedStore)
	b := &fixture{t: t, model: a.model, store: a.store, logs: a.logs}
	b.start(withSharedStore)

	first := a.connect("")
	first.sendText("count")
	first.kind(wire.TypeText)
	first.conn.CloseNow()
	<-a.ups.begun
	second := b.again(first) // the reply still runs on the first node
	a.ups.release <- struct{}{}
	<-a.ups.begun
	a.ups.release <- struct{}{}
	if _, stop := second.reply(); stop != stopEnd {
		t.Errorf("stop %s", stop)
	}
	if got := sequence(t, first, second); got != strings.Repeat("one two three four five ", 8) {
		t.Errorf("text %q", got)
	}
	a.awaitIdle(first.id)
	second.sendText("hello") // the next reply runs on the second node
	if text, stop := second.reply(); text != "You said: hello" || stop != stopEnd {
		t.Errorf("%q, %s", text, stop)
	}
	sequence(t, first, second)
	b.awaitIdle(first.id)

	// A user's input on one node reaches the reply on the other.
	first = a.again(second)
	first.sendText("stall")
	first.kind(wire.TypeText)
	other := b.connect("sessionId=" + first.id)
	other.kind(wire.TypeText)
	other.send("message", map[string]any{"text": "me too"})
	if m := other.kind(wire.TypeError); m.Payload.Code != wire.CodeBusy {
		t.Errorf("second message: %s", m.Raw)
	}
	other.send("abort", nil)
	for _, c := range []*client{first, other} {
		if _, stop := c.reply(); stop != stopAborted {
			t.Errorf("stop %s", stop)
		}
	}
	a.awaitIdle(first.id)
	first.sendText("hello")
	if text, stop := first.reply(); text != "You said: hello" || stop != stopEnd {
		t.Errorf("%q, %s", text, stop)
	}
}
