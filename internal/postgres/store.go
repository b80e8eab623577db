package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"junctor/internal/store"
	"junctor/internal/store/sqlstore"
	"junctor/internal/telemetry"
)

// Settings of the database.
const (
	schema         = "junctor" // where the tables are, unless the URL has a search_path
	maxConns       = 8         // per node; overridden by pool_max_conns in the URL
	connectTimeout = 3 * time.Second
	slowTimeout    = 30 * time.Second // for large queries that no call waits for
	pollInterval   = 2 * time.Second
	sweepInterval  = time.Minute
)

// Store is a store in a PostgreSQL database. Use Open to create one.
type Store struct {
	store.Hub
	sqlstore.Records

	pool      *pgxpool.Pool
	retention store.Retention
	serveOn   bool // serve calls without a record during an outage
	log       *slog.Logger
	node      string // distinguishes own announcements from those of other nodes

	timeout  time.Duration // for queries that a call may wait for
	calls    *store.Group[pendingRecord]
	outage   outage
	backlog  backlog
	notifier notifier

	ctx     context.Context // cancelled when the store is closed
	cancel  context.CancelFunc
	probing sync.WaitGroup
	closed  atomic.Bool
	poll    time.Duration
	sweep   time.Duration
}

var _ store.Store = (*Store)(nil)

// Open connects to the database at cfg.URL and brings its tables up to date.
func Open(ctx context.Context, cfg store.Config, log *slog.Logger) (*Store, error) {
	pc, err := pgxpool.ParseConfig(cfg.URL.Reveal())
	if err != nil {
		// The message of pgx quotes the URL including the password.
		return nil, errors.New("store.url: not a PostgreSQL address; write postgres://user:password@host:port/database")
	}
	if !strings.Contains(cfg.URL.Reveal(), "pool_max_conns") {
		pc.MaxConns = maxConns
	}
	pc.MinConns = 0
	pc.MaxConnIdleTime = time.Minute
	pc.HealthCheckPeriod = 15 * time.Second
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = connectTimeout
	}
	params := pc.ConnConfig.RuntimeParams
	if params["application_name"] == "" {
		params["application_name"] = "junctor"
	}
	if params["search_path"] == "" {
		params["search_path"] = schema
	}
	params["timezone"] = "UTC"
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, explain("open the store", err)
	}
	if err := migrate(ctx, pool, params["search_path"] == schema); err != nil {
		pool.Close()
		return nil, explain("open the store", err)
	}
	s := &Store{
		pool: pool, retention: cfg.Retention, serveOn: cfg.WhenAway == store.FailOpen, log: log.With(telemetry.KeyComponent, "store"),
		node: rand.Text()[:10], poll: pollInterval, sweep: sweepInterval, timeout: cfg.Timeout(),
	}
	s.Records = sqlstore.New(database{s})
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.makePartitions(ctx); err != nil {
		pool.Close()
		return nil, explain("open the store", err)
	}
	s.calls = store.NewGroup(maxBatch, s.commit)
	s.notifier.send = s.notify
	return s, nil
}

// Close waits for writes in progress, sends the last announcements and closes
// the connections. It tries once more to write the records that could not be
// written during an outage; the error contains the number of lost records.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.calls.Close()
	s.cancel()
	s.probing.Wait()
	err := s.drainLast()
	s.notifier.flushLast()
	s.pool.Close()
	return err
}

// Run listens for changes made by other nodes and deletes records over the
// retention limits until ctx is done. It retries while the database is
// unavailable.
func (s *Store) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { s.listen(ctx) })
	wg.Go(func() { every(ctx, s.sweep, s.maintain) })
	wg.Go(func() {
		every(ctx, s.poll, func(ctx context.Context) {
			_ = s.read(ctx, "look for the database", func(ctx context.Context) error { // try records a failure as an outage
				_, err := s.pool.Exec(ctx, "SELECT 1")
				return err
			})
			s.WakeAll()
		})
	})
	wg.Wait()
	return nil
}

// every calls do immediately and then at intervals until ctx is done.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		do(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// try runs f with a timeout. During an outage it first waits for its end, like
// [Store.Append] until the outage has lasted for store.timeoutMs. A failure of f
// because the database is unavailable starts an outage, except that a query may
// exceed slowTimeout. try then retries f where that is safe, because connections
// may break and be replaced within milliseconds.
func (s *Store) try(ctx context.Context, act string, timeout time.Duration, again bool, f func(context.Context) error) error {
	first := time.Now()
	for {
		if s.closed.Load() {
			return fmt.Errorf("%s: %w", act, store.ErrClosed)
		}
		if err := s.outage.await(ctx, s.timeout); err != nil {
			return explain(act, err)
		}
		begun := time.Now()
		err := s.attempt(ctx, timeout, again, f)
		if err == nil || !isUnavailable(err) || ctx.Err() != nil || timeout == slowTimeout && errors.Is(err, context.DeadlineExceeded) {
			return explain(act, err)
		}
		s.startOutage(err, begun)
		if !(isRetryable(err) || again && isConnectionLost(err)) || time.Since(first) > s.timeout {
			return explain(act, err)
		}
	}
}

// attempt runs f, and retries it with another connection if the first one turns
// out to be broken before it is used. With again set, which requires that f is
// idempotent, it also retries f if f may have been executed.
func (s *Store) attempt(ctx context.Context, timeout time.Duration, again bool, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := f(ctx)
		if err == nil || attempt == maxConns+2 || ctx.Err() != nil || !(isRetryable(err) || again && isConnectionLost(err)) {
			return err
		}
		// Each attempt removes one broken connection from the pool. If the
		// database is unavailable, a new connection is refused immediately.
		if isConnectError(err) && attempt >= 2 {
			return err
		}
	}
}

// read runs f, which may be executed more than once. write executes f at most
// once.
func (s *Store) read(ctx context.Context, act string, f func(context.Context) error) error {
	return s.try(ctx, act, s.timeout, true, f)
}

func (s *Store) write(ctx context.Context, act string, f func(context.Context) error) error {
	return s.try(ctx, act, s.timeout, false, f)
}

// readSlow is like read with the timeout slowTimeout.
func (s *Store) readSlow(ctx context.Context, act string, f func(context.Context) error) error {
	return s.try(ctx, act, slowTimeout, true, f)
}

// collect runs a query and returns its rows.
func collect[T any](ctx context.Context, s *Store, scan func(pgx.CollectableRow) (T, error), query string, args ...any) ([]T, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]T{}, rows, scan)
}

// one runs a query and returns its only row; store.ErrNotFound when it has
// none.
func one[T any](ctx context.Context, s *Store, scan func(pgx.CollectableRow) (T, error), query string, args ...any) (T, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		var none T
		return none, err
	}
	v, err := pgx.CollectOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		err = store.ErrNotFound
	}
	return v, err
}

// stamp converts a time; the zero time becomes NULL.
func stamp(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

func moment(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// raw returns b, or nil, which is stored as NULL, if b is empty.
func raw(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// blob returns b, or an empty slice if b is nil, which would be stored as NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
