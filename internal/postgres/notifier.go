package postgres

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	channel        = "junctor"
	notifyInterval = 100 * time.Millisecond // between two announcements
	maxPayload     = 7000                   // PostgreSQL accepts up to 8000 bytes
	allTopics      = "*"
	relistenWait   = time.Second
)

// notifier batches changes into announcements, which it sends immediately
// unless the last one was sent within notifyInterval. NOTIFY takes a
// server-wide lock at commit, so it must be rare and must not be part of
// another transaction.
type notifier struct {
	send func(payload string)

	mu      sync.Mutex
	topics  map[string]struct{}
	timer   *time.Timer // set while an announcement is scheduled or being sent
	last    time.Time
	stopped bool
	busy    sync.WaitGroup
}

func (n *notifier) add(topic string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return
	}
	if n.topics == nil {
		n.topics = map[string]struct{}{}
	}
	n.topics[topic] = struct{}{}
	if n.timer == nil {
		n.timer = time.AfterFunc(max(0, notifyInterval-time.Since(n.last)), n.flush)
	}
}

func (n *notifier) flush() {
	n.mu.Lock()
	payload := n.take()
	n.last = time.Now()
	if n.stopped || payload == "" {
		n.timer = nil
		n.mu.Unlock()
		return
	}
	n.busy.Add(1)
	n.mu.Unlock()
	n.send(payload)
	n.busy.Done()

	n.mu.Lock()
	defer n.mu.Unlock()
	n.timer = nil
	if len(n.topics) > 0 && !n.stopped {
		n.timer = time.AfterFunc(notifyInterval, n.flush)
	}
}

// take returns the pending announcements and clears them.
func (n *notifier) take() string {
	var b strings.Builder
	for topic := range n.topics {
		if b.Len()+len(topic) > maxPayload || strings.Contains(topic, "\n") {
			b.Reset()
			b.WriteString("\n" + allTopics)
			break
		}
		b.WriteString("\n" + topic)
	}
	clear(n.topics)
	return b.String()
}

// flushLast sends the pending announcements at shutdown. After a short-lived
// command such as one that revokes a key, other nodes must not have to wait for
// the next poll.
func (n *notifier) flushLast() {
	n.mu.Lock()
	n.stopped = true
	if n.timer != nil {
		n.timer.Stop()
	}
	payload := n.take()
	n.mu.Unlock()
	n.busy.Wait()
	if payload != "" {
		n.send(payload)
	}
}

// Announce implements store.Changes.
func (s *Store) Announce(topic string) {
	s.Wake(topic)
	s.notifier.add(topic)
}

// notify sends one announcement. If it is lost, the other nodes find the changes
// at their next poll.
func (s *Store) notify(payload string) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	if _, err := s.pool.Exec(ctx, "SELECT pg_notify($1, $2)", channel, s.node+payload); err != nil {
		s.log.DebugContext(ctx, "cannot announce a change", "err", explain("announce a change", err))
	}
}

// listen wakes watchers when other nodes announce changes, until ctx is done.
func (s *Store) listen(ctx context.Context) {
	quiet := false
	for ctx.Err() == nil {
		listening, err := s.listenOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if listening {
			quiet = false
		}
		if !quiet { // once, not every second of an outage
			s.log.WarnContext(ctx, "no notifications of changes on other nodes; polling every few seconds instead", "err", explain("listen for changes", err))
			quiet = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(relistenWait):
		}
	}
}

// listenOnce listens on a separate connection until it breaks, and reports
// whether it was ever listening.
func (s *Store) listenOnce(ctx context.Context) (listening bool, err error) {
	cfg := s.pool.Config().ConnConfig
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return false, err
	}
	s.WakeAll() // notifications may have been missed meanwhile
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true, err
		}
		s.handleNotification(n.Payload)
	}
}

// handleNotification wakes the watchers of the topics that another node
// announced.
func (s *Store) handleNotification(payload string) {
	from, topics, _ := strings.Cut(payload, "\n")
	if from == s.node {
		return
	}
	for topic := range strings.SplitSeq(topics, "\n") {
		if topic == allTopics {
			s.WakeAll()
			return
		}
		s.Wake(topic)
	}
}
