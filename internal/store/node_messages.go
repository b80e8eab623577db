package store

import "context"

// NodeMessage is one message from one process to another on the same database.
type NodeMessage struct {
	Seq  int64 // assigned by the store
	Data []byte
}

// TopicNodeMessages is the topic of one queue.
func TopicNodeMessages(queue string) string { return "node-messages/" + queue }

// NodeMessages delivers messages between the processes on one database. Each
// process reads one queue. Messages that are not acknowledged are deleted after
// some minutes. New messages are announced under [TopicNodeMessages] of the
// queue.
type NodeMessages interface {
	// SendMessages adds messages to a queue, all or none. Order is preserved
	// for a sender that waits for each call to return. A message may be
	// delivered twice if the connection breaks while it is sent; senders number
	// their messages where that matters.
	SendMessages(ctx context.Context, queue string, messages ...[]byte) error

	// TakeMessages deletes the messages in done, by their Seq, and returns up
	// to MaxNodeMessages of the others, oldest first. A queue has one reader at
	// a time.
	TakeMessages(ctx context.Context, queue string, done []int64) ([]NodeMessage, error)
}

// MaxNodeMessages is the maximum number of messages that TakeMessages returns.
const MaxNodeMessages = 256
