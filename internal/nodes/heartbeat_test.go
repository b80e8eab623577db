package nodes

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/sqlite"
	"junctor/internal/store"
)

// slowStore blocks queries about other nodes and about the list, and reports
// heartbeats.
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

// TestHeartbeatIsIndependentOfHangingQueries checks that a node renews its
// lease while other queries hang, so that it is not considered dead.
func TestHeartbeatIsIndependentOfHangingQueries(t *testing.T) {
	st, err := sqlite.Open(context.Background(), store.Config{Path: newTestCluster(t).path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	slow := &slowStore{Store: st, beats: make(chan struct{}, 1), stuck: make(chan struct{})}
	n := New(Options{Store: slow, Name: "test", Log: slog.New(slog.DiscardHandler)})
	slow.id = n.ID
	n.conns["x"] = newConn(n, "other", "x") // makes the node check the other one
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

// probedStore initially assigns a node's lease to another owner, as a probe
// does, and records whether the node has its lease when it registers.
type probedStore struct {
	Store
	id     func() string
	probed atomic.Bool
	held   atomic.Bool
	listed chan bool
}

func (s *probedStore) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (store.Lease, bool, error) {
	if name == lease(s.id()) && s.probed.CompareAndSwap(false, true) {
		return store.Lease{Name: name, Owner: "probe"}, false, nil
	}
	l, held, err := s.Store.Acquire(ctx, name, owner, ttl)
	if owner == s.id() && held {
		s.held.Store(true)
	}
	return l, held, err
}

func (s *probedStore) PutValue(ctx context.Context, v store.Value, version int64) (store.Value, error) {
	if v.Space == space {
		select {
		case s.listed <- s.held.Load():
		default:
		}
	}
	return s.Store.PutValue(ctx, v, version)
}

// TestNodeHasItsLeaseBeforeItIsListed checks that a node has its lease before
// it is in the list. Others consider a listed node without a lease dead and
// would not forward to it.
func TestNodeHasItsLeaseBeforeItIsListed(t *testing.T) {
	st, err := sqlite.Open(t.Context(), store.Config{Path: newTestCluster(t).path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	probed := &probedStore{Store: st, listed: make(chan bool, 1)}
	n := New(Options{Store: probed, Name: "test", Log: slog.New(slog.DiscardHandler)})
	probed.id = n.ID
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	if held := <-probed.listed; !held {
		t.Error("the node entered the list without its lease")
	}
	cancel()
	<-done
}
