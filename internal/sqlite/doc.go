// Package sqlite is the embedded store: one file, nothing to set up.
//
// It promises what package store asks for. A write has been committed to the
// write-ahead log when its method returns, so that it survives kill -9; with
// Fsync it has reached the disk. Writes that come together share a commit, and
// none waits for company. Several processes may use one file.
//
// It knows nothing of what the records mean, and reads no configuration but
// store.Config.
package sqlite
