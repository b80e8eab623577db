package doctor

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// freeSpace returns the free space on the disk of a file, in bytes.
func freeSpace(path string) (uint64, error) {
	dir, err := windows.UTF16PtrFromString(filepath.Dir(path))
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(dir, &free, nil, nil)
	return free, err
}
