// Package backup writes a store to a file and reads it back. A backup appears
// only when it is complete, is readable only by this user, and is not modified
// by reading it.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"junctor/internal/store"
)

// Open opens the store in the file at path.
type Open func(ctx context.Context, path string) (store.Store, error)

// Write calls fill to copy a store into a new file in a private folder next to
// file, and renames it to file when it is complete.
func Write(ctx context.Context, file string, force bool, open Open, fill func(store.Store) error) (err error) {
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; name another", file)
	} else if err == nil && !force {
		return fmt.Errorf("%s already exists; name another file, or use --force to replace it", file)
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), ".junctor-backup-")
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "store.db")
	to, err := open(ctx, path)
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := errors.Join(fill(to), to.Close()); err != nil {
		return err
	}
	if err := syncFile(path); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if force {
		err = os.Rename(path, file)
	} else {
		err = os.Link(path, file) // never replaces an existing file
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = os.Rename(path, file) // the file system may not support links
		}
	}
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return syncFile(filepath.Dir(file))
}

// syncFile flushes the content of a file or folder to the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if info, statErr := f.Stat(); statErr == nil && info.IsDir() {
		err = nil // not every system supports that for folders
	}
	return errors.Join(err, f.Close())
}

// Read calls f with a private copy of a backup in dataDir, so that the tables
// of an earlier version can be migrated without modifying the backup.
func Read(ctx context.Context, file, dataDir string, open Open, f func(store.Store) error) (err error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	dir, err := os.MkdirTemp(dataDir, ".restore-")
	if err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "store.db")
	if err := copyFile(file, path); err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	from, err := open(ctx, path)
	if err != nil {
		return fmt.Errorf("%s is not a backup that junctor store backup wrote, or is damaged: %w", file, err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if empty, err := store.Empty(ctx, from); err != nil {
		return fmt.Errorf("read the backup: %w", err)
	} else if empty {
		return fmt.Errorf("%s contains no store records", file)
	}
	return f(from)
}

// copyFile copies a regular file to a new one that only this user can read.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", from)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
