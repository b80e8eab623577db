//go:build race

package tool

// overwrite makes bytes that were returned unreadable, so that a test sees them
// wherever they were kept without a copy.
const overwrite = true
