//go:build !windows

package store

import (
	"fmt"
	"io/fs"
)

// private refuses a key file that other users may read.
func private(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("key file %s may be read by other users (mode %04o); run: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return nil
}
