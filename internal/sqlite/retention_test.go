package sqlite

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
	"junctor/internal/tool"
)

func TestRetentionByAge(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db"), Retention: store.Retention{AgeDays: 2}}
	s := openAt(t, cfg)
	ctx := context.Background()
	now := time.Now()
	for i := range 1200 { // more than one chunk is too old
		c := storetest.Call(i)
		if c.Time = now.Add(-49 * time.Hour); i >= 1150 {
			c.Time = now.Add(-47 * time.Hour)
		}
		if err := s.Append(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	s.maintain(ctx)
	calls, err := s.Calls(ctx, store.CallQuery{Limit: store.MaxLimit})
	if err != nil || len(calls) != 50 || calls[0].Seq != 1151 {
		t.Fatalf("%d records are left, want the 50 young ones: %v", len(calls), err)
	}
	// All are too old now; the newest block stays for its sequence numbers.
	s.now = func() time.Time { return now.Add(100 * 24 * time.Hour) }
	s.maintain(ctx)
	if calls, err = s.Calls(ctx, store.CallQuery{}); err != nil || len(calls) != 50 || calls[49].Seq != 1200 {
		t.Fatalf("left: %d records, %v; want those of the newest block", len(calls), err)
	}
	if err := s.Append(ctx, storetest.Call(1)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.LastSeq(ctx); n != 1201 || err != nil {
		t.Errorf("the next number is %d, %v; want 1201", n, err)
	}
}

func TestRetentionBySize(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db"), Retention: store.Retention{SizeMB: 2}}
	s := openAt(t, cfg)
	ctx := context.Background()
	const n = 2000 // some 8 MB
	var wg sync.WaitGroup
	for w := range 20 {
		wg.Go(func() {
			for i := range n / 20 {
				c := storetest.Call(w*1000 + i)
				c.Result = json.RawMessage(`"`)
				for len(c.Result) < 4000 {
					c.Result = append(c.Result, rand.Text()...) // incompressible
				}
				c.Result = append(c.Result, '"')
				if err := s.Append(ctx, c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	big := store.Catalogue{Server: "a", Guidance: tool.Guidance{Text: strings.Repeat("g", 1<<20)}}
	if err := s.PutCatalogue(ctx, big); err != nil {
		t.Fatal(err)
	}
	s.maintain(ctx)
	left, err := s.Calls(ctx, store.CallQuery{Limit: store.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	size := len(left) * 4150
	if size > 2<<20 || size < 1<<20 {
		t.Errorf("%d records of some 4 KB are left, want about 2 MB of them", len(left))
	}
	if left[len(left)-1].Seq != n || left[0].Seq != n-int64(len(left))+1 {
		t.Errorf("records %d to %d are left, want the newest", left[0].Seq, left[len(left)-1].Seq)
	}
	var file int
	if err := s.read.QueryRow("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").Scan(&file); err != nil || file > 6<<20 {
		t.Errorf("the file still has %d KB, %v; want it to shrink", file>>10, err)
	}
	before := len(left)
	s.maintain(ctx)
	if left, err = s.Calls(ctx, store.CallQuery{Limit: store.MaxLimit}); err != nil || len(left) != before {
		t.Errorf("a second tidying left %d of %d records: the catalogue is not the call log's fault", len(left), before)
	}
}

func TestExpiredValuesAreDeleted(t *testing.T) {
	s := openAt(t, store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")})
	ctx := context.Background()
	now := time.Now()
	for i, until := range []time.Time{{}, now.Add(time.Hour), now.Add(50 * time.Hour)} {
		if _, err := s.PutValue(ctx, store.Value{Space: "a", Name: fmt.Sprint(i), Expires: until}, 0); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Acquire(ctx, fmt.Sprint(i), "me", time.Duration(i)*30*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	s.now = func() time.Time { return now.Add(49 * time.Hour) }
	s.maintain(ctx)
	for table, want := range map[string]int{"vals": 2, "leases": 2} {
		var n int
		if err := s.read.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil || n != want {
			t.Errorf("%s: %d rows are left, %v; want %d", table, n, err, want)
		}
	}
}

// TestRunTidiesAndLogsErrors checks that Run performs maintenance periodically
// and logs errors.
func TestRunTidiesAndLogsErrors(t *testing.T) {
	var log lockedBuffer
	s, err := Open(context.Background(), store.Config{Path: filepath.Join(t.TempDir(), "junctor.db"), Retention: store.Retention{AgeDays: 1}},
		slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s.poll, s.sweep = time.Millisecond, time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	old := storetest.Call(1)
	old.Time = time.Now().Add(-48 * time.Hour)
	for _, c := range []store.Call{old, storetest.Call(2)} {
		if err := s.Append(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, "an old record to go", func() bool {
		_, err := s.Call(ctx, old.ID)
		return errors.Is(err, store.ErrNotFound)
	})
	s.Watch(ctx, store.TopicKeys) // so that Run polls for changes
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wait(t, "a warning about a closed store", func() bool { return strings.Contains(log.String(), "store maintenance failed") })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run = %v", err)
	}
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %v for %s", soon, what)
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
