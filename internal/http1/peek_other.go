//go:build !unix

package http1

// canPeek is false on systems where a socket cannot be peeked. There, all
// requests use the standard transport, which always has a read pending.
const canPeek = false

func hasNoInput(uintptr) bool { return false }
