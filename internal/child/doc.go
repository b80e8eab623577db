// Package child starts programs and ends them together with everything that they
// started.
//
// A [Launcher] promises that everything a program started is gone when the
// program ends, when it is stopped, and when this process dies, be it by
// kill -9: its children, their children, and those that forked twice and took
// a session of their own. How far the promise can be kept depends on what the
// system allows; [Isolation] says which way was taken.
//
// The package knows pipes, environments and signals, and nothing of what is
// spoken through the pipes.
//
// # Design
//
// On Linux the first start tries the isolation methods and keeps the best one
// that works (system.choose); a start for which the system has no more
// namespaces uses the next one. A program is the child of a keeper, about 1 KB
// of machine code (keeper_linux.go), not of this process:
//
//	namespace  keeper ──► keeper ──► program   the kernel ends all with the first keeper
//	subreaper  keeper ──► program              the keeper inherits orphans and kills them
//	group      program                         no keeper; what leaves the group survives
//
// Windows has job objects, other systems process groups. A [Process] moves through
//
//	running ──Stop: stdin closed──► 2 s ──► SIGTERM ──► 2 s ──► killed ──► gone
//
// and is gone earlier if the program ends. Done is closed when nothing is left.
//
// Goroutines: all programs are started on one operating-system thread
// (Launcher.thread), because their death signal comes when the thread that
// started them ends; it lives until Close. Process.run waits for the end of one
// program, and another goroutine reads its stderr into tail and calls OnStderr.
//
// Locks: Launcher.mu makes starts take turns, tail.mu guards the last lines of
// stderr and is held while OnStderr runs. They are never held together.
//
// When this process dies, the kernel signals the keepers (namespace: SIGKILL, and
// with them everything in the namespace; subreaper: a signal on which the keeper
// kills all its descendants). A job ends with the last handle to it. With group,
// on Linux the program itself is killed, and elsewhere only what notices that its
// stdin is closed ends.
//
// Start reading at Launcher.Start and Process.Stop, then system_linux.go.
// Decision 0003 has the alternatives and their cost.
package child
