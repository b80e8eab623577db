// Package store defines what Junctor stores, as records and small interfaces: the
// call log, the tools last seen, fingerprints, API keys, sealed secrets, chat
// sessions, leases and messages between processes.
//
// It promises that every engine behind these interfaces behaves alike; the
// suite in storetest is that promise in code. What a method has returned
// without an error is committed: it survives the end of this process.
//
// The package opens no database. The engines (sqlite, postgres) implement
// [Store]; those who need a part of it ask for that part's interface alone.
//
// What both engines build on is here too: [Group] lets concurrent writers share
// one commit, on the goroutine of one of them; [Hub] wakes watchers; [Vault] keeps
// sealed values. A value is changed with the version that was read, so that of
// two writers one gets [ErrConflict]. A [Lease] ends by itself when its owner
// dies.
//
// Start reading at [Store] and calls.go, then storetest for what is promised.
package store

import (
	"context"
	"errors"

	"junctor/internal/tool"
)

// The failures that callers tell apart with errors.Is. Anything else is an
// error of the engine, with a message that says what to do.
var (
	// ErrNotFound means that there is no such record.
	ErrNotFound = errors.New("not in the store")

	// ErrConflict means that someone else wrote first: the version, the name
	// or the sequence number is not what the writer believed.
	ErrConflict = errors.New("the record was changed by someone else")

	// ErrClosed means that the store was closed, or has not been opened.
	ErrClosed = errors.New("the store is closed")

	// ErrUnavailable means that the database cannot be reached now and that
	// trying again later makes sense.
	ErrUnavailable = tool.ErrStoreUnavailable
)

// Store is everything an engine offers.
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

	// Run does the engine's background work (retention, changes made by
	// other processes) until ctx is done. The store works without it, but
	// deletes nothing and does not see what other processes change.
	Run(ctx context.Context) error

	// Close waits for what is being written and frees the database.
	Close() error
}
