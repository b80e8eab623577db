//go:build unix

package child

import (
	"errors"
	"os"
	"syscall"
)

// TryWrite writes as much to the program's stdin as possible without blocking.
// The rest must be written with Write before anything else.
func (p *Process) TryWrite(b []byte) (n int, err error) {
	raw, err := p.stdin.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for {
			n, failed = syscall.Write(int(fd), b) // pipes of os.Pipe are non-blocking
			if !errors.Is(failed, syscall.EINTR) {
				return true // do not wait, whatever the result
			}
		}
	})
	if errors.Is(failed, syscall.EAGAIN) {
		failed = nil
	}
	if err != nil { // the pipe is closed; errors.Is does not recognize this error
		return 0, &os.PathError{Op: "write", Path: p.stdin.Name(), Err: os.ErrClosed}
	}
	return max(n, 0), failed
}
