package auth

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeysAreCachedBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := &memory{}
		key := keys.add(t, "k", nil)
		g := gate(keys, func(o *Options) { o.Listen = "10.0.0.1:80" })
		status := func() int { w, _ := ask(g, set("X-API-Key", key)); return w.Code }
		for range 10 {
			status()
		}
		if keys.lookups != 1 {
			t.Errorf("%d look-ups for 10 requests", keys.lookups)
		}
		keys.err = errors.New("database away")
		time.Sleep(time.Minute)
		if got := status(); got != 200 {
			t.Errorf("a known key while the store is away: %d", got)
		}
		time.Sleep(5 * time.Minute)
		if got := status(); got != 503 {
			t.Errorf("after a long time: %d", got)
		}
		keys.err = nil
		if got := status(); got != 200 {
			t.Errorf("after its return: %d", got)
		}
		clear(keys.keys)
		time.Sleep(keyCacheTTL)
		if got := status(); got != 401 {
			t.Errorf("a deleted key: %d", got)
		}
	})
}

func TestKnownKeysAreBounded(t *testing.T) {
	keys := &memory{}
	r := newKeyring(keys)
	for range maxKnownKeys + 5 {
		key := keys.add(t, "k", nil)
		if _, err := r.find(t.Context(), hash(key)); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.known) > maxKnownKeys {
		t.Errorf("%d keys in memory", len(r.known))
	}
}

func TestRunWritesLastUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := &memory{}
		key := keys.add(t, "k", nil)
		g := gate(keys, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- g.Run(ctx) }()
		ask(g, set("X-API-Key", key))
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if len(keys.touched) != 1 {
			t.Errorf("touched %v", keys.touched)
		}
		keys.err = errors.New("away") // logged, not fatal
		ask(g, set("X-API-Key", key))
		time.Sleep(10 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
