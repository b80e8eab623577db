// Package child starts programs and terminates them together with all their
// descendants.
//
// A [Launcher] promises that all descendants of a program are gone when the
// program exits, when it is stopped, and when this process dies, even by
// SIGKILL. That includes processes that forked twice and created their own
// session. How far the promise can be kept depends on what the system allows;
// [Isolation] names the method in use.
//
// The package deals with pipes, environments and signals, not with the protocol
// on the pipes.
//
// # Design
//
// On Linux the first start tries the isolation methods and keeps the best one
// that works (system.choose); a start for which the system has no more
// namespaces uses the next one. A program is the child of a keeper, about 1 KB
// of machine code (keeper_linux.go), not of this process:
//
//	namespace  keeper ──► keeper ──► program   the kernel kills all with the first keeper
//	subreaper  keeper ──► program              the keeper inherits orphans and kills them
//	group      program                         no keeper; a process can leave the group
//
// Windows has job objects, other systems process groups. A [Process] moves through
//
//	running ──Stop: stdin closed──► 2 s ──► SIGTERM ──► 2 s ──► killed ──► gone
//
// and is gone earlier if the program exits. Done is closed when no process is
// left.
//
// Goroutines: all programs are started on one operating-system thread
// (Launcher.thread), which lives until Close, because the parent-death signal
// is sent when the thread that started a program exits. Process.run waits for
// one program to exit, and another goroutine reads its stderr into tail and
// calls OnStderr.
//
// Locks: Launcher.mu serializes starts, tail.mu guards the last lines of stderr
// and is held while OnStderr runs. They are never held together.
//
// When this process dies, the kernel signals the keepers (namespace: SIGKILL,
// which also kills everything in the namespace; subreaper: a signal on which
// the keeper kills all its descendants). A job ends with the last handle to it.
// With group, on Linux the program itself is killed; on other systems only
// programs that exit when their stdin is closed do so.
//
// Start reading at Launcher.Start and Process.Stop, then system_linux.go.
// Decision 0003 has the alternatives and their cost.
package child
