package store

import (
	"context"
	"time"
)

// Value is a small named blob: a sealed token, a registration, a decision
// that a person made once.
type Value struct {
	Space   string // what kind of value it is
	Name    string // unique within its space
	Data    []byte
	Version int64     // grows with every write; given by the store
	Updated time.Time // given by the store
	Expires time.Time // zero: never; an expired value is not found
}

// AnyVersion lets PutValue and DeleteValue act whatever is there.
const AnyVersion int64 = -1

// Values keeps named blobs. Changes are announced under [TopicValues] of the
// space.
type Values interface {
	// Value returns one value, or ErrNotFound.
	Value(ctx context.Context, space, name string) (Value, error)

	// Values returns all of a space, by name; those of all spaces, by space
	// and name, when space is empty.
	Values(ctx context.Context, space string) ([]Value, error)

	// PutValue writes v.Data if the value's version is still ifVersion (0:
	// there is none; AnyVersion: whatever it is) and returns what is stored
	// now; otherwise ErrConflict. v.Version and v.Updated are ignored.
	PutValue(ctx context.Context, v Value, ifVersion int64) (Value, error)

	// DeleteValue removes a value if its version is still ifVersion. It is no
	// error when there is none.
	DeleteValue(ctx context.Context, space, name string, ifVersion int64) error
}
