package nodes

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"junctor/internal/sqlite"
	"junctor/internal/store"
)

// slowStore does not answer questions about other nodes and about the list,
// and tells of heartbeats.
type slowStore struct {
	Store
	id    func() string
	beats chan struct{}
	stuck chan struct{}
	once  sync.Once
}

func (s *slowStore) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (store.Lease, bool, error) {
	if name != lease(s.id()) {
		s.once.Do(func() { close(s.stuck) })
		<-ctx.Done()
		return store.Lease{}, false, ctx.Err()
	}
	select {
	case s.beats <- struct{}{}:
	default:
	}
	return s.Store.Acquire(ctx, name, owner, ttl)
}

// TestHeartbeatIsIndependentOfHangingQueries: a node keeps renewing its lease
// while other queries hang, so that it is not considered dead.
func TestHeartbeatIsIndependentOfHangingQueries(t *testing.T) {
	st, err := sqlite.Open(context.Background(), store.Config{Path: newTestCluster(t).path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	slow := &slowStore{Store: st, beats: make(chan struct{}, 1), stuck: make(chan struct{})}
	n := New(Options{Store: slow, Name: "test", Log: slog.New(slog.DiscardHandler)})
	slow.id = n.ID
	n.conns["x"] = newConn(n, "other", "x") // so that it looks for the other
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	select {
	case <-slow.stuck:
	case <-ctx.Done():
		t.Fatal("the node does not look for the other")
	}
	for i := range 3 {
		select {
		case <-slow.beats:
		case <-ctx.Done():
			t.Fatalf("%d heartbeats while another query hangs, want one after the other", i)
		}
	}
	cancel()
	<-done
}
