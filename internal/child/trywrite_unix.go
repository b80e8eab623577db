//go:build unix

package child

import (
	"errors"
	"os"
	"syscall"
)

// TryWrite writes as much to the program's stdin as it takes without being
// waited for. The rest is to be written with Write, before anything else is.
func (p *Process) TryWrite(b []byte) (n int, err error) {
	raw, err := p.stdin.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for {
			n, failed = syscall.Write(int(fd), b) // the pipe does not block: os.Pipe made it so
			if !errors.Is(failed, syscall.EINTR) {
				return true // and whatever came of it, it is not tried again
			}
		}
	})
	if errors.Is(failed, syscall.EAGAIN) {
		failed = nil
	}
	if err != nil { // the pipe is closed, which the error does not say in a form that can be tested for
		return 0, &os.PathError{Op: "write", Path: p.stdin.Name(), Err: os.ErrClosed}
	}
	return max(n, 0), failed
}
