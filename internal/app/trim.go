package app

import (
	"context"
	"runtime/debug"
	"time"
)

// settled is how long after the last server's first connection the start
// counts as over.
const settled = time.Second

// trim gives back what only the start needed: the heap's garbage and the parts
// of the program's file that initialisation touched. An idle gateway stays
// small that way.
func (a *App) trim(ctx context.Context) error {
	a.upstreams.Await(ctx)
	select {
	case <-ctx.Done():
	case <-time.After(settled):
		debug.FreeOSMemory()
		releaseFile()
	}
	return nil
}
