package store

import (
	"context"
	"time"
)

// Lease is the right to do something alone for a while. Its time runs by the
// database's clock, so that nodes whose clocks differ agree.
type Lease struct {
	Name  string
	Owner string        // who holds it
	Left  time.Duration // how long it still lasts

	// Token grows with every change of owner. Work done under a lease can
	// carry it, so that a late word of a former owner is known for one.
	Token int64
}

// Leases gives rights that end by themselves when their owner dies.
type Leases interface {
	// Acquire takes the lease, or prolongs it when owner has it already. When
	// someone else holds it, held is false and the lease tells who, and for
	// how long.
	Acquire(ctx context.Context, name, owner string, ttl time.Duration) (l Lease, held bool, err error)

	// Release gives the lease back if owner still has it.
	Release(ctx context.Context, name, owner string) error
}
