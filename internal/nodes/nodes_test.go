package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/sqlite"
	"junctor/internal/sqlite/sqlitetest"
	"junctor/internal/store"
)

// testCluster is a set of nodes on one store.
type testCluster struct {
	t    *testing.T
	path string
}

func newTestCluster(t *testing.T) *testCluster {
	return &testCluster{t: t, path: sqlitetest.Create(t, filepath.Join(t.TempDir(), "junctor.db"))}
}

// node starts a node with its own handle of the store.
func (w *testCluster) node() (n *Node, s *switched, stop func()) {
	w.t.Helper()
	st, err := sqlite.Open(context.Background(), store.Config{Path: w.path}, slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	s = &switched{Store: st}
	n = New(Options{Store: s, Name: "test", Log: slog.New(slog.DiscardHandler)})
	n.leaseTime, n.leaveTime = time.Minute, time.Minute // a slow machine must not make a node look dead
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { _ = st.Run(ctx); done <- struct{}{} }()
	go func() { _ = n.Run(ctx); done <- struct{}{} }()
	awaitRunning(w.t, n)
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		<-done
		<-done
		if err := st.Close(); err != nil {
			w.t.Error(err)
		}
	}
	w.t.Cleanup(stop)
	return n, s, stop
}

// awaitRunning waits until a node can dial others.
func awaitRunning(t *testing.T, n *Node) {
	t.Helper()
	wait(t, "a running node", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.ctx != nil
	})
}

// hasConns reports whether the node has open connections.
func (n *Node) hasConns() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns) > 0
}

// echo returns every message in upper case.
func echo(ctx context.Context, first []byte, l *Conn) {
	for data := first; ; {
		if l.Send([]byte(strings.ToUpper(string(data)))) != nil {
			return
		}
		var err error
		if data, err = l.Receive(ctx); err != nil {
			return
		}
	}
}

// wait polls until ok returns true.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("never: " + what)
		}
	}
}

func dial(t *testing.T, from, to *Node, kind, first string) *Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var l *Conn
	wait(t, "a line", func() bool {
		var err error
		if l, err = from.Dial(ctx, to.ID(), kind, []byte(first)); err != nil && !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
	return l
}

func receive(t *testing.T, l *Conn) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	data, err := l.Receive(ctx)
	return string(data), err
}

// TestConnKeepsOrder checks that messages keep their order in both directions
// and that the connection ends when either side closes it.
func TestConnKeepsOrder(t *testing.T) {
	w := newTestCluster(t)
	a, _, _ := w.node()
	b, _, _ := w.node()
	b.Handle("echo", echo)
	l := dial(t, a, b, "echo", "hello\nthere")
	const many = 500
	for i := range many {
		if err := l.Send(fmt.Appendf(nil, "word %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	want := "HELLO\nTHERE"
	for i := range many + 1 {
		if got, err := receive(t, l); err != nil || got != want {
			t.Fatalf("answer %d: %q, %v; want %q", i, got, err, want)
		}
		want = fmt.Sprintf("WORD %d", i)
	}
	if l.Peer() != b.ID() {
		t.Errorf("the peer is %s", l.Peer())
	}
	l.Close()
	if err := l.Send(nil); err == nil {
		t.Error("a closed line takes more")
	}
	if _, err := receive(t, l); !errors.Is(err, io.EOF) {
		t.Errorf("a closed line: %v", err)
	}
	wait(t, "the other end of a closed line", func() bool { return !b.hasConns() })

	once := make(chan struct{})
	b.Handle("once", func(_ context.Context, first []byte, l *Conn) {
		_ = l.Send(first)
		<-once
		panic("must not end the node")
	})
	l = dial(t, a, b, "once", "x")
	if got, err := receive(t, l); got != "x" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	close(once)
	if _, err := receive(t, l); !errors.Is(err, io.EOF) {
		t.Errorf("a handler that returned: %v", err)
	}
	b.Handle("once", nil)
	l = dial(t, a, b, "once", "x")
	if _, err := receive(t, l); !errors.Is(err, io.EOF) {
		t.Errorf("a kind that nobody speaks: %v", err)
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	l = dial(t, a, b, "echo", "x")
	for {
		if _, err := l.Receive(canceled); err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("a canceled wait: %v", err)
			}
			break
		}
	}
}

// TestPublishReachesSubscribers checks that messages reach the subscribers of
// one node or of all others.
func TestPublishReachesSubscribers(t *testing.T) {
	w := newTestCluster(t)
	a, _, _ := w.node()
	b, _, _ := w.node()
	c, _, stopC := w.node()
	var atA, atB, atC atomic.Int32
	countTo := func(n *atomic.Int32) func(string, []byte) {
		return func(from string, data []byte) {
			if from == a.ID() && string(data) == "hi" {
				n.Add(1)
			}
		}
	}
	a.Subscribe("greet", countTo(&atA))
	b.Subscribe("greet", countTo(&atB))
	c.Subscribe("greet", countTo(&atC))
	ctx := context.Background()
	for _, n := range []*Node{b, c} {
		wait(t, "known", func() bool { return a.Known(ctx, n.ID()) })
	}
	wait(t, "all messages", func() bool {
		a.Publish("", "greet", []byte("hi"))
		a.Publish(b.ID(), "silence", nil)
		return atB.Load() > 0 && atC.Load() > 0
	})
	if atA.Load() > 0 {
		t.Error("a node hears itself")
	}
	if a.Known(ctx, "x") || a.Known(ctx, "") {
		t.Error("strangers are known")
	}
	if a.Alone(ctx) {
		t.Error("alone among others")
	}
	stopC()
	wait(t, "its leaving", func() bool {
		others, err := a.readList(ctx)
		if err != nil {
			t.Fatal(err)
		}
		there, known := others[c.ID()]
		return known && !there
	})
	if !a.Known(ctx, c.ID()) {
		t.Error("who left is forgotten")
	}
	b.Subscribe("greet", nil)
}

// TestDuplicateMessagesAreDropped checks that a duplicate message is delivered
// once and a missing one ends the connection.
func TestDuplicateMessagesAreDropped(t *testing.T) {
	w := newTestCluster(t)
	a, s, _ := w.node()
	var calls atomic.Int32
	got := make(chan string, 10)
	a.Handle("count", func(ctx context.Context, first []byte, l *Conn) {
		calls.Add(1)
		got <- string(first)
		for {
			data, err := l.Receive(ctx)
			if err != nil {
				got <- err.Error()
				return
			}
			got <- string(data)
		}
	})
	ctx := context.Background()
	post := func(f frame) {
		t.Helper()
		f.From, f.Conn = "stranger", "line"
		message := f.encode()
		if err := s.SendMessages(ctx, a.ID(), message, message); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		select {
		case g := <-got:
			if g != want {
				t.Errorf("received %q, want %q", g, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("never received %q", want)
		}
	}
	if err := s.SendMessages(ctx, a.ID(), []byte("no header"), []byte("{\n")); err != nil {
		t.Fatal(err)
	}
	post(frame{Type: frameOpen, N: 1, Kind: "count", data: []byte("one")})
	post(frame{Type: frameData, N: 2, data: []byte("two")})
	post(frame{Type: frameData, N: 4, data: []byte("four")})
	expect("one")
	expect("two")
	expect(errFrameLost.Error())
	wait(t, "the end", func() bool { return !a.hasConns() })
	post(frame{Type: frameOpen, N: 1, Kind: "count", data: []byte("one")}) // late
	post(frame{Type: frameData, N: 5})
	wait(t, "the answer to who does not know yet", func() bool {
		messages, err := s.TakeMessages(ctx, "stranger", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range messages {
			if f, err := decode(l.Data); err == nil && f.N == lastFrame {
				return true
			}
		}
		return false
	})
	if calls.Load() != 1 {
		t.Errorf("the conversation was begun %d times", calls.Load())
	}
}

// TestUnknownConnIsClosed checks that a connection ends if the other end does
// not know it.
func TestUnknownConnIsClosed(t *testing.T) {
	w := newTestCluster(t)
	a, _, _ := w.node()
	b, _, _ := w.node()
	b.Handle("echo", echo)
	l := dial(t, a, b, "echo", "x")
	if _, err := receive(t, l); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	clear(b.conns)
	b.mu.Unlock()
	if err := l.Send([]byte("still there?")); err != nil {
		t.Fatal(err)
	}
	if _, err := receive(t, l); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a forgotten line: %v", err)
	}
}

// TestConnsToDeadNodeEnd checks that connections to a node without a heartbeat
// end and that it cannot be dialed.
func TestConnsToDeadNodeEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "junctor.db")
	synctest.Test(t, func(t *testing.T) {
		w := &testCluster{t: t, path: path}
		a, s, _ := w.node()
		synctest.Wait()
		ctx := context.Background()
		if _, err := a.Dial(ctx, "nobody", "echo", nil); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a node that never was: %v", err)
		}
		// A node that was killed recently.
		if _, held, err := s.Acquire(ctx, lease("dead"), "dead", leaseDuration); !held || err != nil {
			t.Fatal(held, err)
		}
		l, err := a.Dial(ctx, "dead", "echo", nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := l.Receive(ctx); !errors.Is(err, ErrUnavailable) {
			t.Errorf("the line to a dead node: %v", err)
		}
		if took := time.Since(began); took > leaseDuration+2*heartbeatInterval {
			t.Errorf("noticed after %v", took)
		}
		if _, err := a.Dial(ctx, "dead", "echo", nil); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a dead node: %v", err)
		}
	})
}

// switched is a store that can be made unavailable for values or for messages.
type switched struct {
	store.Store
	away, noMail atomic.Bool
}

func (s *switched) SendMessages(ctx context.Context, queue string, messages ...[]byte) error {
	if s.noMail.Load() {
		return store.ErrUnavailable
	}
	return s.Store.SendMessages(ctx, queue, messages...)
}

func (s *switched) Value(ctx context.Context, space, name string) (store.Value, error) {
	if s.away.Load() {
		return store.Value{}, store.ErrUnavailable
	}
	return s.Store.Value(ctx, space, name)
}

func (s *switched) PutValue(ctx context.Context, v store.Value, ifVersion int64) (store.Value, error) {
	if s.away.Load() {
		return store.Value{}, store.ErrUnavailable
	}
	return s.Store.PutValue(ctx, v, ifVersion)
}

func (s *switched) DeleteValue(ctx context.Context, space, name string, ifVersion int64) error {
	if s.away.Load() {
		return store.ErrUnavailable
	}
	return s.Store.DeleteValue(ctx, space, name, ifVersion)
}

// TestFailedSendEndsConn checks that a message that cannot be sent ends its
// connection.
func TestFailedSendEndsConn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "junctor.db")
	synctest.Test(t, func(t *testing.T) {
		w := &testCluster{t: t, path: path}
		a, s, _ := w.node()
		b, _, _ := w.node()
		synctest.Wait()
		s.noMail.Store(true)
		l, err := a.Dial(context.Background(), b.ID(), "echo", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Receive(context.Background()); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a line without a store: %v", err)
		}
	})
	n := New(Options{Log: slog.New(slog.DiscardHandler)})
	n.seen["b"] = time.Now()
	if _, err := n.Dial(context.Background(), "b", "echo", nil); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a node that does not run: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(frame{Type: frameOpen, N: 1, Kind: "k", data: []byte("x\ny")}.encode())
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, message []byte) {
		got, err := decode(message)
		if err != nil {
			return
		}
		again, err := decode(got.encode())
		if err != nil || fmt.Sprint(again) != fmt.Sprint(got) {
			t.Errorf("%v became %v, %v", got, again, err)
		}
	})
}
