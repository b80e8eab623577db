package nodes

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"junctor/internal/store"
)

// Store is what nodes need of the store.
type Store interface {
	store.NodeMessages
	store.Leases
	store.Values
	store.Changes
}

// Options are what a Node is made of.
type Options struct {
	Store Store
	Name  string // for people
	Log   *slog.Logger
}

// Intervals and timeouts.
const (
	space             = "nodes"
	memberTTL         = time.Hour               // how long a node stays in the list after its lease expired
	leaseDuration     = 5 * time.Second         // a node that does not renew it within this time is dead
	heartbeatInterval = 1500 * time.Millisecond // between renewals of the lease
	registerInterval  = 15 * time.Minute        // between updates of the list
	sendTimeout       = 10 * time.Second        // for a store that does not accept messages
	retry             = 250 * time.Millisecond

	// For a while after a message was sent or received, the queue is polled: at
	// first after pollMin, then with growing intervals up to pollMax. The store
	// announces at most ten changes a second, too few for a conversation.
	pollMin = time.Millisecond
	pollMax = 16 * time.Millisecond
	pollFor = time.Second
)

// ErrGone means that the other node is unavailable.
var ErrGone = errors.New("the other node is unavailable")

// Handler serves a connection that another node opened. ctx ends with the
// connection.
type Handler func(ctx context.Context, first []byte, l *Conn)

// Node is this process among those on the same store. It is safe for
// concurrent use.
type Node struct {
	opts Options
	id   string
	log  *slog.Logger
	look chan struct{} // into the queue, soon

	mu           sync.Mutex
	ctx          context.Context // of Run; nil before
	handlers     map[string]Handler
	subscribers  map[string]func(from string, data []byte)
	conns        map[string]*Conn
	out          map[string]*outbox
	others       map[string]bool // by id; true for those that are there
	broadcasts   []frame         // broadcast messages, in order
	broadcasting bool
	seen         map[string]time.Time // when others were last known to be alive
	opened       map[string]time.Time // connections that others opened, for messages that come twice
	sending      sync.WaitGroup
	closed       bool // nothing more is sent
}

// New returns a Node; it starts nothing.
func New(o Options) *Node {
	return &Node{
		opts: o, id: rand.Text()[:12], log: o.Log.With("component", "nodes"), look: make(chan struct{}, 1),
		handlers: map[string]Handler{}, subscribers: map[string]func(string, []byte){}, conns: map[string]*Conn{},
		out: map[string]*outbox{}, others: map[string]bool{}, seen: map[string]time.Time{}, opened: map[string]time.Time{},
	}
}

// ID names this process; no other ever had the same.
func (n *Node) ID() string { return n.id }

// Handle sets the handler of connections of a kind; nil refuses them.
func (n *Node) Handle(kind string, h Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h == nil {
		delete(n.handlers, kind)
		return
	}
	n.handlers[kind] = h
}

// Subscribe calls f with every message of a kind; nil ends that. f must not
// block.
func (n *Node) Subscribe(kind string, f func(from string, data []byte)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f == nil {
		delete(n.subscribers, kind)
		return
	}
	n.subscribers[kind] = f
}

// Run takes part in the cluster until ctx is done.
func (n *Node) Run(ctx context.Context) error {
	n.mu.Lock()
	n.ctx = ctx
	n.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { n.heartbeat(ctx) })
	wg.Go(func() { n.watch(ctx) })
	wg.Go(func() { n.read(ctx) })
	wg.Go(func() { n.list(ctx) })
	wg.Wait()
	n.mu.Lock()
	open := slices.Collect(maps.Values(n.conns))
	n.mu.Unlock()
	for _, l := range open {
		l.Close()
	}
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.sending.Wait()
	n.deregister(context.WithoutCancel(ctx))
	return nil
}

// member is one node in the list of nodes.
type member struct {
	Name string `json:"name"`
	Left bool   `json:"left,omitempty"`
}

// heartbeat renews this node's lease. It does nothing else, so that no slow
// query makes a living node look dead.
func (n *Node) heartbeat(ctx context.Context) {
	every(ctx, heartbeatInterval, func() {
		ctx, cancel := context.WithTimeout(ctx, leaseDuration)
		defer cancel()
		if _, _, err := n.opts.Store.Acquire(ctx, lease(n.id), n.id, leaseDuration); err != nil && ctx.Err() == nil {
			n.log.DebugContext(ctx, "heartbeat failed", "err", err)
		}
	})
}

// watch enters this node into the list, and checks the leases of the nodes that
// it has connections to.
func (n *Node) watch(ctx context.Context) {
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

// every calls f now and at intervals until ctx is done.
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

// forget drops what is remembered of connections that are long over.
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

// deregister removes this node from the list.
func (n *Node) deregister(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := errors.Join(n.register(ctx, member{Name: n.opts.Name, Left: true}), n.opts.Store.Release(ctx, lease(n.id), n.id)); err != nil {
		n.log.DebugContext(ctx, "cannot announce the end of this node", "err", err)
	}
}

// peers are the nodes at the other ends of connections.
func (n *Node) peers() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	set := map[string]bool{}
	for _, l := range n.conns {
		set[l.to] = true
	}
	out := make([]string, 0, len(set))
	for id := range set {
		out = append(out, id)
	}
	return out
}

// alive reports whether another node is alive; connections to a dead one are
// closed. While the store is unavailable no node is considered dead.
func (n *Node) alive(ctx context.Context, id string) bool {
	n.mu.Lock()
	recent := time.Since(n.seen[id]) < heartbeatInterval
	n.mu.Unlock()
	if recent {
		return true
	}
	// Its lease can be acquired only when it has expired.
	_, mine, err := n.opts.Store.Acquire(ctx, lease(id), "finder/"+n.id, time.Millisecond)
	if err != nil {
		return true
	}
	n.mu.Lock()
	if mine {
		delete(n.seen, id)
	} else {
		n.seen[id] = time.Now()
	}
	n.mu.Unlock()
	if mine {
		n.closeConns(func(l *Conn) bool { return l.to == id }, ErrGone)
	}
	return !mine
}

// list keeps the list of the other nodes.
func (n *Node) list(ctx context.Context) {
	changed := n.opts.Store.Watch(ctx, store.TopicValues(space))
	for {
		if _, err := n.readList(ctx); err != nil && ctx.Err() == nil {
			n.log.DebugContext(ctx, "nodes not listed", "err", err)
		}
		// The watch also fires without cause; a list that is a little old
		// does no harm.
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

// readList returns the other nodes as the list has them now; as it had them
// when it cannot be read.
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
	n.others = others // not changed any more
	return others, nil
}

// Alone reports whether no other node is registered, as far as is known.
func (n *Node) Alone(ctx context.Context) bool {
	others, err := n.readList(ctx)
	if err != nil {
		n.log.DebugContext(ctx, "nodes not listed", "err", err)
	}
	for _, there := range others {
		if there {
			return false
		}
	}
	return true
}

// Known reports whether id is, or was a while ago, a node of this store.
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

// Publish sends a message to one node, or to all others when to is empty. It
// does not wait, and there is no response.
func (n *Node) Publish(to, kind string, data []byte) {
	f := frame{Type: frameMessage, From: n.id, Kind: kind, data: data}
	if to != "" {
		n.send(to, f)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.ctx == nil || len(n.broadcasts) >= maxBroadcasts {
		return
	}
	n.broadcasts = append(n.broadcasts, f)
	if !n.broadcasting {
		n.broadcasting = true
		n.sending.Go(n.broadcast)
	}
}

// maxBroadcasts bounds the messages that wait to be sent to all nodes.
const maxBroadcasts = 10_000

// broadcast sends the queued messages to all other nodes, including those that
// have just registered.
func (n *Node) broadcast() {
	for {
		n.mu.Lock()
		if len(n.broadcasts) == 0 {
			n.broadcasting = false
			n.mu.Unlock()
			return
		}
		frames := n.broadcasts
		n.broadcasts = nil
		ctx := n.ctx
		n.mu.Unlock()
		others, err := n.readList(ctx)
		if err != nil {
			n.log.DebugContext(ctx, "nodes not listed", "err", err)
		}
		for _, f := range frames {
			for id, there := range others {
				if there {
					n.send(id, f)
				}
			}
		}
	}
}

// Dial opens a connection of a kind to another node.
func (n *Node) Dial(ctx context.Context, to, kind string, first []byte) (*Conn, error) {
	if !n.alive(ctx, to) {
		return nil, ErrGone
	}
	l := newConn(n, to, rand.Text())
	n.mu.Lock()
	if n.ctx == nil || n.ctx.Err() != nil {
		n.mu.Unlock()
		return nil, fmt.Errorf("this node is not running: %w", ErrGone)
	}
	n.conns[l.id] = l
	n.mu.Unlock()
	l.post(frame{Type: frameOpen, Kind: kind, data: first})
	return l, nil
}

// closeConns closes the connections that match.
func (n *Node) closeConns(match func(*Conn) bool, why error) {
	n.mu.Lock()
	var broken []*Conn
	for _, l := range n.conns {
		if match(l) {
			broken = append(broken, l)
		}
	}
	n.mu.Unlock()
	for _, l := range broken {
		l.end(why)
	}
}
