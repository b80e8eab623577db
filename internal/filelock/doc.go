// Package filelock locks a file or a folder for as long as its process lives. The
// operating system releases the lock however the process ends.
package filelock

import "errors"

// ErrHeld is returned when another process, or another handle of this one,
// holds the file.
var ErrHeld = errors.New("the file is in use")
