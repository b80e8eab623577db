package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"junctor/internal/filelock"
)

// inherit takes the journals of processes that are no more into the tables.
// Those that are in use belong to living ones.
func (s *Store) inherit(ctx context.Context) error {
	names, err := journals(s.path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.inheritOne(ctx, name); err != nil {
			return err
		}
	}
	return s.forgetJournals(ctx)
}

func (s *Store) inheritOne(ctx context.Context, name string) error {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(s.path), name), os.O_RDWR, 0)
	if err != nil {
		return ignoreAbsent(err) // its owner was faster
	}
	defer f.Close()
	if err := filelock.Hold(f); err != nil {
		if errors.Is(err, filelock.ErrHeld) {
			return nil
		}
		return err
	}
	if !sameFile(f) {
		return nil
	}
	var done int64
	err = s.read.QueryRowContext(ctx, "SELECT bytes FROM journals WHERE name = ?", name).Scan(&done)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	left, err := io.ReadAll(io.NewSectionReader(f, done, maxJournal+maxWaiting))
	if err != nil {
		return err
	}
	if len(left) > 0 {
		if err := s.moveIn(name, done, left); err != nil {
			return err
		}
	}
	return errors.Join(f.Close(), ignoreAbsent(os.Remove(f.Name())))
}

// forgetJournals deletes what is noted of journals that are no more.
func (s *Store) forgetJournals(ctx context.Context) error {
	noted, err := s.notedJournals(ctx)
	if err != nil {
		return err
	}
	there, err := journals(s.path) // after the notes: a journal is made before it is noted
	if err != nil {
		return err
	}
	for _, name := range noted {
		if slices.Contains(there, name) {
			continue
		}
		if _, err := s.forget(ctx, "DELETE FROM journals WHERE name = ?", name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) notedJournals(ctx context.Context) (names []string, err error) {
	rows, err := s.read.QueryContext(ctx, "SELECT name FROM journals")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
