package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"junctor/internal/store"
)

func importing(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	c := Call(1)
	c.Seq = 41
	b := store.Batch{
		Calls:    []store.Call{c},
		Sessions: []store.Session{{ID: "x", Owner: "ann", Title: "t", Created: at(1), Updated: at(2)}},
		Messages: []store.Message{{Session: "x", Seq: 1, Time: at(1), Role: "user", Content: json.RawMessage(`{}`)}},
		Events:   []store.Event{{Session: "x", Seq: 3, Time: at(1), Data: json.RawMessage(`{}`)}},
	}
	for range 2 { // the second changes nothing
		if err := s.Import(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "calls", must[[]store.Call](t)(s.Calls(ctx, store.CallQuery{})), b.Calls)
	equal(t, "session", must[store.Session](t)(s.Session(ctx, "x")), b.Sessions[0])
	if err := s.Append(ctx, Call(2)); err != nil {
		t.Fatal(err)
	}
	if n := must[int64](t)(s.LastSeq(ctx)); n != 42 {
		t.Errorf("the number after an imported 41 is %d, want 42", n)
	}
	if err := s.Import(ctx, store.Batch{Messages: []store.Message{{Session: "none", Seq: 1}}}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a message without its session: error = %v, want ErrNotFound", err)
	}
}

// Copy checks that store.Copy copies everything from one store to another, of
// the same engine or of different ones.
func Copy(t *testing.T, from, to store.Store) {
	ctx := deadline(t)
	fill(t, from)
	steps := map[string]int{}
	report := func(p store.CopyProgress) { steps[p.What] = p.Done }
	for range 2 { // a copy can be repeated
		if err := store.Copy(ctx, from, to, report); err != nil {
			t.Fatal(err)
		}
		compare(t, from, to)
	}
	equal(t, "progress", steps, map[string]int{"catalogues": 1, "fingerprints": 2, "keys": 2, "values": 3, "sessions": 600, "calls": 1200})

	// The copy continues the sequence of the original, and a log that has
	// diverged is refused.
	if err := to.Append(ctx, Call(5000)); err != nil {
		t.Fatal(err)
	}
	if n := must[int64](t)(to.LastSeq(ctx)); n != 1201 {
		t.Errorf("the next number of the copy is %d, want 1201", n)
	}
	if err := from.Append(ctx, Call(6000)); err != nil {
		t.Fatal(err)
	}
	if err := from.AddKey(ctx, store.Key{ID: "new", Name: "new", Hash: []byte("new"), Created: at(1)}); err != nil {
		t.Fatal(err)
	}
	if err := store.Copy(ctx, from, to, nil); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("Copy into a log that went its own way: error = %v, want ErrNotEmpty", err)
	}
	if keys := must[[]store.Key](t)(to.Keys(ctx)); len(keys) != 2 {
		t.Errorf("%d keys after a copy that was refused, want 2", len(keys))
	}
}

// CopyOnline checks that a copy of a store that is being written to terminates
// and has everything that the store had when it began.
func CopyOnline(t *testing.T, from, to store.Store) {
	ctx := deadline(t)
	fill(t, from)
	touched, n := false, 0
	err := store.Copy(ctx, from, to, func(p store.CopyProgress) {
		switch p.What {
		case "sessions":
			if !touched { // the last session in the list moves to the front
				touched = true
				must[store.Session](t)(from.UpdateSession(ctx, "s199", func(s *store.Session) error { s.Title = "new"; return nil }))
			}
		case "calls":
			for range 600 { // more than a page for each page
				n++
				if err := from.Append(ctx, Call(10_000+n)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	all := must[[]store.Session](t)(to.Sessions(ctx, store.SessionQuery{Limit: store.MaxLimit}))
	if len(all) != 600 || all[0].ID != "s199" || all[0].Title != "new" {
		t.Errorf("%d sessions, the first is %+v", len(all), all[0])
	}
	if last := must[int64](t)(to.LastSeq(ctx)); last != 1200 {
		t.Errorf("the last call is %d, want 1200", last)
	}
	if empty := must[bool](t)(store.Empty(ctx, to)); empty {
		t.Error("the copy counts as empty")
	}
}

// fill adds records of every kind to a store.
func fill(t *testing.T, s store.Store) {
	t.Helper()
	ctx := deadline(t)
	var b store.Batch
	for i := range 1200 {
		c := Call(i)
		c.Seq = int64(i + 1)
		b.Calls = append(b.Calls, c)
	}
	for i := range 600 { // many with the same time, across the pages of the copy
		b.Sessions = append(b.Sessions, store.Session{ID: fmt.Sprintf("s%d", i), Owner: "o", Title: "t", Created: at(1), Updated: at(i / 200), Metadata: json.RawMessage(`{ "a": 1 }`)})
	}
	for i := range 1100 {
		b.Messages = append(b.Messages, store.Message{Session: "s7", Seq: int64(i + 1), Time: at(i), Role: "user", Content: json.RawMessage(`{ "x":"<" }`), Native: json.RawMessage(`[1]`)})
		b.Events = append(b.Events, store.Event{Session: "s8", Seq: int64(i + 5), Time: at(i), Data: json.RawMessage(`{}`)})
	}
	if err := s.Import(ctx, b); err != nil {
		t.Fatal(err)
	}
	if err := s.PutCatalogue(ctx, store.Catalogue{Server: "a", Config: "c", Tools: []json.RawMessage{[]byte(`{ "name":"x" }`)}, Seen: at(1)}); err != nil {
		t.Fatal(err)
	}
	obs := []store.Observation{{Tool: "x", Fingerprint: "1", Definition: json.RawMessage(`{}`)}, {Tool: "y", Fingerprint: "1"}}
	must[[]store.Fingerprint](t)(s.Observe(ctx, "a", obs))
	obs[0].Fingerprint = "2"
	must[[]store.Fingerprint](t)(s.Observe(ctx, "a", obs))
	for i, name := range []string{"one", "two"} {
		k := key(name, i)
		k.Servers, k.LastUsed = []string{"a*"}, at(3)
		if err := s.AddKey(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	must[store.Key](t)(s.RevokeKey(ctx, "one", at(9)))
	for i, space := range []string{"a", "a", "b"} {
		must[store.Value](t)(s.PutValue(ctx, store.Value{Space: space, Name: fmt.Sprint(i), Data: []byte{1, 0, 2}, Expires: time.Now().Add(time.Hour).Truncate(time.Microsecond)}, 0))
	}
}

// compare reports where two stores differ.
func compare(t *testing.T, a, b store.Store) {
	t.Helper()
	ctx := deadline(t)
	q := store.CallQuery{Limit: store.MaxLimit}
	equal(t, "calls", must[[]store.Call](t)(b.Calls(ctx, q)), must[[]store.Call](t)(a.Calls(ctx, q)))
	equal(t, "catalogues", must[[]store.Catalogue](t)(b.Catalogues(ctx)), must[[]store.Catalogue](t)(a.Catalogues(ctx)))
	equal(t, "fingerprints", must[[]store.Fingerprint](t)(b.Fingerprints(ctx, "")), must[[]store.Fingerprint](t)(a.Fingerprints(ctx, "")))
	equal(t, "keys", must[[]store.Key](t)(b.Keys(ctx)), must[[]store.Key](t)(a.Keys(ctx)))
	equal(t, "values", must[[]store.Value](t)(b.Values(ctx, "")), must[[]store.Value](t)(a.Values(ctx, "")))
	sorted := func(s store.Store) []store.Session {
		all := must[[]store.Session](t)(s.Sessions(ctx, store.SessionQuery{Limit: store.MaxLimit}))
		slices.SortFunc(all, func(x, y store.Session) int { return strings.Compare(x.ID, y.ID) })
		return all
	}
	equal(t, "sessions", sorted(b), sorted(a))
	equal(t, "messages", must[[]store.Message](t)(b.Messages(ctx, "s7", 0, 0)), must[[]store.Message](t)(a.Messages(ctx, "s7", 0, 0)))
	equal(t, "events", must[[]store.Event](t)(b.Events(ctx, "s8", 0, 0)), must[[]store.Event](t)(a.Events(ctx, "s8", 0, 0)))
	for _, k := range must[[]store.Key](t)(a.Keys(ctx)) {
		if got := must[store.Key](t)(b.KeyByHash(ctx, k.Hash)); got.ID != k.ID {
			t.Errorf("key %s is not found by its hash", k.ID)
		}
	}
}
