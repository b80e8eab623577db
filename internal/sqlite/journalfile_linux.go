package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile extends a file to size, allocating disk space for all of it, and maps
// it.
func mapFile(f *os.File, size int64) ([]byte, error) {
	if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmapFile(mapped []byte) error {
	if mapped == nil {
		return nil
	}
	return unix.Munmap(mapped)
}

// reopen returns the open file, which keeps its locks, as an os.File with
// another name.
func reopen(f *os.File, name string) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
