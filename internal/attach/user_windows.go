package attach

import (
	"fmt"
	"io/fs"
	"os"
)

// checkFolder trusts the folder, which lies in the user's profile: nobody else
// can reach it.
func checkFolder(folder string) error {
	if _, err := os.Stat(folder); err != nil {
		return fmt.Errorf("look at the folder of the socket: %w", err)
	}
	return nil
}

// socketLike reports whether the file may be a socket, which Windows shows as
// a reparse point.
func socketLike(info fs.FileInfo) bool { return !info.IsDir() }
