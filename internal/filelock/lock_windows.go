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

// Hold locks the file until it is closed. It does not wait: if the lock is
// held, it returns ErrHeld. It locks a byte far after the end, because Windows
// prevents others from reading locked bytes.
func Hold(f *os.File) error {
	at := windows.Overlapped{Offset: ^uint32(0), OffsetHigh: 0x7fffffff}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrHeld
	}
	return err
}

// openFolder opens a file in the user's temporary folder that represents the
// folder, which cannot be locked itself. The file's name is derived from the
// path.
func openFolder(path string) (*os.File, error) {
	sum := sha256.Sum256([]byte(strings.ToLower(path)))
	return os.OpenFile(filepath.Join(os.TempDir(), "junctor-"+hex.EncodeToString(sum[:8])+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
}
