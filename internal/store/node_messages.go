package store

import "context"

// NodeMessage is one message from one process to another on the same database.
type NodeMessage struct {
	Seq  int64 // given by the store; names the letter
	Data []byte
}

// TopicNodeMessages is the topic of one box.
func TopicNodeMessages(box string) string { return "mail/" + box }

// NodeMessages carries messages between the processes on one database. Letters that
// nobody takes are forgotten after some minutes: mail is for those who are
// there. New letters are announced under [TopicMail] of the box.
type NodeMessages interface {
	// SendMessages puts messages into a box, all or none. Those of one sender who
	// waits for each sending to end keep their order. A letter may arrive
	// twice when the connection broke while it was sent; senders number what
	// they send where that matters.
	SendMessages(ctx context.Context, box string, letters ...[]byte) error

	// TakeMessages takes the messages that are done out of the box, by number, and
	// returns those that are left, oldest first, MaxLetters at most. A box
	// has one reader at a time.
	TakeMessages(ctx context.Context, box string, done []int64) ([]NodeMessage, error)
}

// MaxLetters is how many letters are taken at once.
const MaxLetters = 256
