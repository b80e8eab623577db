package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"junctor/internal/filelock"
	"junctor/internal/store"
)

const (
	ownerMark   = "-owner-" // between the database's name and that of an owner's file
	ownedLease  = time.Second
	maxOwnerLen = 1 << 10
)

// leaseOwners are the files that show other processes that the owners of leases
// are alive. Each contains the owner's name and is locked for as long as its
// process lives.
type leaseOwners struct {
	mu    sync.Mutex
	files map[string]*os.File // by owner; nil for one that could not be created
}

// Acquire implements store.Leases. All processes on the file share this
// machine's clock. Tokens start at the current time, so that they also increase
// after a lease was deleted. The leases of a process end when it dies.
func (s *Store) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (l store.Lease, held bool, err error) {
	if ttl >= ownedLease { // a shorter one expires soon
		s.markAlive(ctx, owner)
	}
	l, held, err = s.acquire(ctx, name, owner, ttl)
	if err == nil && !held && l.Left > 0 {
		var ended bool
		if ended, err = s.endDeadLeases(ctx); err == nil && ended {
			l, held, err = s.acquire(ctx, name, owner, ttl)
		}
	}
	if err != nil {
		return store.Lease{}, false, s.explain("take lease "+name, err)
	}
	return l, held, nil
}

func (s *Store) acquire(ctx context.Context, name, owner string, ttl time.Duration) (l store.Lease, held bool, err error) {
	err = s.write.submit(ctx, oneStatement, func(w *writer) error {
		bg := context.Background()
		now := micros(s.now())
		var until int64
		err := w.one(bg, `INSERT INTO leases (name, owner, until, token) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until,
	token = CASE WHEN owner = excluded.owner THEN token ELSE max(token + 1, excluded.token) END
WHERE owner = excluded.owner OR until <= ?4 RETURNING owner, until, token`,
			[]any{name, owner, now + ttl.Microseconds(), now}, &l.Owner, &until, &l.Token)
		if held = err == nil; errors.Is(err, sql.ErrNoRows) {
			err = w.one(bg, "SELECT owner, until, token FROM leases WHERE name = ?", []any{name}, &l.Owner, &until, &l.Token)
		}
		l.Name, l.Left = name, max(0, time.Duration(until-now)*time.Microsecond)
		return err
	})
	return l, held, err
}

// markAlive creates the file of an owner. If that fails, its leases still
// expire.
func (s *Store) markAlive(ctx context.Context, owner string) {
	s.owners.mu.Lock()
	defer s.owners.mu.Unlock()
	if _, known := s.owners.files[owner]; known || s.owners.files == nil {
		return
	}
	f, err := createLocked(s.path + ownerMark)
	if err == nil {
		if _, err = f.WriteString(owner); err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
			f = nil
		}
	}
	if err != nil {
		s.log.DebugContext(ctx, "leases of this process will end only by expiring", "owner", owner, "err", err)
	}
	s.owners.files[owner] = f
}

func (o *leaseOwners) has(owner string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.files[owner] != nil
}

// close removes the files of this process.
func (o *leaseOwners) close() (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.files {
		if f != nil {
			err = errors.Join(err, f.Close(), ignoreAbsent(os.Remove(f.Name())))
		}
	}
	o.files = nil
	return err
}

// endDeadLeases ends the leases of processes that died, and reports whether
// there were such processes.
func (s *Store) endDeadLeases(ctx context.Context) (ended bool, err error) {
	names, err := filesOf(s.path, ownerMark)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		dead, err := s.endLeasesOf(ctx, filepath.Join(filepath.Dir(s.path), name))
		if err != nil {
			return ended, err
		}
		ended = ended || dead
	}
	return ended, nil
}

// endLeasesOf ends the leases of the owner of a file and removes the file,
// unless its process is alive.
func (s *Store) endLeasesOf(ctx context.Context, path string) (dead bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false, ignoreAbsent(err)
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if dead && err == nil {
			err = ignoreAbsent(os.Remove(path))
		}
	}()
	if err := filelock.Hold(f); err != nil {
		if errors.Is(err, filelock.ErrHeld) {
			return false, nil
		}
		return false, err
	}
	if !sameFile(f) {
		return false, nil
	}
	owner, err := io.ReadAll(io.LimitReader(f, maxOwnerLen))
	if err != nil {
		return false, err
	}
	if len(owner) == 0 || s.owners.has(string(owner)) { // it had no lease yet, or this process is now the owner of that name
		return true, nil
	}
	return true, s.write.submit(ctx, oneStatement, func(w *writer) error {
		return w.exec(context.Background(), "UPDATE leases SET owner = '', until = ?1 WHERE owner = ?2 AND until > ?1", micros(s.now()), string(owner))
	})
}
