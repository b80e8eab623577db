package attach

import (
	"fmt"
	"io/fs"
	"os"
)

// checkFolder only checks that the folder exists. It is in the user's profile
// and not accessible to other users.
func checkFolder(folder string) error {
	if _, err := os.Stat(folder); err != nil {
		return fmt.Errorf("check the folder of the socket: %w", err)
	}
	return nil
}

// socketLike reports whether the file may be a socket, which Windows shows as
// a reparse point.
func socketLike(info fs.FileInfo) bool { return !info.IsDir() }
