package chat

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/store"
)

// brokenStore fails the operations named in fail.
type brokenStore struct {
	Store
	fail sync.Map
}

func (s *brokenStore) err(what string) error {
	if _, ok := s.fail.Load(what); ok {
		return fmt.Errorf("%s: %w", what, store.ErrUnavailable)
	}
	return nil
}

func (s *brokenStore) AppendMessages(ctx context.Context, id string, m ...store.Message) error {
	if err := s.err("messages"); err != nil {
		return err
	}
	if len(m) > 0 && m[0].Role == "assistant" {
		if err := s.err("assistant"); err != nil {
			return err
		}
	}
	return s.Store.AppendMessages(ctx, id, m...)
}

func (s *brokenStore) AppendEvents(ctx context.Context, id string, e ...store.Event) error {
	if err := s.err("events"); err != nil {
		return err
	}
	return s.Store.AppendEvents(ctx, id, e...)
}

func (s *brokenStore) CreateSession(ctx context.Context, c store.Session) error {
	if err := s.err("create"); err != nil {
		return err
	}
	return s.Store.CreateSession(ctx, c)
}

func (s *brokenStore) Session(ctx context.Context, id string) (store.Session, error) {
	if err := s.err("session"); err != nil {
		return store.Session{}, err
	}
	return s.Store.Session(ctx, id)
}

func (s *brokenStore) Sessions(ctx context.Context, q store.SessionQuery) ([]store.Session, error) {
	if err := s.err("session"); err != nil {
		return nil, err
	}
	return s.Store.Sessions(ctx, q)
}

func (s *brokenStore) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (store.Lease, bool, error) {
	if err := s.err("lease"); err != nil {
		return store.Lease{}, false, err
	}
	return s.Store.Acquire(ctx, name, owner, ttl)
}

func TestStoreErrorsAreReported(t *testing.T) {
	var broken *brokenStore
	r := newFixture(t, llmtest.Script{}, func(o *Options, _ *[]llm.Config) {
		broken = &brokenStore{Store: o.Store}
		o.Store = broken
	})
	c := r.connect("")
	for _, what := range []string{"create", "lease", "messages"} {
		broken.fail.Store(what, true)
		c.sendText("hello")
		if m := c.kind(wire.TypeError); m.Payload.Code != "UNAVAILABLE" {
			t.Errorf("%s: %s", what, m.Raw)
		}
		broken.fail.Delete(what)
	}
	c.sendText("hello")
	if text, _ := c.reply(); text != "You said: hello" {
		t.Errorf("once it is back: %q", text)
	}
	r.awaitIdle(c.id)
	broken.fail.Store("events", true) // the conversation continues but cannot be resumed
	c.sendText("hello")
	if text, _ := c.reply(); text != "You said: hello" {
		t.Errorf("without events: %q", text)
	}
	r.awaitIdle(c.id)
	broken.fail.Delete("events")
	broken.fail.Store("assistant", true)
	c.sendText("hello")
	if _, stop := c.reply(); stop != stopError {
		t.Errorf("unsaved reply: %s", stop)
	}
	r.awaitIdle(c.id)
	broken.fail.Delete("assistant")
	broken.fail.Store("session", true)
	if status, _, raw := r.rest("GET", "/api/sessions", ""); status != 503 {
		t.Errorf("list: %d %s", status, raw)
	}
	if status, _, raw := r.rest("GET", "/api/sessions/"+c.id, ""); status != 503 {
		t.Errorf("show: %d %s", status, raw)
	}
	r.host.mu.Lock()
	clear(r.host.sessions)
	r.host.mu.Unlock()
	n := r.dial("sessionId=" + c.id)
	n.next()
	n.next()
	if _, err := n.read(); websocket.CloseStatus(err) != websocket.StatusTryAgainLater {
		t.Errorf("closed with %v", err)
	}
}
