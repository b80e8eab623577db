//go:build unix

package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// private reports, as an error, when others than this user could put
// something into the folder.
func private(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("look at the folder of the socket: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return errors.New("the folder of the socket is open to other users; it must belong to you with mode 0700")
	}
	return nil
}

func socketLike(fs.FileInfo) bool { return false }

// lockFile takes the lock of a file for as long as the process lives.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the socket: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrRunning
		}
		return nil, fmt.Errorf("lock the socket: %w", err)
	}
	return f, nil
}
