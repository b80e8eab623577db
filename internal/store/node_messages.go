package store

import "context"

// NodeMessage is one message from one process to another on the same database.
type NodeMessage struct {
	Seq  int64 // assigned by the store
	Data []byte
}

// TopicNodeMessages is the topic of one queue.
func TopicNodeMessages(queue string) string { return "node-messages/" + queue }

// NodeMessages carries messages between the processes on one database. Each
// process reads one queue. Messages that are not taken are deleted after some
// minutes. New messages are announced under [TopicNodeMessages] of the queue.
type NodeMessages interface {
	// SendMessages adds messages to a queue, all or none. Messages of one
	// sender that waits for each call to return keep their order. A message
	// may arrive twice when the connection broke while it was sent; senders
	// number what they send where that matters.
	SendMessages(ctx context.Context, queue string, messages ...[]byte) error

	// TakeMessages deletes the messages that are done, by their Seq, and
	// returns the others, oldest first, MaxNodeMessages at most. A queue has
	// one reader at a time.
	TakeMessages(ctx context.Context, queue string, done []int64) ([]NodeMessage, error)
}

// MaxNodeMessages is how many messages TakeMessages returns at most.
const MaxNodeMessages = 256
