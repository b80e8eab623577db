//go:build unix

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Hold marks the file until it is closed, or returns ErrHeld at once.
func Hold(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}

// openFolder opens what stands for a folder: itself.
func openFolder(path string) (*os.File, error) { return os.Open(path) }
