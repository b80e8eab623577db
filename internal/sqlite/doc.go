// Package sqlite is the embedded store: one file, nothing to set up.
//
// It promises what package store asks for. A write has been committed to the
// write-ahead log when its method returns, so that it survives kill -9; with
// Fsync it has reached the disk. Writes that come together share a commit, and
// none waits for company. The record of a call, of which there are most, is
// committed to a journal of this process's own, beside the file, and is in the
// tables a moment later (journal.go). Several processes may use one file.
//
// It knows nothing of what the records mean, and reads no configuration but
// store.Config.
package sqlite
