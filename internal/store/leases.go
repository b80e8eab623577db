package store

import (
	"context"
	"time"
)

// Lease is an exclusive right that expires. Its time is measured by the
// database's clock, so that nodes whose clocks differ agree.
type Lease struct {
	Name  string
	Owner string        // who holds it
	Left  time.Duration // until it expires

	// Token increases with every change of owner. Work done under a lease can
	// include it, so that late writes of a former owner are detected.
	Token int64
}

// Leases grants leases, which expire when their owner dies.
type Leases interface {
	// Acquire acquires the lease, or renews it if owner holds it already. If
	// another owner holds it, held is false and l is the lease of that owner.
	Acquire(ctx context.Context, name, owner string, ttl time.Duration) (l Lease, held bool, err error)

	// Release releases the lease if owner still holds it.
	Release(ctx context.Context, name, owner string) error
}

// probeDuration is how long a probe holds a lease that had expired.
const probeDuration = time.Millisecond

// Expired reports whether the heartbeat lease name has expired. It tries to
// acquire the lease, so that the database's clock decides.
func Expired(ctx context.Context, l Leases, name, prober string) (bool, error) {
	_, expired, err := l.Acquire(ctx, name, "probe/"+prober, probeDuration)
	return expired, err
}

// Renew acquires or renews a lease that others only probe with [Expired]. While
// a probe holds it, Renew retries.
func Renew(ctx context.Context, l Leases, name, owner string, ttl time.Duration) error {
	for {
		_, held, err := l.Acquire(ctx, name, owner, ttl)
		if held || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(probeDuration):
		}
	}
}
