package mcp

import (
	"errors"
	"io"
	"sync"
)

// Link is one ordered connection that carries messages both ways. One goroutine
// may call Receive and another Send. Close may be called from any goroutine and
// ends both.
type Link interface {
	// Receive returns the next message. A *DecodeError concerns only one
	// message, and the link can still be used. Any other error is final; it is
	// io.EOF if the other side closed the link.
	Receive() (Message, error)
	Send(*Message) error
	Close() error
}

// ErrClosed is the error of a connection that this side has closed.
var ErrClosed = errors.New("connection closed")

// StreamOptions configure a [Stream]. The zero value means MCP's stdio framing
// with the default limits.
type StreamOptions struct {
	Framing Framing
	Limits  Limits

	// OnDrop is called for output that is not a message and for messages that
	// are too large. It must not block.
	OnDrop func(DroppedInput)

	// EndFloods ends the connection if the other side keeps writing output
	// that is not a message.
	EndFloods bool

	// Close closes the connection. If it is nil, the writer and the reader are
	// closed if they are io.Closers.
	Close func() error
}

// Stream is a Link over a pair of byte streams, such as the pipes of a child
// process.
type Stream struct {
	r      *Reader
	w      *frameWriter
	limits Limits
	queue  []received // the rest of a batch
	onDrop func(DroppedInput)
	close  func() error
	direct tryWriter // nil when writes may block
}

type received struct {
	m   Message
	err error
}

// NewStream makes a Link that reads from r and writes to w.
func NewStream(r io.Reader, w io.Writer, o StreamOptions) *Stream {
	if o.OnDrop == nil {
		o.OnDrop = func(DroppedInput) {}
	}
	s := &Stream{limits: o.Limits.WithDefaults(), w: newFrameWriter(w, o.Framing), onDrop: o.OnDrop}
	s.r = NewReader(r, o.Framing, o.Limits, o.OnDrop)
	s.direct, _ = w.(tryWriter)
	if o.EndFloods {
		s.r.flood = &garbageCounter{limit: floodLimit}
	}
	s.close = sync.OnceValue(func() error {
		if o.Close != nil {
			return o.Close()
		}
		var errs []error
		for _, c := range []any{w, r} {
			if c, ok := c.(io.Closer); ok {
				errs = append(errs, c.Close())
			}
		}
		return errors.Join(errs...)
	})
	return s
}

// Receive implements [Link].
func (s *Stream) Receive() (Message, error) {
	for {
		if len(s.queue) > 0 {
			next := s.queue[0]
			s.queue = s.queue[1:]
			return next.m, next.err
		}
		auto := s.r.framing == FramingAuto
		data, err := s.r.Next()
		if auto {
			s.w.setFraming(s.r.framing)
		}
		if err != nil {
			return Message{}, err
		}
		if len(data) == 0 || data[0] != '[' {
			m, err := Decode(data, s.limits)
			return m, s.countGarbage(err, data)
		}
		DecodeEach(data, s.limits, func(m Message, err error) { s.queue = append(s.queue, received{m, s.countGarbage(err, data)}) })
	}
}

// countGarbage counts invalid input and adds an excerpt of it to the error. Too
// much of it closes the stream.
func (s *Stream) countGarbage(err error, data []byte) error {
	e, broken := errors.AsType[*DecodeError](err)
	if !broken {
		s.r.flood.message()
		return err
	}
	if end := s.r.flood.add(len(data) + strayCost); end != nil {
		return end
	}
	e.drop = DroppedInput{Bytes: len(data), Preview: Preview(data), ID: e.ID}
	return err
}

// Repair sets [Limits].Repair for the stream.
func (s *Stream) Repair() { s.limits.Repair = true }

// ReportDropped calls OnDrop for a message that Receive could not decode.
func (s *Stream) ReportDropped(e *DecodeError) {
	if !e.TooLarge { // those were reported when they were skipped
		s.onDrop(e.drop)
	}
}

// Send implements [Link].
func (s *Stream) Send(m *Message) error { return s.w.writeMessages(m) }

// TrySend sends a message as far as possible without blocking. If only a part
// of it was sent, finish is not nil and must be called before anything else is
// sent. On a stream that cannot write without blocking TrySend sends nothing.
func (s *Stream) TrySend(m *Message) (sent bool, finish func() error, err error) {
	if s.direct == nil {
		return false, nil, nil
	}
	sent, rest, err := s.w.try(s.direct, m)
	if rest != nil {
		finish = func() error { return s.w.finish(rest) }
	}
	return sent, finish, err
}

// SendAll sends several messages with one write.
func (s *Stream) SendAll(messages ...*Message) error { return s.w.writeMessages(messages...) }

// Close implements [Link].
func (s *Stream) Close() error { return s.close() }

// pipeDepth is how many messages a pipe buffers before Send blocks.
const pipeDepth = 64

// Pipe returns the two ends of a connection inside the process. Messages are
// not encoded; neither side may modify the bytes of messages that it sent or
// received.
func Pipe() (a, b *PipeEnd) {
	ab, ba := make(chan Message, pipeDepth), make(chan Message, pipeDepth)
	aDone, bDone := make(chan struct{}), make(chan struct{})
	a = &PipeEnd{in: ba, out: ab, done: aDone, far: bDone}
	b = &PipeEnd{in: ab, out: ba, done: bDone, far: aDone}
	return a, b
}

// PipeEnd is one end of a [Pipe].
type PipeEnd struct {
	in, out   chan Message
	done, far chan struct{}
	once      sync.Once
}

// Receive implements [Link].
func (p *PipeEnd) Receive() (Message, error) {
	select {
	case m := <-p.in:
		return m, nil
	case <-p.done:
		return Message{}, ErrClosed
	case <-p.far:
		select { // deliver messages sent before the far side closed
		case m := <-p.in:
			return m, nil
		default:
			return Message{}, io.EOF
		}
	}
}

// Send implements [Link].
func (p *PipeEnd) Send(m *Message) error {
	select {
	case <-p.done:
		return ErrClosed
	case <-p.far:
		return io.ErrClosedPipe
	default:
	}
	select {
	case p.out <- *m:
		return nil
	case <-p.done:
		return ErrClosed
	case <-p.far:
		return io.ErrClosedPipe
	}
}

// Close implements [Link].
func (p *PipeEnd) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}
