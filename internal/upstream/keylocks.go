package upstream

import (
	"context"
	"sync"
)

// KeyLocks are locks by key. They order the requests that change one thing at a
// server, such as a subscription, and let others proceed. A key uses memory only
// while its lock is held or waited for.
type KeyLocks[K comparable] struct {
	mu    sync.Mutex
	locks map[K]*keyLock
}

type keyLock struct {
	held  chan struct{} // has one element while the lock is held
	users int           // that hold the lock or wait for it
}

// Lock acquires the lock of the key. It fails if ctx is done first.
func (l *KeyLocks[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	l.mu.Lock()
	if l.locks == nil {
		l.locks = map[K]*keyLock{}
	}
	k := l.locks[key]
	if k == nil {
		k = &keyLock{held: make(chan struct{}, 1)}
		l.locks[key] = k
	}
	k.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.locks, key)
		}
	}
	select {
	case k.held <- struct{}{}:
		return func() { <-k.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
