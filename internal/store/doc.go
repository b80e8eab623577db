// Package store defines what Junctor stores, as records and small interfaces: the
// call log, the tools last seen, fingerprints, API keys, sealed secrets, chat
// sessions, leases and messages between processes.
//
// Every engine behind these interfaces behaves the same; the test suite in
// storetest is the contract. When a method returns without an error, its
// writes are committed and survive the exit of this process.
//
// The package opens no database. The engines (sqlite, postgres) implement
// [Store]; callers depend only on the interfaces that they need.
//
// The package also has what both engines build on: [Group] lets concurrent
// writers share one commit, on the goroutine of one of them; [Hub] wakes
// watchers; [Vault] stores sealed values. A value is updated with the version
// that was read, so that of two concurrent writers one gets [ErrConflict]. A
// [Lease] expires when its owner dies.
//
// Start reading at [Store] and calls.go, then storetest for the contract.
package store

import (
	"context"
	"errors"

	"junctor/internal/tool"
)

// Errors that callers distinguish with errors.Is. Any other error is the
// engine's own; its message says what to do.
var (
	// ErrNotFound means that there is no such record.
	ErrNotFound = errors.New("not in the store")

	// ErrConflict means that another writer was first: the version, the name
	// or the sequence number is not what this writer expected.
	ErrConflict = errors.New("the record was changed by someone else")

	// ErrNotEmpty means that the target of a copy has calls that the source
	// does not have.
	ErrNotEmpty = errors.New("the target is not empty")

	// ErrClosed means that the store was closed, or has not been opened.
	ErrClosed = errors.New("the store is closed")

	// ErrUnavailable means that the database cannot be reached at present; a
	// later retry may succeed.
	ErrUnavailable = tool.ErrStoreUnavailable
)

// Store is the complete interface of an engine.
type Store interface {
	CallLog
	Catalogues
	Fingerprints
	Keys
	Values
	Sessions
	Leases
	NodeMessages
	Changes
	Importer

	// Run does the engine's background work until ctx is done: retention, and
	// notification of changes made by other processes. Without it the store
	// works, but deletes no old records and misses such notifications.
	Run(ctx context.Context) error

	// Close waits for writes in progress and closes the database.
	Close() error
}
