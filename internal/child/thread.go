package child

import "runtime"

// thread runs the received functions on a separate operating-system thread,
// which exits with the goroutine because it stays locked to it.
func (l *Launcher) thread(starts <-chan func()) {
	runtime.LockOSThread()
	for f := range starts {
		f()
	}
}
