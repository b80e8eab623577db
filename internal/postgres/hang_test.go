package postgres

import (
	"context"
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
	"junctor/internal/tool"
)

// hanging is a proxy of the database that can hold back all data, like a network
// that drops packets or a stopped server.
type hanging struct{ gate sync.RWMutex }

// before returns a URL of a database that is accessed through h.
func (h *hanging) before(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	query := u.Query()
	server := filepath.Join(query.Get("host"), socket)
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				up, err := net.Dial("unix", server)
				if err != nil {
					return
				}
				defer up.Close()
				go h.copy(up, client)
				h.copy(client, up)
			}()
		}
	}()
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	return u.String()
}

func (h *hanging) copy(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		h.gate.RLock()
		_, werr := to.Write(buf[:n])
		h.gate.RUnlock()
		if err != nil || werr != nil {
			return
		}
	}
}

// TestHangingDatabaseTimesOutOnce checks that a database that accepts queries
// but does not respond costs one timeout, not one per call, and that calls do
// not queue up.
func TestHangingDatabaseTimesOutOnce(t *testing.T) {
	for _, away := range []store.OutagePolicy{store.FailClosed, store.FailOpen} {
		t.Run(string(away), func(t *testing.T) {
			t.Parallel()
			var h hanging
			cfg := config(h.before(t, shared.Database(t)))
			cfg.WhenAway, cfg.TimeoutMs = away, 1000
			s := openAt(t, cfg)
			run(t, s)
			ctx, cancel := context.WithTimeout(context.Background(), soon)
			defer cancel()
			wait(t, "a record", func() bool { // a busy machine may need longer than the timeout
				last, err := s.LastSeq(ctx)
				return s.Append(ctx, storetest.Call(0)) == nil && err == nil && last > 0
			})
			h.gate.Lock()
			var once sync.Once
			release := func() { once.Do(h.gate.Unlock) }
			defer release()
			const n = 300 // minutes, if each had to wait for its timeout
			begun := time.Now()
			for i := range n {
				err := s.Append(ctx, storetest.Call(i+1))
				if away == store.FailOpen && err != nil || away == store.FailClosed && !errors.Is(err, store.ErrUnavailable) {
					t.Fatalf("Append to a database that hangs: %v", err)
				}
				if _, _, err := s.TakeBudget(ctx, "b", tool.Rate{Calls: 10, Per: time.Minute}, 1); !errors.Is(err, store.ErrUnavailable) {
					t.Fatalf("TakeBudget: %v", err)
				}
				if _, err := s.Keys(ctx); !errors.Is(err, store.ErrUnavailable) {
					t.Fatalf("Keys: %v", err)
				}
				if s.Available(ctx) == nil {
					t.Fatal("the store counts as available")
				}
			}
			if took := time.Since(begun); took > n*cfg.Timeout()/4 {
				t.Errorf("%d calls took %v", n, took)
			}
			release()
			wait(t, "its return to be noticed", func() bool { return s.Available(ctx) == nil })
			want := int64(1)
			if away == store.FailOpen {
				want += n
			}
			wait(t, "all records", func() bool {
				last, err := s.LastSeq(ctx)
				return err == nil && last >= want
			})
		})
	}
}

// TestSlowQuery checks that a query that is slow by itself does not make the
// database unavailable for long.
func TestSlowQuery(t *testing.T) {
	cfg := config(shared.Database(t))
	cfg.TimeoutMs = 500
	s := openAt(t, cfg)
	ctx := context.Background()
	err := s.read(ctx, "sleep", func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "SELECT pg_sleep(60)")
		return err
	})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("a query without end = %v", err)
	}
	wait(t, "a record", func() bool { return s.Append(ctx, storetest.Call(1)) == nil })
}
