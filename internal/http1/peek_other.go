//go:build !unix

package http1

// canPeek is false where a socket cannot be looked at without reading: there
// the standard transport, which reads all the time, carries everything.
const canPeek = false

func hasNoInput(uintptr) bool { return false }
