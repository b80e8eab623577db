package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/postgres/pgtest"
	"junctor/internal/setting"
	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// soon is a timeout that is long enough for any machine.
const soon = 2 * time.Minute

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %v for %s", soon, what)
		}
	}
}

// run calls the store's Run until the test ends.
func run(t *testing.T, s *Store) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

// TestOutageClosedRefusesCalls checks that without the database calls are
// refused quickly with a clear error, and that afterwards they are recorded
// again and the tail has no gap.
func TestOutageClosedRefusesCalls(t *testing.T) {
	pg := pgtest.New(t)
	s := openAt(t, outageConfig(pg.Database(t)))
	run(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := s.Append(ctx, storetest.Call(1)); err != nil {
		t.Fatal(err)
	}
	tailed := make(chan error, 1)
	go func() { tailed <- follow(ctx, s, 2) }()
	if err := pg.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, act := range map[string]func() error{
		"Append":   func() error { return s.Append(ctx, storetest.Call(2)) },
		"again":    func() error { return s.Append(ctx, storetest.Call(2)) },
		"Keys":     func() error { _, err := s.Keys(ctx); return err },
		"PutValue": func() error { _, err := s.PutValue(ctx, store.Value{Space: "a", Name: "b"}, 0); return err },
		"Acquire":  func() error { _, _, err := s.Acquire(ctx, "l", "o", time.Minute); return err },
	} {
		err := act()
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("%s without the database = %v, want ErrUnavailable and advice", name, err)
		}
	}
	wait(t, "its absence to be known", func() bool { return errors.Is(s.Available(ctx), store.ErrUnavailable) })
	if err := <-tailed; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the tail ended with %v, want ErrUnavailable", err)
	}
	if err := pg.Start(); err != nil {
		t.Fatal(err)
	}
	wait(t, "its return to be noticed", func() bool { return s.Available(ctx) == nil })
	wait(t, "calls to be recorded again", func() bool { return s.Append(ctx, storetest.Call(3)) == nil })
	last, err := s.LastSeq(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := follow(ctx, s, last); err != nil {
		t.Errorf("tail after the return: %v", err)
	}
	if s.Lost() != 0 {
		t.Errorf("%d records lost: a refused call has none to lose", s.Lost())
	}
}

// follow tails the log from its beginning up to the number last, and returns an
// error if there is a gap.
func follow(ctx context.Context, s *Store, last int64) error {
	next := int64(1)
	for c, err := range store.Tail(ctx, s, store.CallQuery{}) {
		if err != nil {
			return err
		}
		if c.Seq != next {
			return fmt.Errorf("the tail gave %d, want %d", c.Seq, next)
		}
		if next++; c.Seq == last {
			return nil
		}
	}
	return ctx.Err()
}

// TestOutageOpenBuffersRecords checks that calls are served without the database
// and their records are written when it is available again.
func TestOutageOpenBuffersRecords(t *testing.T) {
	pg := pgtest.New(t)
	cfg := outageConfig(pg.Database(t))
	cfg.WhenAway = store.FailOpen
	s := openAt(t, cfg)
	s.poll = 20 * time.Millisecond
	run(t, s)
	ctx := context.Background()
	if err := s.Append(ctx, storetest.Call(0)); err != nil {
		t.Fatal(err)
	}
	if err := pg.Stop(); err != nil {
		t.Fatal(err)
	}
	const n = 300
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := s.Append(ctx, storetest.Call(i+1)); err != nil {
				t.Errorf("Append without the database: %v", err)
			}
		})
	}
	wg.Wait()
	if err := pg.Start(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the records to follow", func() bool {
		last, err := s.LastSeq(ctx)
		return err == nil && last == n+1
	})
	calls, err := s.Calls(ctx, store.CallQuery{Limit: store.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, c := range calls {
		ids[c.ID] = true
	}
	if len(calls) != n+1 || len(ids) != n+1 || s.Lost() != 0 {
		t.Errorf("%d records of %d calls, %d lost; want %d of each", len(calls), len(ids), s.Lost(), n+1)
	}
}

// TestBacklogBounded checks that the memory of a gateway that fails open is
// bounded.
func TestBacklogBounded(t *testing.T) {
	var b backlog
	full := 0
	for i := range maxBacklog + 7 {
		if b.keep(storetest.Call(i)) {
			full++
		}
	}
	if b.size() != maxBacklog || b.lost.Load() != 7 || full != 1 {
		t.Errorf("%d kept, %d lost, reported full %d times", b.size(), b.lost.Load(), full)
	}
}

// TestCloseReportsUnwrittenRecords checks that Close reports records that could
// not be written.
func TestCloseReportsUnwrittenRecords(t *testing.T) {
	pg := pgtest.New(t)
	cfg := outageConfig(pg.Database(t))
	cfg.WhenAway = store.FailOpen
	s, err := Open(context.Background(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := pg.Stop(); err != nil {
		t.Fatal(err)
	}
	s.startOutage(store.ErrUnavailable, time.Now().Add(-time.Hour)) // for a long time
	if err := s.Append(context.Background(), storetest.Call(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "1 calls") {
		t.Errorf("Close with a record in hand = %v", err)
	}
	if err := pg.Start(); err != nil {
		t.Fatal(err)
	}
}

// TestBrokenConnectionsLoseNoRecords checks that connections that break under
// load fail no call, and that no record is written twice.
func TestBrokenConnectionsLoseNoRecords(t *testing.T) {
	server := shared.Server(t)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	name, err := server.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := openAt(t, config(server.URL(name)))
	run(t, s)
	var stop atomic.Bool
	var written atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				c := storetest.Call(i)
				c.ID = fmt.Sprintf("%d-%d", w, i)
				if err := s.Append(ctx, c); err != nil {
					t.Errorf("Append: %v", err)
					return
				}
				written.Add(1)
				if _, err := s.Keys(ctx); err != nil {
					t.Errorf("Keys: %v", err)
					return
				}
			}
		})
	}
	for range 20 {
		before := written.Load()
		if err := server.Exec(ctx, "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name); err != nil {
			t.Error(err)
		}
		wait(t, "calls to go on", func() bool { return written.Load() > before+20 || t.Failed() })
	}
	stop.Store(true)
	wg.Wait()
	var all, different int64
	if err := s.pool.QueryRow(ctx, "SELECT count(*), count(DISTINCT id) FROM calls").Scan(&all, &different); err != nil {
		t.Fatal(err)
	}
	if all != written.Load() || different != all {
		t.Errorf("%d records of %d calls for %d answers: want one each", all, different, written.Load())
	}
	if last, err := s.LastSeq(ctx); err != nil || last != all {
		t.Errorf("LastSeq = %d, %v; want %d: no number without a record", last, err, all)
	}
}

// TestReadWaitsForShortOutage checks that recently lost connections fail no read
// of an available database.
func TestReadWaitsForShortOutage(t *testing.T) {
	s := openAt(t, config(shared.Server(t).Database(t)))
	for range 10 {
		s.startOutage(store.ErrUnavailable, time.Now())
		if _, err := s.Keys(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSlowQueryRefusesNoCalls checks that no calls are refused because of one
// slow query while the database is available.
func TestSlowQueryRefusesNoCalls(t *testing.T) {
	s := openAt(t, config(shared.Server(t).Database(t)))
	for range 10 {
		s.startOutage(store.ErrUnavailable, time.Now().Add(-time.Hour))
		if err := s.Available(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnknownCommitIsChecked checks that after a commit with an unknown outcome
// only the records missing from the log are written, also if the database was
// still committing the first attempt.
func TestUnknownCommitIsChecked(t *testing.T) {
	cfg := config(shared.Database(t))
	cfg.TimeoutMs = setting.Millis(soon.Milliseconds())
	s := openAt(t, cfg)
	ctx := t.Context()
	calls := make([]*store.Call, 5)
	for i := range calls {
		c := storetest.Call(i)
		c.ID = fmt.Sprint("call-", i)
		if i == 1 {
			c.Time = time.Time{}
		}
		calls[i] = &c
	}
	if err := s.insertCalls(ctx, calls[1:2], false); err != nil {
		t.Fatal(err)
	}
	first, err := s.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback(ctx)
	if _, err := first.Exec(ctx, insertCalls, columns(calls[3:4])...); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.insertCalls(ctx, calls, true) }()
	wait(t, "it to wait for the first", func() (waits bool) {
		if err := s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) WHERE NOT l.granted AND a.datname = current_database())").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
	if err := first.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got, err := s.Calls(ctx, store.CallQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i, c := range got {
		if c.Seq != int64(i)+1 {
			t.Errorf("number %d after %d", c.Seq, i)
		}
		ids = append(ids, c.ID)
	}
	if ids := strings.Join(ids, " "); ids != "call-1 call-3 call-0 call-2 call-4" {
		t.Errorf("the log has %s", ids)
	}
	if last, err := s.LastSeq(ctx); err != nil || last != 5 {
		t.Errorf("LastSeq = %d, %v; want 5", last, err)
	}
}

// TestInvalidRecordDoesNotFailBatch checks that a record that cannot be stored
// does not fail the others in its batch.
func TestInvalidRecordDoesNotFailBatch(t *testing.T) {
	s := openAt(t, config(shared.Database(t)))
	bad := storetest.Call(2)
	bad.Time = time.Date(400_000, 1, 1, 0, 0, 0, 0, time.UTC) // beyond the range of PostgreSQL
	batch := []*pendingRecord{{call: storetest.Call(1)}, {call: bad}, {call: storetest.Call(3)}}
	s.commit(batch)
	if batch[0].err != nil || batch[1].err == nil || batch[2].err != nil {
		t.Errorf("errors: %v, %v, %v; want the second alone", batch[0].err, batch[1].err, batch[2].err)
	}
	if last, err := s.LastSeq(context.Background()); last != 2 || err != nil {
		t.Errorf("LastSeq = %d, %v; want 2", last, err)
	}
}
