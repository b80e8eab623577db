package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

func TestOpenErrors(t *testing.T) {
	server := shared.Server(t)
	ctx := context.Background()
	newer, err := server.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	openAt(t, config(server.URL(newer)))
	if err := server.Exec(ctx, newer, "INSERT INTO junctor.goose_db_version (version_id, is_applied) VALUES (9999, true)"); err != nil {
		t.Fatal(err)
	}
	closed, err := server.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Exec(ctx, closed, "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN; REVOKE CREATE ON DATABASE "+closed+" FROM PUBLIC"); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ url, says string }{
		"no address":  {"postgres://u:hunter2@[", "postgres://user:password@host:port/database"},
		"no server":   {"postgres://u:hunter2@127.0.0.1:1/x", "does not answer"},
		"no database": {server.URL("missing"), "createdb"},
		"newer":       {server.URL(newer), "newer Junctor"},
		"no rights":   {strings.Replace(server.URL(closed), "junctor@", "guest@", 1), "grant it CREATE"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(ctx, config(tt.url), slog.New(slog.DiscardHandler))
			if err == nil {
				s.Close()
				t.Fatalf("Open succeeded")
			}
			if !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("Open = %v, want an error that says %q, and no password", err, tt.says)
			}
		})
	}
}

// TestConcurrentOpen checks that when several nodes open an empty database
// simultaneously, one creates the tables.
func TestConcurrentOpen(t *testing.T) {
	url := shared.Database(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := Open(context.Background(), config(url), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Append(context.Background(), storetest.Call(1)); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestSearchPathSelectsSchema checks that the tables are created in the schema
// of the search path.
func TestSearchPathSelectsSchema(t *testing.T) {
	server := shared.Server(t)
	ctx := context.Background()
	name, err := server.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Exec(ctx, name, "CREATE SCHEMA mine"); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, config(server.URL(name)+"&search_path=mine&pool_max_conns=3"))
	if got := s.pool.Config().MaxConns; got != 3 {
		t.Errorf("%d connections, want the URL's 3", got)
	}
	var n int
	if err := s.pool.QueryRow(ctx, "SELECT count(*) FROM mine.calls").Scan(&n); err != nil {
		t.Error(err)
	}
}

// TestOldPartitionsAreDropped checks that the records of a day are deleted with
// its partition.
func TestOldPartitionsAreDropped(t *testing.T) {
	s := openAt(t, config(shared.Database(t)))
	ctx := context.Background()
	names := func() (out []string) {
		days, _, err := s.partitions(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range days {
			out = append(out, p.name)
		}
		return out
	}
	now, err := s.clock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != daysAhead+1 || got[0] != now.Format("calls_20060102") {
		t.Fatalf("partitions %v, want today and %d days more", got, daysAhead)
	}
	if err := s.Append(ctx, storetest.Call(1)); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := s.pool.QueryRow(ctx, "SELECT count(*) FROM "+names()[0]).Scan(&n); err != nil || n != 1 {
		t.Errorf("today's partition has %d records, %v; want 1", n, err)
	}

	// Past days, imported from another store: each gets its partition. The last
	// two are added as if theirs had been missing when they were written.
	var past []store.Call
	for i, ago := range []int{40, 35, 10, 5} {
		c := storetest.Call(i)
		c.Seq, c.Time = int64(100+i), now.AddDate(0, 0, -ago)
		past = append(past, c)
	}
	if err := s.Import(ctx, store.Batch{Calls: past}); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != daysAhead+5 || got[0] != now.AddDate(0, 0, -40).Format(partitionName) {
		t.Errorf("partitions %v, want one for each day", got)
	}
	for i, ago := range []int{50, 20} {
		if _, err := s.pool.Exec(ctx, "INSERT INTO calls SELECT $1, $2::timestamptz, 'x', $2, 0, 'ok', '', '', '', '', '', '', '', '', '', 0, '', '', NULL, NULL", 104+i, now.AddDate(0, 0, -ago)); err != nil {
			t.Fatal(err)
		}
	}
	s.maintain(ctx)
	calls, err := s.Calls(ctx, store.CallQuery{})
	if err != nil || fmt.Sprint(seqs(calls)) != "[1 102 103 105]" {
		t.Errorf("left: %v, %v; want what is younger than 30 days", seqs(calls), err)
	}
	if got := names(); len(got) != daysAhead+3 {
		t.Errorf("partitions left: %v", got)
	}

	// Since and Until find records wherever they are.
	calls, err = s.Calls(ctx, store.CallQuery{Since: now.AddDate(0, 0, -6), Until: now.AddDate(0, 0, -4)})
	if err != nil || fmt.Sprint(seqs(calls)) != "[103]" {
		t.Errorf("between: %v, %v", seqs(calls), err)
	}

	// By size: the oldest days are dropped, today stays.
	s.retention = store.Retention{SizeMB: 1}
	if _, err := s.pool.Exec(ctx, "INSERT INTO calls SELECT 1000 + n, $1::timestamptz, 'x', now(), 0, 'ok', '', '', '', '', '', '', '', '', '', 0, '', repeat(md5(n::text), 60), NULL, NULL FROM generate_series(1, 1000) AS n",
		now.AddDate(0, 0, -10)); err != nil {
		t.Fatal(err)
	}
	s.maintain(ctx)
	if got := names(); len(got) != daysAhead+2 || got[0] != now.AddDate(0, 0, -5).Format(partitionName) {
		t.Errorf("partitions left by size: %v, want all but the oldest", got)
	}
	if n, err := s.LastSeq(ctx); n != 103 || err != nil {
		t.Errorf("LastSeq = %d, %v: numbers must not come again", n, err)
	}
}

func seqs(calls []store.Call) (out []int64) {
	for _, c := range calls {
		out = append(out, c.Seq)
	}
	return out
}

// TestDefaultPartition checks that records of a day without a partition are
// stored in the default partition.
func TestDefaultPartition(t *testing.T) {
	s := openAt(t, config(shared.Database(t)))
	ctx := context.Background()
	now, err := s.clock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(ctx, "DROP TABLE "+now.Format("calls_20060102")); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(ctx, storetest.Call(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.makePartitions(ctx); err != nil {
		t.Errorf("makePartitions over records in the rest: %v", err)
	}
	if c, err := s.Call(ctx, storetest.Call(1).ID); err != nil || c.Seq != 1 {
		t.Errorf("Call = %+v, %v", c, err)
	}
}

func TestExpiredValuesAreDeleted(t *testing.T) {
	s := openAt(t, config(shared.Database(t)))
	ctx := context.Background()
	for i, until := range []time.Time{{}, time.Now().Add(-time.Minute), time.Now().Add(time.Hour)} {
		if _, err := s.PutValue(ctx, store.Value{Space: "a", Name: fmt.Sprint(i), Expires: until}, store.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	for name, ttl := range map[string]time.Duration{"old": -48 * time.Hour, "ended": -time.Minute, "held": time.Hour} {
		if _, _, err := s.Acquire(ctx, name, "me", ttl); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.deleteExpired(ctx); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{"vals": 2, "leases": 2} {
		var n int
		if err := s.pool.QueryRow(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil || n != want {
			t.Errorf("%s: %d rows are left, %v; want %d", table, n, err, want)
		}
	}
}

// TestOneNodeTidiesAtATime checks that only one node at a time maintains the
// store.
func TestOneNodeTidiesAtATime(t *testing.T) {
	url := shared.Database(t)
	var log bytes.Buffer
	a := openAt(t, config(url))
	b, err := Open(context.Background(), config(url), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	a.maintain(ctx)
	if l, held, err := b.Acquire(ctx, "store/tidy", "someone else", time.Second); held || err != nil || l.Owner != a.node {
		t.Errorf("the lease: %+v, %v, %v; want a's", l, held, err)
	}
	b.maintain(ctx)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if log.Len() > 0 {
		t.Errorf("a node that leaves tidying to another says %s", log.String())
	}
	b.maintain(ctx)
	if !strings.Contains(log.String(), "store maintenance failed") {
		t.Errorf("tidying a closed store is not reported: %s", log.String())
	}
}

// TestNotifierBatchesChanges checks that many changes are sent in few
// announcements and none is lost.
func TestNotifierBatchesChanges(t *testing.T) {
	var mu sync.Mutex
	var sent []string
	n := notifier{send: func(p string) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, p)
	}}
	for i := range 1000 {
		n.add(fmt.Sprintf("topic%d", i%3))
	}
	wait(t, "the first announcement", func() bool { mu.Lock(); defer mu.Unlock(); return len(sent) > 0 })
	n.add("late")
	n.flushLast()
	n.add("too late")
	mu.Lock()
	defer mu.Unlock()
	all := strings.Join(sent, "") + "\n"
	for _, topic := range []string{"topic0", "topic1", "topic2", "late"} {
		if !strings.Contains(all, "\n"+topic+"\n") {
			t.Errorf("no word of %s in %q", topic, sent)
		}
	}
	if strings.Contains(all, "too late") {
		t.Error("an announcement after the end")
	}
	if len(sent) > 20 {
		t.Errorf("%d announcements for 1001 changes", len(sent))
	}

	big := notifier{send: func(p string) { sent = []string{p} }, topics: map[string]struct{}{}}
	for i := range 1000 {
		big.topics[strings.Repeat("x", 50)+fmt.Sprint(i)] = struct{}{}
	}
	big.flushLast()
	if sent[0] != "\n*" {
		t.Errorf("too much to say was said as %.80q", sent[0])
	}
}

func TestNotificationsWakeWatchers(t *testing.T) {
	s := &Store{node: "me"}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a, b := s.Watch(ctx, "a"), s.Watch(ctx, "b")
	expect := func(what string, wantA, wantB bool) {
		t.Helper()
		for name, ch := range map[string]<-chan struct{}{"a": a, "b": b} {
			got := false
			select {
			case <-ch:
				got = true
			default:
			}
			if want := map[string]bool{"a": wantA, "b": wantB}[name]; got != want {
				t.Errorf("%s: %s was woken: %v, want %v", what, name, got, want)
			}
		}
	}
	s.handleNotification("me\na\nb")
	expect("our own word", false, false)
	s.handleNotification("other\na")
	expect("word of a", true, false)
	s.handleNotification("other\n*")
	expect("word of everything", true, true)
	s.handleNotification("")
	expect("nothing", false, false)
}

// TestListenWakesOtherNode checks that a node is notified of another's change by
// NOTIFY. Only listen runs, so that no poll can wake the watchers.
func TestListenWakesOtherNode(t *testing.T) {
	url := shared.Database(t)
	a, b := openAt(t, config(url)), openAt(t, config(url))
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	listening := a.Watch(ctx, "listening") // listen wakes every watcher once, when it starts
	var wg sync.WaitGroup
	wg.Go(func() { a.listen(ctx) })
	defer wg.Wait()
	defer cancel()
	select {
	case <-listening:
	case <-ctx.Done():
		t.Fatal("never listening")
	}
	keys, other := a.Watch(ctx, store.TopicKeys), a.Watch(ctx, "other")
	if err := b.AddKey(ctx, store.Key{ID: "1", Name: "k1", Hash: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-keys:
	case <-ctx.Done():
		t.Fatal("no word of a new key")
	}
	select {
	case <-other:
		t.Error("word of something that did not change")
	default:
	}

	// A short-lived command still announces its changes.
	c, err := Open(ctx, config(url), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.RevokeKey(ctx, "k1", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-keys:
	case <-ctx.Done():
		t.Fatal("no word of a revoked key")
	}
}

func TestExplain(t *testing.T) {
	for in, want := range map[error]error{
		context.Canceled:          context.Canceled,
		context.DeadlineExceeded:  store.ErrUnavailable,
		store.ErrConflict:         store.ErrConflict,
		errors.New("closed pool"): store.ErrClosed,
	} {
		if got := explain("act", in); !errors.Is(got, want) || !strings.HasPrefix(got.Error(), "act: ") {
			t.Errorf("explain(%v) = %v, want it to be %v", in, got, want)
		}
	}
	if explain("act", nil) != nil {
		t.Error("explain(nil) is an error")
	}
}
