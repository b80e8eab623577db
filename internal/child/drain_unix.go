//go:build unix

package child

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// maxPipe bounds how much is read from a pipe that a process may still write
// to. It is the maximum that a pipe of an ordinary user can contain.
const maxPipe = 1 << 20

// drain reads what the pipe contains, without waiting for more.
func (t *tail) drain(f *os.File) {
	_ = f.SetReadDeadline(time.Time{}) // an expired deadline would fail every read
	t.readFrom(io.LimitReader(available{f}, maxPipe))
}

// available reads from a pipe and returns io.EOF instead of blocking.
type available struct{ pipe *os.File }

// Read implements io.Reader.
func (a available) Read(b []byte) (n int, err error) {
	raw, err := a.pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	err = raw.Read(func(fd uintptr) bool {
		for {
			var failed error
			n, failed = syscall.Read(int(fd), b) // pipes of os.Pipe are non-blocking
			if !errors.Is(failed, syscall.EINTR) {
				return true
			}
		}
	})
	if err == nil && n <= 0 {
		err = io.EOF
	}
	return max(n, 0), err
}
