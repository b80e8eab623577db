package app

import (
	"context"
	"runtime/debug"
	"time"
)

const (
	// settled is how long after the last server's first connection the start
	// counts as over, and again until what it left to do later is done.
	settled = 1500 * time.Millisecond

	// startGC is how much garbage the start may make, in percent of what
	// lives. It makes much for the little that stays: collected late, that
	// little would lie scattered over a heap three times its size.
	startGC = 30
)

// trim gives back what only the start needed: the heap's garbage and the parts
// of the program's file that initialisation touched. An idle gateway stays
// small that way.
func (a *App) trim(ctx context.Context) error {
	restore := func() {}
	if usual := debug.SetGCPercent(startGC); usual > startGC {
		restore = func() { debug.SetGCPercent(usual) }
	} else { // someone knows better
		debug.SetGCPercent(usual)
	}
	defer restore()
	a.upstreams.Await(ctx)
	for range 2 {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settled):
			debug.FreeOSMemory()
			releaseFile()
		}
	}
	return nil
}
