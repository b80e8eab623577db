//go:build unix && !linux

package pgtest

import "syscall"

// endWithParent: only Linux tells a child of its parent's end.
func endWithParent(*syscall.SysProcAttr) {}
