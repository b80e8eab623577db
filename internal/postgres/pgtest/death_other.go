//go:build unix && !linux

package pgtest

import "syscall"

// endWithParent does nothing: only Linux can signal a child when its parent
// dies.
func endWithParent(*syscall.SysProcAttr) {}
