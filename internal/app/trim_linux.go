package app

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseFile unmaps the pages of the program's own file that are mapped now.
// They are read-only and come back from the page cache when they are touched
// again, which an idle gateway does to few of them.
func releaseFile() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		// 00400000-01a2b000 r-xp 00000000 fe:00 1234  /usr/bin/junctor
		f := strings.Fields(line)
		if len(f) < 6 || f[5] != self || strings.Contains(f[1], "w") {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 != nil || err2 != nil || end <= start {
			continue
		}
		// It is a kindness: nothing depends on its success.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED)
	}
}
