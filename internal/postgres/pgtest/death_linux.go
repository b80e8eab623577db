package pgtest

import "syscall"

// endWithParent lets no server outlive a test process that was killed.
//
// The signal comes when the thread ends that started the server; Go keeps its
// threads unless a goroutine locked to one ends, and ours is not locked.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
