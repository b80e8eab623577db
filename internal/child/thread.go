package child

import "runtime"

// thread runs what comes in on an operating-system thread of its own. The
// thread ends with it, since it stays locked.
func (l *Launcher) thread(starts <-chan func()) {
	runtime.LockOSThread()
	for f := range starts {
		f()
	}
}
