package upstream

import "context"

// topicState is the one topic of Supervisor.changes.
const topicState = "state"

// Watch returns a channel that receives after upstreams were added or removed
// or the state of one has changed, once for any number of changes since the
// last receive, until ctx is done.
func (s *Supervisor) Watch(ctx context.Context) <-chan struct{} {
	return s.changes.Watch(ctx, topicState)
}
