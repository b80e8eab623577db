package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/store"
)

func values(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	if _, err := s.Value(ctx, "a", "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Value of none: error = %v, want ErrNotFound", err)
	}
	for _, name := range []string{"y", "x"} {
		v := must[store.Value](t)(s.PutValue(ctx, store.Value{Space: "a", Name: name, Data: []byte{0, 1, 255}, Expires: time.Now().Add(time.Hour)}, 0))
		got := must[store.Value](t)(s.Value(ctx, "a", name))
		equal(t, "Value", got, v)
		if string(got.Data) != "\x00\x01\xff" || got.Updated.IsZero() || got.Version <= 0 {
			t.Errorf("Value = %+v", got)
		}
	}
	must[store.Value](t)(s.PutValue(ctx, store.Value{Space: "b", Name: "x"}, store.AnyVersion))
	if got := must[store.Value](t)(s.Value(ctx, "b", "x")); len(got.Data) != 0 || !got.Expires.IsZero() {
		t.Errorf("an empty value = %+v", got)
	}
	all := must[[]store.Value](t)(s.Values(ctx, "a"))
	if len(all) != 2 || all[0].Name != "x" || all[1].Name != "y" {
		t.Errorf("Values = %+v, want x and y", all)
	}
	for range 2 {
		if err := s.DeleteValue(ctx, "a", "x", store.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	if got := must[[]store.Value](t)(s.Values(ctx, "a")); len(got) != 1 {
		t.Errorf("Values after a deletion = %+v", got)
	}
}

func valueVersions(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	put := func(data string, ifVersion int64) (store.Value, error) {
		return s.PutValue(ctx, store.Value{Space: "a", Name: "x", Data: []byte(data)}, ifVersion)
	}
	if _, err := put("no", 7); !errors.Is(err, store.ErrConflict) {
		t.Errorf("PutValue over a version that is not there: error = %v, want ErrConflict", err)
	}
	v1 := must[store.Value](t)(put("1", 0))
	if _, err := put("no", 0); !errors.Is(err, store.ErrConflict) {
		t.Errorf("PutValue of a new value that is there: error = %v, want ErrConflict", err)
	}
	v2 := must[store.Value](t)(put("2", v1.Version))
	if v2.Version <= v1.Version {
		t.Errorf("versions %d then %d, want growing", v1.Version, v2.Version)
	}
	if _, err := put("no", v1.Version); !errors.Is(err, store.ErrConflict) {
		t.Errorf("PutValue over an old version: error = %v, want ErrConflict", err)
	}
	v3 := must[store.Value](t)(put("3", store.AnyVersion))
	if got := must[store.Value](t)(s.Value(ctx, "a", "x")); string(got.Data) != "3" || got.Version != v3.Version {
		t.Errorf("Value = %+v, want the third", got)
	}
	if err := s.DeleteValue(ctx, "a", "x", v2.Version); !errors.Is(err, store.ErrConflict) {
		t.Errorf("DeleteValue of an old version: error = %v, want ErrConflict", err)
	}
	if err := s.DeleteValue(ctx, "a", "x", v3.Version); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteValue(ctx, "a", "x", v3.Version); err != nil {
		t.Errorf("DeleteValue of none: %v, want nil", err)
	}
	if v4 := must[store.Value](t)(put("4", 0)); v4.Version <= v3.Version {
		t.Errorf("a value made anew has version %d, before %d: an old version must not come back", v4.Version, v3.Version)
	}
}

func valueExpiry(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	put := func(until time.Time, ifVersion int64) (store.Value, error) {
		return s.PutValue(ctx, store.Value{Space: "a", Name: "x", Data: []byte("d"), Expires: until}, ifVersion)
	}
	old := must[store.Value](t)(put(time.Now().Add(-time.Hour), store.AnyVersion))
	if _, err := s.Value(ctx, "a", "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an expired value: error = %v, want ErrNotFound", err)
	}
	if got := must[[]store.Value](t)(s.Values(ctx, "a")); len(got) != 0 {
		t.Errorf("expired values are listed: %+v", got)
	}
	if _, err := put(time.Now().Add(time.Hour), old.Version); !errors.Is(err, store.ErrConflict) {
		t.Errorf("PutValue over an expired version: error = %v, want ErrConflict", err)
	}
	if err := s.DeleteValue(ctx, "a", "x", 0); err != nil {
		t.Errorf("DeleteValue of an expired value: %v", err)
	}
	fresh := must[store.Value](t)(put(time.Now().Add(time.Hour), 0))
	if fresh.Version <= old.Version {
		t.Errorf("version %d after %d, want growing", fresh.Version, old.Version)
	}
	soon := must[store.Value](t)(put(time.Now().Add(20*time.Millisecond), fresh.Version))
	eventually(t, "expiry", func() bool {
		_, err := s.Value(ctx, "a", soon.Name)
		return errors.Is(err, store.ErrNotFound)
	})
}

// valueRaces checks that of many writers with the same version one succeeds.
func valueRaces(t *testing.T, open Opener) {
	ctx := deadline(t)
	handles := []store.Store{open(t), open(t)}
	version := int64(0)
	for range 5 {
		var wg sync.WaitGroup
		var won atomic.Int64
		var wins atomic.Int32
		for i := range 8 {
			wg.Go(func() {
				v, err := handles[i%2].PutValue(ctx, store.Value{Space: "a", Name: "x", Data: []byte{byte(i)}}, version)
				switch {
				case err == nil:
					wins.Add(1)
					won.Store(v.Version)
				case !errors.Is(err, store.ErrConflict):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			t.Fatalf("%d writers won over version %d, want 1", wins.Load(), version)
		}
		version = won.Load()
	}
}

func leases(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	take := func(owner string, ttl time.Duration) (store.Lease, bool) {
		t.Helper()
		l, held, err := s.Acquire(ctx, "refresh", owner, ttl)
		if err != nil {
			t.Fatal(err)
		}
		return l, held
	}
	a, held := take("a", time.Hour)
	if !held || a.Owner != "a" || a.Name != "refresh" || a.Left <= 59*time.Minute || a.Left > time.Hour {
		t.Errorf("a free lease: %+v, %v", a, held)
	}
	if l, held := take("b", time.Hour); held || l.Owner != "a" || l.Left <= 0 || l.Token != a.Token {
		t.Errorf("a lease that a holds: %+v, %v", l, held)
	}
	if l, held := take("a", 2*time.Hour); !held || l.Token != a.Token || l.Left <= time.Hour {
		t.Errorf("prolonged: %+v, %v", l, held)
	}
	if err := s.Release(ctx, "refresh", "b"); err != nil {
		t.Fatal(err)
	}
	if _, held := take("b", time.Hour); held {
		t.Error("b gave back what it did not have, and got the lease")
	}
	for range 2 {
		if err := s.Release(ctx, "refresh", "a"); err != nil {
			t.Fatal(err)
		}
	}
	b, held := take("b", 20*time.Millisecond)
	if !held || b.Token <= a.Token {
		t.Errorf("after a release: %+v, %v; want a token after %d", b, held, a.Token)
	}
	eventually(t, "the end of a lease", func() bool {
		_, held := take("c", time.Hour)
		return held
	})
	if l, held := take("b", time.Hour); held || l.Owner != "c" || l.Token <= b.Token {
		t.Errorf("after another took the lease: %+v, %v", l, held)
	}
	if _, held, err := s.Acquire(ctx, "other", "b", time.Hour); !held || err != nil {
		t.Errorf("a lease of another name: %v, %v", held, err)
	}
}

// leaseRaces checks that a lease never has two owners at the same time.
func leaseRaces(t *testing.T, open Opener) {
	ctx, cancel := context.WithCancel(deadline(t))
	defer cancel()
	handles := []store.Store{open(t), open(t)}
	var inside atomic.Int32
	var rounds atomic.Int32
	var lastToken atomic.Int64
	var wg sync.WaitGroup
	for i, owner := range []string{"a", "b", "c", "d"} {
		s := handles[i%2]
		wg.Go(func() {
			for rounds.Load() < 40 {
				l, held, err := s.Acquire(ctx, "one", owner, time.Hour)
				if err != nil {
					t.Error(err)
					return
				}
				if !held {
					continue
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d owners at once", n)
				}
				if before := lastToken.Swap(l.Token); l.Token <= before {
					t.Errorf("token %d after %d", l.Token, before)
				}
				rounds.Add(1)
				inside.Add(-1)
				if err := s.Release(ctx, "one", owner); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
