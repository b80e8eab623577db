package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"junctor/internal/store"
)

// member is a node in the list of nodes.
type member struct {
	Name string `json:"name"`
	Left bool   `json:"left,omitempty"`
}

// heartbeat renews this node's lease. It does nothing else, so that no slow
// query makes a live node look dead. It closes leased when the node has
// acquired its lease for the first time.
func (n *Node) heartbeat(ctx context.Context, leased chan<- struct{}) {
	every(ctx, heartbeatInterval, func() {
		ctx, cancel := context.WithTimeout(ctx, n.leaseTime)
		defer cancel()
		if err := store.Renew(ctx, n.opts.Store, lease(n.id), n.id, n.leaseTime); err != nil {
			n.log.DebugContext(ctx, "heartbeat failed", "err", err)
		} else if leased != nil {
			close(leased)
			leased = nil
		}
	})
}

// watch registers this node in the list and checks the leases of the nodes
// that it has connections to. Others consider a listed node without a lease
// dead, so watch starts after leased is closed.
func (n *Node) watch(ctx context.Context, leased <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-leased:
	}
	var listed time.Time
	every(ctx, heartbeatInterval, func() {
		if time.Since(listed) > registerInterval {
			if err := n.register(ctx, member{Name: n.opts.Name}); err == nil {
				listed = time.Now()
			}
		}
		for _, other := range n.peers() {
			n.alive(ctx, other)
		}
		n.forget(time.Now())
	})
}

// every calls f immediately and then at intervals until ctx is done.
func every(ctx context.Context, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		f()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// forget drops records of connections that ended long ago and of nodes not
// seen for memberTTL.
func (n *Node) forget(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.opened, func(id string, at time.Time) bool { return n.conns[id] == nil && now.Sub(at) > 10*sendTimeout })
	maps.DeleteFunc(n.seen, func(_ string, at time.Time) bool { return now.Sub(at) > memberTTL })
}

func lease(id string) string { return "node/" + id }

func (n *Node) register(ctx context.Context, e member) error {
	data, err := json.Marshal(e)
	if err == nil {
		_, err = n.opts.Store.PutValue(ctx, store.Value{Space: space, Name: n.id, Data: data, Expires: time.Now().Add(memberTTL)}, store.AnyVersion)
	}
	return err
}

// deregister marks this node as left and releases its lease.
func (n *Node) deregister(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.leaveTime)
	defer cancel()
	if err := errors.Join(n.register(ctx, member{Name: n.opts.Name, Left: true}), n.opts.Store.Release(ctx, lease(n.id), n.id)); err != nil {
		n.log.DebugContext(ctx, "cannot announce that this node is leaving", "err", err)
	}
}

// peers returns the nodes at the other ends of connections.
func (n *Node) peers() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	set := map[string]bool{}
	for _, l := range n.conns {
		set[l.to] = true
	}
	return slices.Collect(maps.Keys(set))
}

// alive reports whether another node is alive, and closes the connections to a
// dead one. While the store is unavailable, no node is considered dead.
func (n *Node) alive(ctx context.Context, id string) bool {
	n.mu.Lock()
	recent := time.Since(n.seen[id]) < heartbeatInterval
	n.mu.Unlock()
	if recent {
		return true
	}
	dead, err := store.Expired(ctx, n.opts.Store, lease(id), n.id)
	if err != nil {
		return true
	}
	n.mu.Lock()
	if dead {
		delete(n.seen, id)
	} else {
		n.seen[id] = time.Now()
	}
	n.mu.Unlock()
	if dead {
		n.closeConns(func(l *Conn) bool { return l.to == id }, ErrUnavailable)
	}
	return !dead
}

// list keeps the list of the other nodes up to date.
func (n *Node) list(ctx context.Context) {
	changed := n.opts.Store.Watch(ctx, store.TopicValues(space))
	for {
		if _, err := n.readList(ctx); err != nil && ctx.Err() == nil {
			n.log.DebugContext(ctx, "cannot list the nodes", "err", err)
		}
		// The watch also fires spuriously, and the list need not be current,
		// so limit the rate.
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// readList reads the list of the other nodes. If that fails, it returns the
// previous list and an error.
func (n *Node) readList(ctx context.Context) (map[string]bool, error) {
	values, err := n.opts.Store.Values(ctx, space)
	if err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.others, err
	}
	others := make(map[string]bool, len(values))
	for _, v := range values {
		var e member
		if v.Name != n.id && json.Unmarshal(v.Data, &e) == nil {
			others[v.Name] = !e.Left
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.others = others // never modified afterwards
	return others, nil
}

// Alone reports whether no other node is registered, according to the last
// known list.
func (n *Node) Alone(ctx context.Context) bool {
	others, err := n.readList(ctx)
	if err != nil {
		n.log.DebugContext(ctx, "cannot list the nodes", "err", err)
	}
	for _, there := range others {
		if there {
			return false
		}
	}
	return true
}

// Known reports whether id is a node of this store, or was one until recently.
func (n *Node) Known(ctx context.Context, id string) bool {
	n.mu.Lock()
	_, known := n.others[id]
	n.mu.Unlock()
	if known || id == n.id || id == "" {
		return known
	}
	_, err := n.opts.Store.Value(ctx, space, id)
	return err == nil
}
