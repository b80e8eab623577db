package filelock

import (
	"errors"
	"os"
	"time"
)

// retryInterval is how often a folder that is held is tried again.
const retryInterval = 2 * time.Millisecond

// HoldFolder marks a folder until the result is closed. While another holds it,
// it waits, and returns ErrHeld after timeout. It leaves nothing in the folder
// and needs no right to write there.
func HoldFolder(path string, timeout time.Duration) (*os.File, error) {
	f, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(timeout); ; time.Sleep(retryInterval) {
		if err = Hold(f); err == nil {
			return f, nil
		}
		if !errors.Is(err, ErrHeld) || time.Now().After(end) {
			_ = f.Close()
			return nil, err
		}
	}
}
