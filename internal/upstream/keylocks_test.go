package upstream

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestKeyLocks(t *testing.T) {
	var l KeyLocks[string]
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("left")
	cancel(left)
	unlock, err := l.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Lock(ctx, "a"); !errors.Is(err, left) {
		t.Errorf("a cancelled wait: %v", err)
	}
	count := 0 // which the lock guards
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			unlock, err := l.Lock(context.Background(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			count++
		})
	}
	other, err := l.Lock(t.Context(), "b")
	if err != nil {
		t.Errorf("another key: %v", err)
	}
	other()
	unlock()
	wg.Wait()
	if count != 10 || len(l.locks) != 0 {
		t.Errorf("%d holders, %d locks are left", count, len(l.locks))
	}
}
