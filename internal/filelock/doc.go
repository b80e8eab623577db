// Package filelock locks files and folders. The operating system releases the
// locks of a process when it exits, even if it crashes.
package filelock

import "errors"

// ErrHeld means that another process, or another handle of this one, holds the
// lock.
var ErrHeld = errors.New("the file is in use")
