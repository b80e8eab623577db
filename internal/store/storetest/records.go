package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
)

func catalogues(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	full := store.Catalogue{
		Server: "b", Config: "c1", Info: json.RawMessage(`{ "name":"srv" }`), Guidance: tool.Guidance{Text: "use it well", Source: tool.FromPrompt},
		Tools: []json.RawMessage{[]byte(`{ "name":"x", "d":"<b>" }`), []byte(`{"name":"y"}`)}, Seen: at(1),
	}
	bare := store.Catalogue{Server: "a", Seen: at(2)}
	for _, c := range []store.Catalogue{full, bare} {
		if err := s.PutCatalogue(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	got := must[[]store.Catalogue](t)(s.Catalogues(ctx))
	equal(t, "Catalogues", got, []store.Catalogue{bare, full})
	if string(got[1].Tools[0]) != string(full.Tools[0]) || string(got[1].Info) != string(full.Info) {
		t.Errorf("a definition came back as %s, want %s", got[1].Tools[0], full.Tools[0])
	}
	full.Tools, full.Seen = full.Tools[:1], at(3)
	if err := s.PutCatalogue(ctx, full); err != nil {
		t.Fatal(err)
	}
	equal(t, "Catalogues after a change", must[[]store.Catalogue](t)(s.Catalogues(ctx)), []store.Catalogue{bare, full})
}

func fingerprints(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	see := func(obs ...store.Observation) []store.Fingerprint {
		t.Helper()
		return must[[]store.Fingerprint](t)(s.Observe(ctx, "a", obs))
	}
	x1 := store.Observation{Tool: "x", Fingerprint: "1", Definition: json.RawMessage(`{"v": 1}`)}
	x2 := store.Observation{Tool: "x", Fingerprint: "2", Definition: json.RawMessage(`{"v": 2}`)}
	y1 := store.Observation{Tool: "y", Fingerprint: "1", Definition: json.RawMessage(`{}`)}

	first := see(y1, x1)
	if len(first) != 2 || first[0].Tool != "y" || first[1].Tool != "x" {
		t.Fatalf("Observe returned %+v, want y and x in the order seen", first)
	}
	for _, f := range first {
		if f.Changed() || f.First != f.Current || f.ApprovedBy != "" || f.FirstSeen.IsZero() {
			t.Errorf("a tool seen first: %+v, want it approved as it is", f)
		}
	}
	equal(t, "the same again", see(y1, x1), first)

	changed := see(x2)
	if len(changed) != 1 || !changed[0].Changed() || changed[0].First != "1" || changed[0].Current != "2" || changed[0].Approved != "1" ||
		string(changed[0].Definition) != string(x1.Definition) {
		t.Errorf("a changed tool: %+v", changed)
	}
	if err := s.Approve(ctx, "a", x1, "key:admin"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Approve of what is not current: error = %v, want ErrConflict", err)
	}
	if err := s.Approve(ctx, "a", store.Observation{Tool: "z"}, "key:admin"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Approve of an unknown tool: error = %v, want ErrNotFound", err)
	}
	if err := s.Approve(ctx, "a", x2, "key:admin"); err != nil {
		t.Fatal(err)
	}
	f := see(x2)[0]
	if f.Changed() || f.First != "1" || f.Approved != "2" || f.ApprovedBy != "key:admin" || string(f.Definition) != string(x2.Definition) {
		t.Errorf("an approved tool: %+v", f)
	}
	if back := see(x1)[0]; !back.Changed() {
		t.Errorf("back to the first definition after another was approved: %+v, want changed", back)
	}

	if got := must[[]store.Fingerprint](t)(s.Observe(ctx, "b", []store.Observation{x1})); got[0].Server != "b" || got[0].Changed() {
		t.Errorf("the same tool of another server: %+v", got[0])
	}
	if got := must[[]store.Fingerprint](t)(s.Observe(ctx, "c", nil)); len(got) != 0 {
		t.Errorf("Observe of nothing = %+v", got)
	}
	var names []string
	for _, f := range must[[]store.Fingerprint](t)(s.Fingerprints(ctx, "")) {
		names = append(names, f.Server+":"+f.Tool)
	}
	equal(t, "all fingerprints", names, []string{"a:x", "a:y", "b:x"})
	if got := must[[]store.Fingerprint](t)(s.Fingerprints(ctx, "b")); len(got) != 1 {
		t.Errorf("fingerprints of b = %+v, want one", got)
	}
}

func key(name string, n int) store.Key {
	return store.Key{ID: fmt.Sprintf("id%d", n), Name: name, Hash: []byte{byte(n), 0, 255}, Hint: "jk_ab", Created: at(n)}
}

func keys(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	full := key("ci", 1)
	full.Admin, full.Servers, full.Tools = true, []string{"git*"}, []string{}
	full.Rate, full.Expires = tool.Rate{Calls: 5, Per: time.Second}, at(100)
	full.Chat, full.Tokens, full.Profile = new(false), 1<<40, "coding"
	bare := key("dev", 2)
	for _, k := range []store.Key{bare, full} {
		if err := s.AddKey(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	got := must[[]store.Key](t)(s.Keys(ctx))
	equal(t, "Keys", got, []store.Key{full, bare})
	if got[0].Tools == nil || got[1].Tools != nil || got[1].Servers != nil {
		t.Errorf("no limit and nothing allowed were mixed up: %#v, %#v", got[0].Tools, got[1].Tools)
	}
	if !bytes.Equal(got[0].Hash, full.Hash) {
		t.Errorf("hash = %x, want %x", got[0].Hash, full.Hash)
	}
	equal(t, "KeyByHash", must[store.Key](t)(s.KeyByHash(ctx, full.Hash)), full)
	if _, err := s.KeyByHash(ctx, []byte("none")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("KeyByHash of none: error = %v, want ErrNotFound", err)
	}

	if err := s.TouchKeys(ctx, map[string]time.Time{full.ID: at(50), "gone": at(50)}); err != nil {
		t.Fatal(err)
	}
	if err := s.TouchKeys(ctx, map[string]time.Time{full.ID: at(40)}); err != nil {
		t.Fatal(err)
	}
	if err := s.TouchKeys(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if got := must[store.Key](t)(s.KeyByHash(ctx, full.Hash)); !got.LastUsed.Equal(at(50)) {
		t.Errorf("last used %v, want %v: never backwards", got.LastUsed, at(50))
	}

	revoked := must[store.Key](t)(s.RevokeKey(ctx, "ci", at(60)))
	if revoked.ID != full.ID || !revoked.Revoked.Equal(at(60)) || revoked.Valid(at(61)) {
		t.Errorf("RevokeKey = %+v", revoked)
	}
	if got := must[store.Key](t)(s.KeyByHash(ctx, full.Hash)); got.Valid(at(61)) {
		t.Error("a revoked key is valid")
	}
	if _, err := s.RevokeKey(ctx, "ci", at(61)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("RevokeKey twice: error = %v, want ErrNotFound", err)
	}
	if got := must[store.Key](t)(s.RevokeKey(ctx, bare.ID, at(62))); got.Name != "dev" {
		t.Errorf("RevokeKey by id = %+v", got)
	}
}

func keyConflicts(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	if err := s.AddKey(ctx, key("ci", 1)); err != nil {
		t.Fatal(err)
	}
	sameHash := key("other", 2)
	sameHash.Hash = key("ci", 1).Hash
	for name, k := range map[string]store.Key{"name": key("ci", 3), "id": key("third", 1), "hash": sameHash} {
		if err := s.AddKey(ctx, k); !errors.Is(err, store.ErrConflict) {
			t.Errorf("AddKey with a taken %s: error = %v, want ErrConflict", name, err)
		}
	}
	must[store.Key](t)(s.RevokeKey(ctx, "ci", at(9)))
	if err := s.AddKey(ctx, key("ci", 4)); err != nil {
		t.Errorf("the name of a revoked key: %v, want it free again", err)
	}
	if got := must[store.Key](t)(s.RevokeKey(ctx, "ci", at(10))); got.ID != "id4" {
		t.Errorf("RevokeKey of a name used twice ended %s, want the one in force, id4", got.ID)
	}
}

func sessions(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	for i, owner := range []string{"ann", "bob", "ann"} {
		c := store.Session{ID: fmt.Sprint(i), Owner: owner, Title: "t", Model: "m", Created: at(i), Updated: at(i), Metadata: json.RawMessage(`{ "k": 1 }`)}
		if err := s.CreateSession(ctx, c); err != nil {
			t.Fatal(err)
		}
		equal(t, "Session", must[store.Session](t)(s.Session(ctx, c.ID)), c)
	}
	if err := s.CreateSession(ctx, store.Session{ID: "0"}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("CreateSession twice: error = %v, want ErrConflict", err)
	}
	if _, err := s.Session(ctx, "none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Session of none: error = %v, want ErrNotFound", err)
	}
	for name, tt := range map[string]struct {
		q    store.SessionQuery
		want []string
	}{
		"all":    {want: []string{"2", "1", "0"}},
		"owner":  {q: store.SessionQuery{Owner: "ann"}, want: []string{"2", "0"}},
		"before": {q: store.SessionQuery{Before: at(2)}, want: []string{"1", "0"}},
		"limit":  {q: store.SessionQuery{Limit: 1}, want: []string{"2"}},
		"none":   {q: store.SessionQuery{Owner: "eve"}},
	} {
		var ids []string
		for _, c := range must[[]store.Session](t)(s.Sessions(ctx, tt.q)) {
			ids = append(ids, c.ID)
		}
		equal(t, "sessions by "+name, ids, tt.want)
	}
	if err := s.AppendMessages(ctx, "0", store.Message{Seq: 1, Role: "user"}); err != nil {
		t.Fatal(err)
	}
	if got := must[[]store.Session](t)(s.Sessions(ctx, store.SessionQuery{})); got[0].ID != "0" {
		t.Errorf("newest change first: got %s, want 0, which got a message", got[0].ID)
	}
	content, err := json.Marshal(map[string]string{"text": "Über \"quoted\" <Reports> 100%"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AppendMessages(ctx, "2", store.Message{Seq: 1, Role: "user", Content: content}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"reports": 1, `"quoted" <r`: 1, "Über": 1, "100%": 1, "0_%": 0, "t": 3, "absent": 0} {
		if got := must[[]store.Session](t)(s.Sessions(ctx, store.SessionQuery{Text: text})); len(got) != want || want == 1 && got[0].ID != "2" {
			t.Errorf("sessions with %q: %d, want %d", text, len(got), want)
		}
	}
	for _, id := range []string{"1", "0", "0"} { // deleting the last one again is not an error
		if err := s.DeleteSession(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if got := must[[]store.Message](t)(s.Messages(ctx, "0", 0, 0)); len(got) != 0 {
		t.Errorf("a deleted session left %d messages", len(got))
	}
	if got := must[[]store.Session](t)(s.Sessions(ctx, store.SessionQuery{})); len(got) != 1 || got[0].ID != "2" {
		t.Errorf("left: %+v, want session 2 alone", got)
	}
}

func sessionUpdates(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	if err := s.CreateSession(ctx, store.Session{ID: "x", Owner: "ann", Created: at(0)}); err != nil {
		t.Fatal(err)
	}
	if got := must[store.Session](t)(s.Session(ctx, "x")); !got.Updated.Equal(at(0)) {
		t.Errorf("a new session was updated at %v, want when it was created", got.Updated)
	}
	stop := errors.New("stop")
	if _, err := s.UpdateSession(ctx, "x", func(c *store.Session) error { c.Title = "no"; return stop }); !errors.Is(err, stop) {
		t.Errorf("UpdateSession: error = %v, want that of the change", err)
	}
	if _, err := s.UpdateSession(ctx, "none", func(*store.Session) error { return nil }); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("UpdateSession of none: error = %v, want ErrNotFound", err)
	}
	// Concurrent changes: none is lost.
	const n = 20
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			_, err := s.UpdateSession(ctx, "x", func(c *store.Session) error { c.Title += "i"; c.ID = "ignored"; return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := must[store.Session](t)(s.Session(ctx, "x"))
	if len(got.Title) != n || got.Updated.Equal(at(0)) || got.Owner != "ann" {
		t.Errorf("after %d changes: %+v", n, got)
	}
	back := must[store.Session](t)(s.UpdateSession(ctx, "x", func(c *store.Session) error {
		c.Model, c.Metadata = "m", json.RawMessage(`{"a": 1}`)
		return nil
	}))
	equal(t, "what UpdateSession returned", must[store.Session](t)(s.Session(ctx, "x")), back)
}

func messages(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	if err := s.AppendMessages(ctx, "x", store.Message{Seq: 1}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("AppendMessages without a session: error = %v, want ErrNotFound", err)
	}
	if err := s.CreateSession(ctx, store.Session{ID: "x", Created: at(0)}); err != nil {
		t.Fatal(err)
	}
	m := func(n int64) store.Message {
		return store.Message{Session: "x", Seq: n, Time: at(int(n)), Role: "assistant",
			Content: json.RawMessage(fmt.Sprintf(`{ "n": %d }`, n)), Native: json.RawMessage(`{"sig": "<&>"}`)}
	}
	if err := s.AppendMessages(ctx, "x", m(1), m(2)); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendMessages(ctx, "x", m(3), m(2)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("AppendMessages with a taken number: error = %v, want ErrConflict", err)
	}
	if err := s.AppendMessages(ctx, "x", store.Message{Seq: 4, Role: "user", Time: at(4)}); err != nil {
		t.Fatal(err)
	}
	all := []store.Message{m(1), m(2), {Session: "x", Seq: 4, Role: "user", Time: at(4)}}
	got := must[[]store.Message](t)(s.Messages(ctx, "x", 0, 0))
	equal(t, "Messages: all or none were added", got, all)
	if string(got[0].Content) != `{ "n": 1 }` || string(got[0].Native) != `{"sig": "<&>"}` {
		t.Errorf("bytes changed: %s %s", got[0].Content, got[0].Native)
	}
	equal(t, "Messages after 1", must[[]store.Message](t)(s.Messages(ctx, "x", 1, 0)), all[1:])
	equal(t, "Messages limited", must[[]store.Message](t)(s.Messages(ctx, "x", 0, 2)), all[:2])
}

func events(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	e := func(n int64) store.Event {
		return store.Event{Session: "x", Seq: n, Time: at(int(n)), Data: json.RawMessage(fmt.Sprintf(`{"n": %d}`, n))}
	}
	for _, batch := range [][]store.Event{{e(1)}, {e(1), e(2)}} {
		if err := s.AppendEvents(ctx, "x", batch...); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("AppendEvents without a session: error = %v, want ErrNotFound", err)
		}
	}
	if err := s.CreateSession(ctx, store.Session{ID: "x", Created: at(0)}); err != nil {
		t.Fatal(err)
	}
	for _, batch := range [][]store.Event{{e(1)}, {e(2), e(3), e(4)}, {}} {
		if err := s.AppendEvents(ctx, "x", batch...); err != nil {
			t.Fatal(err)
		}
	}
	for _, batch := range [][]store.Event{{e(4)}, {e(5), e(4)}} {
		if err := s.AppendEvents(ctx, "x", batch...); !errors.Is(err, store.ErrConflict) {
			t.Errorf("AppendEvents with a taken number: error = %v, want ErrConflict", err)
		}
	}
	equal(t, "Events", must[[]store.Event](t)(s.Events(ctx, "x", 0, 0)), []store.Event{e(1), e(2), e(3), e(4)})
	equal(t, "Events after 1, limited", must[[]store.Event](t)(s.Events(ctx, "x", 1, 2)), []store.Event{e(2), e(3)})
	if err := s.TrimEvents(ctx, "x", 3); err != nil {
		t.Fatal(err)
	}
	equal(t, "Events after a trim", must[[]store.Event](t)(s.Events(ctx, "x", 0, 0)), []store.Event{e(4)})
	if got := must[store.Session](t)(s.Session(ctx, "x")); !got.Updated.Equal(at(0)) {
		t.Errorf("events changed the session: updated %v", got.Updated)
	}

	// Concurrent writers with the same numbers, on two handles: one of them
	// succeeds, with all of its events.
	other := open(t)
	var wg sync.WaitGroup
	var won atomic.Int32
	for _, h := range []store.Store{s, other, s, other} {
		wg.Go(func() {
			switch err := h.AppendEvents(ctx, "x", e(10), e(11)); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, store.ErrConflict):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d writers won the same numbers, want 1", won.Load())
	}
}
