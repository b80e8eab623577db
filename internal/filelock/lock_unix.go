//go:build unix

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Hold locks the file until it is closed. It does not wait: if the lock is
// held, it returns ErrHeld.
func Hold(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}

// openFolder opens the folder itself, which can be locked.
func openFolder(path string) (*os.File, error) { return os.Open(path) }
