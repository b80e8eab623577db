//go:build unix

package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkFolder returns an error if other users could create files in the
// folder.
func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("check the folder of the socket: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return errors.New("the folder of the socket is open to other users; it must belong to you with mode 0700")
	}
	return nil
}

func socketLike(fs.FileInfo) bool { return false }
