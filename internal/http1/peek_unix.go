//go:build unix

package http1

import (
	"errors"
	"syscall"
)

const canPeek = true

// hasNoInput reports whether the socket is open and has no data to read.
func hasNoInput(fd uintptr) bool {
	var b [1]byte
	_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
}
