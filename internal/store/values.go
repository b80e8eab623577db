package store

import (
	"context"
	"time"
)

// Value is a small named blob: a sealed token, a registration, a decision that
// a user made.
type Value struct {
	Space   string // what kind of value it is
	Name    string // unique within its space
	Data    []byte
	Version int64     // increases with every write; set by the store
	Updated time.Time // set by the store
	Expires time.Time // zero: never; an expired value is not found
}

// AnyVersion makes PutValue and DeleteValue ignore the stored version.
const AnyVersion int64 = -1

// Values stores named blobs. Changes are announced under [TopicValues] of the
// space.
type Values interface {
	// Value returns one value, or ErrNotFound.
	Value(ctx context.Context, space, name string) (Value, error)

	// Values returns all values of a space, by name. If space is empty, it
	// returns those of all spaces, by space and name.
	Values(ctx context.Context, space string) ([]Value, error)

	// PutValue writes v.Data and v.Expires if the value's version is still
	// ifVersion (0: there is no value; AnyVersion: any) and returns the stored
	// value; otherwise ErrConflict. v.Version and v.Updated are ignored.
	PutValue(ctx context.Context, v Value, ifVersion int64) (Value, error)

	// DeleteValue deletes a value if its version is still ifVersion; otherwise
	// ErrConflict. A value that does not exist is not an error.
	DeleteValue(ctx context.Context, space, name string, ifVersion int64) error
}
