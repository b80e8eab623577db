// Package filelock marks a file or a folder as in use for as long as its process
// lives, however that ends: the system takes the mark away.
package filelock

import "errors"

// ErrHeld is returned when another process, or another handle of this one,
// holds the file.
var ErrHeld = errors.New("the file is in use")
