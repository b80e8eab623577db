package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"junctor/internal/store"
)

// tail checks that Tail yields the existing records and those appended while it
// runs, each once and in order.
func tail(t *testing.T, open Opener) {
	s, ctx := running(t, open), deadline(t)
	const before, total = 30, 300
	for i := range before {
		if err := s.Append(ctx, Call(i)); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { expectTail(ctx, t, s, 0, total) })
	}
	wg.Go(func() { expectTail(ctx, t, s, before, total) })
	var writers sync.WaitGroup
	for w := range 10 {
		writers.Go(func() {
			for i := range (total - before) / 10 {
				if err := s.Append(ctx, Call(1000+w*100+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	wg.Wait()
}

// expectTail tails the records after one sequence number up to another.
func expectTail(ctx context.Context, t testing.TB, s store.Store, after, last int64) {
	next := after + 1
	// A small limit makes Tail read several pages.
	for c, err := range store.Tail(ctx, s, store.CallQuery{AfterSeq: after, Limit: 7}) {
		if err != nil {
			t.Errorf("tail: %v", err)
			return
		}
		if c.Seq != next {
			t.Errorf("tail after %d gave %d, want %d", after, c.Seq, next)
			return
		}
		if next++; c.Seq == last {
			return
		}
	}
	t.Errorf("the tail ended at %d, want %d", next-1, last)
}

func tailFiltered(t *testing.T, open Opener) {
	s, ctx := running(t, open), deadline(t)
	for i := range 100 {
		c := Call(i)
		if c.Status = store.StatusOK; i%10 == 9 {
			c.Status = store.StatusFailed
		}
		if err := s.Append(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	next := int64(10)
	for c, err := range store.Tail(ctx, s, store.CallQuery{Status: store.StatusFailed, Limit: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Seq != next {
			t.Fatalf("filtered tail gave %d, want %d", c.Seq, next)
		}
		if next += 10; next > 110 {
			return
		}
		if next == 110 { // the tail has caught up; the next record is appended meanwhile
			go func() {
				for i := range 10 {
					c := Call(i)
					if c.Status = store.StatusOK; i == 9 {
						c.Status = store.StatusFailed
					}
					if err := s.Append(ctx, c); err != nil {
						t.Error(err)
					}
				}
			}()
		}
	}
}

func tailAcross(t *testing.T, open Opener) {
	a, b, ctx := running(t, open), running(t, open), deadline(t)
	const total = 60
	var wg sync.WaitGroup
	for _, s := range []store.Store{a, b} {
		wg.Go(func() { expectTail(ctx, t, s, 0, total) })
		wg.Go(func() {
			for i := range total / 2 {
				if err := s.Append(ctx, Call(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func tailEnds(t *testing.T, open Opener) {
	s := open(t)
	ctx, cancel := context.WithCancel(deadline(t))
	defer cancel()
	if err := s.Append(ctx, Call(1)); err != nil {
		t.Fatal(err)
	}
	for _, err := range store.Tail(ctx, s, store.CallQuery{}) {
		if err != nil {
			t.Errorf("a canceled tail gave an error: %v", err)
		}
		cancel()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range store.Tail(deadline(t), s, store.CallQuery{}) {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("tail of a closed store: error = %v, want ErrClosed", err)
		}
	}
}

func changes(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	quiet, cancel := context.WithCancel(ctx)
	const announced = "announced"
	left := s.Watch(quiet, announced)
	cancel()
	for topic, act := range map[string]func() error{
		announced:               func() error { s.Announce(announced); return nil },
		store.TopicCalls:        func() error { return s.Append(ctx, Call(1)) },
		store.TopicKeys:         func() error { return s.AddKey(ctx, key("k", 1)) },
		store.TopicCatalogues:   func() error { return s.PutCatalogue(ctx, store.Catalogue{Server: "a"}) },
		store.TopicValues("v"):  func() error { _, err := s.PutValue(ctx, store.Value{Space: "v", Name: "n"}, 0); return err },
		store.TopicSession("x"): func() error { return s.CreateSession(ctx, store.Session{ID: "x", Created: at(0)}) },
	} {
		ch := s.Watch(ctx, topic)
		if err := act(); err != nil {
			t.Fatal(err)
		}
		expectSignal(ctx, t, topic, ch)
	}
	select {
	case <-left:
		// It may have been signalled before it was removed.
	default:
	}
}

func changesAcross(t *testing.T, open Opener) {
	a, b, ctx := running(t, open), running(t, open), deadline(t)
	for topic, act := range map[string]func() error{
		store.TopicCalls: func() error { return a.Append(ctx, Call(1)) },
		store.TopicKeys:  func() error { return a.AddKey(ctx, key("k", 1)) },
		store.TopicSession("x"): func() error {
			if err := a.CreateSession(ctx, store.Session{ID: "x", Created: at(0)}); err != nil {
				return err
			}
			return a.AppendEvents(ctx, "x", store.Event{Seq: 1, Time: at(1), Data: []byte(`{}`)})
		},
	} {
		ch := b.Watch(ctx, topic)
		if err := act(); err != nil {
			t.Fatal(err)
		}
		expectSignal(ctx, t, topic, ch)
	}
}

func expectSignal(ctx context.Context, t testing.TB, topic string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-ctx.Done():
		t.Fatalf("no word of a change under %s", topic)
	}
}

// closed checks that the methods of a closed store return ErrClosed.
func closed(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second Close = %v, want nil", err)
	}
	for name, act := range map[string]func() error{
		"Append":     func() error { return s.Append(ctx, Call(1)) },
		"Calls":      func() error { _, err := s.Calls(ctx, store.CallQuery{}); return err },
		"Call":       func() error { _, err := s.Call(ctx, "x"); return err },
		"Stats":      func() error { _, err := s.Stats(ctx, store.CallQuery{}); return err },
		"LastSeq":    func() error { _, err := s.LastSeq(ctx); return err },
		"Catalogues": func() error { _, err := s.Catalogues(ctx); return err },
		"Observe": func() error {
			_, err := s.Observe(ctx, "a", []store.Observation{{Tool: "t", Fingerprint: "f"}})
			return err
		},
		"Keys":      func() error { _, err := s.Keys(ctx); return err },
		"KeyByHash": func() error { _, err := s.KeyByHash(ctx, []byte("h")); return err },
		"RevokeKey": func() error { _, err := s.RevokeKey(ctx, "k", at(0)); return err },
		"Value":     func() error { _, err := s.Value(ctx, "a", "b"); return err },
		"PutValue":  func() error { _, err := s.PutValue(ctx, store.Value{}, store.AnyVersion); return err },
		"Session":   func() error { _, err := s.Session(ctx, "x"); return err },
		"UpdateSession": func() error {
			_, err := s.UpdateSession(ctx, "x", func(*store.Session) error { return nil })
			return err
		},
		"AppendEvents":  func() error { return s.AppendEvents(ctx, "x", store.Event{Seq: 1}) },
		"SendMessages":  func() error { return s.SendMessages(ctx, "b", []byte("x")) },
		"TakeMessages":  func() error { _, err := s.TakeMessages(ctx, "b", nil); return err },
		"TakeMessages+": func() error { _, err := s.TakeMessages(ctx, "b", []int64{1}); return err },
		"Acquire":       func() error { _, _, err := s.Acquire(ctx, "l", "o", timeout); return err },
	} {
		if err := act(); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s of a closed store: error = %v, want ErrClosed", name, err)
		}
	}
}
