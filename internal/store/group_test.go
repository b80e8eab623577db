package store_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"junctor/internal/store"
)

type item struct {
	n    int
	done bool
}

// TestGroupBatchesConcurrentWork checks that every item is processed once, by
// one leader at a time, and that concurrent items share a batch.
func TestGroupBatchesConcurrentWork(t *testing.T) {
	var inside, batches, items atomic.Int32
	g := store.NewGroup(8, func(batch []*item) {
		if inside.Add(1) != 1 {
			t.Error("two leaders at once")
		}
		if len(batch) == 0 || len(batch) > 8 {
			t.Errorf("a batch of %d", len(batch))
		}
		batches.Add(1)
		for _, it := range batch {
			if it.done {
				t.Error("done twice")
			}
			it.done = true
			items.Add(1)
		}
		runtime.Gosched() // let others enqueue
		inside.Add(-1)
	})
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := range 50 {
				it := item{n: i}
				if err := g.Do(context.Background(), &it); err != nil || !it.done {
					t.Errorf("Do = %v, done %v", err, it.done)
				}
			}
		})
	}
	wg.Wait()
	if items.Load() != 32*50 || batches.Load() >= items.Load() {
		t.Errorf("%d items in %d batches", items.Load(), batches.Load())
	}
	if !g.Close() || g.Close() {
		t.Error("Close does not tell the first from the second")
	}
	if err := g.Do(context.Background(), &item{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Do after Close = %v", err)
	}
}

// TestGroupWaiterCanCancel checks that a waiting item can be cancelled and one
// in progress cannot.
func TestGroupWaiterCanCancel(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	g := store.NewGroup(8, func(batch []*item) {
		first.Do(func() { close(started); <-release })
		for _, it := range batch {
			it.done = true
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	lead, left := item{}, item{}
	leader, waiter := make(chan error, 1), make(chan error, 1)
	go func() { leader <- g.Do(ctx, &lead) }()
	<-started
	go func() { waiter <- g.Do(ctx, &left) }()
	for g.Waiting() != 1 {
		runtime.Gosched()
	}
	cancel()
	if err := <-waiter; !errors.Is(err, context.Canceled) || left.done || g.Waiting() != 0 {
		t.Errorf("the one who waited: %v, done %v, %d waiting", err, left.done, g.Waiting())
	}
	close(release)
	if err := <-leader; err != nil || !lead.done {
		t.Errorf("the one under way: %v, done %v", err, lead.done)
	}
	if err := g.Do(ctx, &item{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Do with an ended context = %v", err)
	}
}
