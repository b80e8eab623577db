package nodes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"junctor/internal/store"
	"junctor/internal/telemetry"
)

// Store is the part of the store that nodes use.
type Store interface {
	store.NodeMessages
	store.Leases
	store.Values
	store.Changes
}

// Options are the settings and dependencies of a Node.
type Options struct {
	Store Store
	Name  string // for display
	Log   *slog.Logger
}

// Intervals and timeouts.
const (
	space             = "nodes"
	memberTTL         = time.Hour               // how long a node stays in the list after its last update
	leaseDuration     = 5 * time.Second         // a node that does not renew it within this time is dead
	heartbeatInterval = 1500 * time.Millisecond // between renewals of the lease
	registerInterval  = 15 * time.Minute        // between updates of the list
	sendTimeout       = 10 * time.Second        // timeout of sending a message
	deregisterTimeout = 2 * time.Second         // timeout of deregistering this node
	retryDelay        = 250 * time.Millisecond

	// For pollDuration after a message was sent or received, the queue is
	// polled: first after pollMin, then at growing intervals up to pollMax.
	// The store announces at most ten changes per second, which is too slow
	// for a dialogue.
	pollMin      = time.Millisecond
	pollMax      = 16 * time.Millisecond
	pollDuration = time.Second
)

// ErrUnavailable means that the other node is unavailable.
var ErrUnavailable = errors.New("the other node is unavailable")

// Handler serves a connection that another node opened. ctx is canceled when
// the connection ends.
type Handler func(ctx context.Context, first []byte, l *Conn)

// Node is this process in the cluster of those on the same store. It is safe
// for concurrent use.
type Node struct {
	opts    Options
	id      string
	log     *slog.Logger
	readNow chan struct{} // wakes the reader

	leaseTime, leaveTime time.Duration // leaseDuration and deregisterTimeout, except in tests

	mu           sync.Mutex
	ctx          context.Context // of Run; nil before Run
	handlers     map[string]Handler
	subscribers  map[string]func(from string, data []byte)
	conns        map[string]*Conn
	out          map[string]*outbox
	others       map[string]bool // by id; false for those that have left
	broadcasts   []frame         // queued broadcast messages, in order
	broadcasting bool
	seen         map[string]time.Time // when others were last known to be alive
	opened       map[string]time.Time // when others opened connections, to detect duplicates
	sending      sync.WaitGroup
	closed       bool // nothing more is queued for sending
}

// New returns a Node. It starts no goroutines.
func New(o Options) *Node {
	return &Node{
		opts: o, id: rand.Text()[:12], log: o.Log.With(telemetry.KeyComponent, "nodes"), readNow: make(chan struct{}, 1),
		leaseTime: leaseDuration, leaveTime: deregisterTimeout,
		handlers: map[string]Handler{}, subscribers: map[string]func(string, []byte){}, conns: map[string]*Conn{},
		out: map[string]*outbox{}, others: map[string]bool{}, seen: map[string]time.Time{}, opened: map[string]time.Time{},
	}
}

// ID returns the unique id of this process.
func (n *Node) ID() string { return n.id }

// Handle sets the handler for connections of a kind; nil removes it.
func (n *Node) Handle(kind string, h Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h == nil {
		delete(n.handlers, kind)
		return
	}
	n.handlers[kind] = h
}

// Subscribe calls f with every message of a kind; nil unsubscribes. f must not
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

// Run runs the node until ctx is done.
func (n *Node) Run(ctx context.Context) error {
	n.mu.Lock()
	n.ctx = ctx
	n.mu.Unlock()
	var wg sync.WaitGroup
	leased := make(chan struct{})
	wg.Go(func() { n.heartbeat(ctx, leased) })
	wg.Go(func() { n.watch(ctx, leased) })
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

// Publish sends a message to one node, or to all others if to is empty. It
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

// maxBroadcasts bounds the queued broadcast messages.
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
			n.log.DebugContext(ctx, "cannot list the nodes", "err", err)
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
		return nil, ErrUnavailable
	}
	l := newConn(n, to, rand.Text())
	n.mu.Lock()
	if n.ctx == nil || n.ctx.Err() != nil {
		n.mu.Unlock()
		return nil, fmt.Errorf("this node is not running: %w", ErrUnavailable)
	}
	n.conns[l.id] = l
	n.mu.Unlock()
	l.post(frame{Type: frameOpen, Kind: kind, data: first})
	return l, nil
}

// closeConns closes the connections for which match returns true.
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
