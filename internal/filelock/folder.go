package filelock

import (
	"errors"
	"os"
	"time"
)

// retryInterval is the interval at which a lock that is held is retried.
const retryInterval = 2 * time.Millisecond

// HoldFolder locks a folder until the returned file is closed. If the lock is
// held, it waits and returns ErrHeld after timeout. It creates nothing in the
// folder and needs no write permission there.
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
