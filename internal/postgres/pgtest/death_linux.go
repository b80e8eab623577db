package pgtest

import "syscall"

// endWithParent makes the kernel stop the server when the test process is
// killed.
//
// The signal is sent when the thread that started the server exits. Go does not
// terminate threads unless a goroutine that is locked to one exits, and ours is
// not locked.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
