//go:build !windows

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private returns an error for a key file that other users may access.
func private(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("key file %s may be read by other users (mode %04o); run: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return nil
}

// CheckFolder returns an error for a folder that belongs to another user or
// that others may write to: they could replace our files. A folder that does
// not exist is not an error.
func CheckFolder(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("data folder %s belongs to user %d, who can replace what is kept in it; set XDG_DATA_HOME to a folder of your own, or run: chown %d %s", path, owner.Uid, os.Geteuid(), path)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("other users may write to the data folder %s (mode %04o), and so replace what is kept in it; run: chmod 700 %s", path, info.Mode().Perm(), path)
	}
	return nil
}
