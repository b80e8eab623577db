package script

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuClock is the CPU clock of one thread. Other threads may read it.
type cpuClock int32

// threadClock returns the clock of the calling thread, which the caller must
// have locked. The bits are those of pthread_getcpuclockid(3).
func threadClock() cpuClock { return cpuClock(^int32(unix.Gettid())<<3 | 6) }

// now returns the CPU time that the thread has used.
func (c cpuClock) now() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(int32(c), &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
