package filelock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// Hold marks the file until it is closed, or returns ErrHeld at once. The
// mark is a byte far behind the end, because Windows keeps others from
// reading what is marked.
func Hold(f *os.File) error {
	at := windows.Overlapped{Offset: ^uint32(0), OffsetHigh: 0x7fffffff}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrHeld
	}
	return err
}

// openFolder opens what stands for a folder, which cannot be marked itself: a
// file in the user's folder for temporary files, named by it.
func openFolder(path string) (*os.File, error) {
	sum := sha256.Sum256([]byte(strings.ToLower(path)))
	return os.OpenFile(filepath.Join(os.TempDir(), "junctor-"+hex.EncodeToString(sum[:8])+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
}
