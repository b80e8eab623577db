//go:build !linux

package script

import "time"

// cpuClock measures the time since the program started to run, for systems
// where one thread cannot read the CPU time of another.
type cpuClock time.Time

func threadClock() cpuClock { return cpuClock(time.Now()) }

func (c cpuClock) now() time.Duration { return time.Since(time.Time(c)) }
