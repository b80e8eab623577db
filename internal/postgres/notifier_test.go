package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"junctor/internal/postgres/pgtest"
	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// TestNotifyRateIsBounded checks, in the database's log of statements, that each
// of two nodes announces at most ten times a second, however many calls it
// records, and never in a transaction that does anything else.
func TestNotifyRateIsBounded(t *testing.T) {
	pg := pgtest.New(t)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	name, err := pg.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{"log_statement = 'all'", "log_parameter_max_length = 0", "log_line_prefix = 'vxid=%v '"} {
		if err := pg.Exec(ctx, "postgres", "ALTER SYSTEM SET "+setting); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(pg.Stop(), pg.Start()); err != nil {
		t.Fatal(err)
	}

	listener, err := pgx.Connect(ctx, pg.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close(context.Background())
	if _, err := listener.Exec(ctx, "LISTEN "+channel); err != nil {
		t.Fatal(err)
	}
	stores := []*Store{openAt(t, config(pg.URL(name))), openAt(t, config(pg.URL(name)))}
	begun := time.Now()
	var written atomic.Int64
	var wg sync.WaitGroup
	for _, s := range stores {
		for w := range 4 {
			wg.Go(func() {
				for i := range 300 {
					c := storetest.Call(i)
					c.ID = fmt.Sprintf("%s-%d-%d", s.node, w, i)
					if err := s.Append(ctx, c); err != nil {
						t.Error(err)
						return
					}
					written.Add(1)
				}
			})
		}
	}
	wg.Wait()
	took := time.Since(begun)
	// The last announcements arrive within a few intervals after the calls.
	count := map[string]int{}
	for {
		waitCtx, cancel := context.WithTimeout(ctx, 5*notifyInterval)
		n, err := listener.WaitForNotification(waitCtx)
		cancel()
		if err != nil && (len(count) == len(stores) || ctx.Err() != nil) {
			break
		} else if err != nil {
			continue // a node has not announced yet
		}
		from, what, _ := strings.Cut(n.Payload, "\n")
		if what != store.TopicCalls {
			t.Errorf("an announcement says %q", what)
		}
		count[from]++
	}
	limit := int(took/notifyInterval) + 2 // the first immediately, the last after the end
	for _, s := range stores {
		if n := count[s.node]; n == 0 || n > limit {
			t.Errorf("%d announcements of a node in %v, want 1 to %d", n, took, limit)
		}
	}
	t.Logf("%d calls in %v: announcements %v", written.Load(), took.Round(time.Millisecond), count)

	if err := pg.Stop(); err != nil { // completes its log
		t.Fatal(err)
	}
	transactions := map[string][]string{}
	line := regexp.MustCompile(`^vxid=(\d+/\d+) LOG: +(?:execute|statement)[^:]*: (.*)`)
	for text := range strings.SplitSeq(pg.Log(), "\n") {
		if m := line.FindStringSubmatch(text); m != nil {
			transactions[m[1]] = append(transactions[m[1]], m[2])
		}
	}
	announcements, records := 0, 0
	for id, statements := range transactions {
		all := strings.Join(statements, "; ")
		if strings.Contains(all, "UPDATE call_counter") {
			records++
		}
		if !strings.Contains(all, "pg_notify") {
			continue
		}
		if announcements++; len(statements) != 1 {
			t.Errorf("transaction %s announces and does more: %s", id, all)
		}
	}
	if announcements == 0 || records == 0 {
		t.Errorf("the log shows %d announcements and %d writings of records", announcements, records)
	}
	if err := pg.Start(); err != nil {
		t.Fatal(err)
	}
}

// TestPollingFindsMissedNotifications checks that a change whose announcement
// was lost is found by polling.
func TestPollingFindsMissedNotifications(t *testing.T) {
	url := shared.Database(t)
	a, b := openAt(t, config(url)), openAt(t, config(url))
	if a.poll != 2*time.Second {
		t.Errorf("a node looks every %v", a.poll)
	}
	a.poll = 10 * time.Millisecond
	b.notifier.send = func(string) {} // lost
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := b.Append(ctx, storetest.Call(1)); err != nil {
		t.Fatal(err)
	}
	run(t, a)
	tailed := make(chan error, 1)
	go func() { tailed <- follow(ctx, a, 3) }()
	for i := range 2 {
		if err := b.Append(ctx, storetest.Call(2+i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-tailed; err != nil {
		t.Errorf("the tail of a node that hears nothing: %v", err)
	}
}
