package store

import (
	"context"
	"iter"
	"time"
)

// Topics of changes. The store announces its own writes.
const (
	TopicCalls      = "calls"
	TopicKeys       = "keys"
	TopicCatalogues = "catalogues"
)

// TopicValues is the topic of a space of values.
func TopicValues(space string) string { return "values/" + space }

// TopicSession is the topic of one chat session.
func TopicSession(id string) string { return "session/" + id }

// Changes notifies this and other processes on the same database of changes. A
// notification has no content: receivers read the records again.
type Changes interface {
	// Announce publishes a change under the topic. It does not block;
	// announcements close in time are merged.
	Announce(topic string)

	// Watch returns a channel that receives after changes under the topic until
	// ctx is done. It may receive without a change, and receives at least every
	// few seconds if the engine may have missed notifications.
	Watch(ctx context.Context, topic string) <-chan struct{}
}

// Log is a call log whose growth can be watched.
type Log interface {
	CallLog
	Changes
}

// tailPause is how long new records are gathered before they are read.
const tailPause = 20 * time.Millisecond

// Tail yields the records after q.AfterSeq that match, in order, and continues
// with new ones as any process commits them, until ctx is done or the consumer
// stops. It skips no record: it reads by sequence number and uses announcements
// only as hints. It stops after an error.
func Tail(ctx context.Context, s Log, q CallQuery) iter.Seq2[Call, error] {
	return func(yield func(Call, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		changed := s.Watch(ctx, TopicCalls)
		q.Forward = true
		for {
			// Read before the records: those up to last that do not match
			// need not be read again.
			last, err := s.LastSeq(ctx)
			if err == nil && last > q.AfterSeq {
				var calls []Call
				page := q
				page.BeforeSeq = last + 1
				if calls, err = s.Calls(ctx, page); err == nil {
					for _, c := range calls {
						if !yield(c, nil) {
							return
						}
						q.AfterSeq = c.Seq
					}
					if len(calls) < q.Rows() {
						q.AfterSeq = last
					}
					continue
				}
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(Call{}, err)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
			// Records often arrive in bursts: read them together.
			select {
			case <-time.After(tailPause):
			case <-ctx.Done():
				return
			}
		}
	}
}
