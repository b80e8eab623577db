//go:build unix

package child

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// maxPipe is how much is read of a pipe that someone may still write to. It is
// as much as a pipe of an ordinary user may contain.
const maxPipe = 1 << 20

// drain reads what the pipe contains, without waiting for more.
func (t *tail) drain(f *os.File) {
	_ = f.SetReadDeadline(time.Time{}) // or nothing could be read
	t.readFrom(io.LimitReader(available{f}, maxPipe))
}

// available reads a pipe, and ends where it would have to wait.
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
			n, failed = syscall.Read(int(fd), b) // the pipe does not block: os.Pipe made it so
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
