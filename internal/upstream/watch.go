package upstream

import "context"

// topicState is the one topic of Supervisor.changes.
const topicState = "state"

// Watch returns a channel that receives a value after upstreams were added or
// removed or changed state, until ctx is done. Changes since the last receive
// are coalesced into one value.
func (s *Supervisor) Watch(ctx context.Context) <-chan struct{} {
	return s.changes.Watch(ctx, topicState)
}
