package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// private trusts the folder, which lies in the user's profile: nobody else
// can reach it.
func private(folder string) error {
	if _, err := os.Stat(folder); err != nil {
		return fmt.Errorf("look at the folder of the socket: %w", err)
	}
	return nil
}

// socketLike reports whether the file may be a socket, which Windows shows as
// a reparse point.
func socketLike(info fs.FileInfo) bool { return !info.IsDir() }

// lockFile takes the lock of a file for as long as the process lives.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the socket: %w", err)
	}
	var o windows.Overlapped
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &o)
	if err != nil {
		_ = f.Close()
		if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
			return nil, ErrRunning
		}
		return nil, fmt.Errorf("lock the socket: %w", err)
	}
	return f, nil
}
