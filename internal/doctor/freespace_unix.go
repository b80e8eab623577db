//go:build unix

package doctor

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// freeSpace returns the free space on the disk of a file, in bytes.
func freeSpace(path string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &st); err != nil {
		return 0, err
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil
}
