// Package httpstream writes answers that come in pieces: server-sent events
// or JSON lines.
//
// It promises that a piece leaves as soon as it is sent, that sending never
// blocks the sender, and that a client which does not read is cut off at a
// bounded buffer instead of growing one. The answer's header is written with
// the first piece, so that a failure before it is still a plain HTTP error.
package httpstream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Format is the form of a stream.
type Format string

// The forms. None means that the client wants one answer in one piece.
const (
	None   Format = ""
	Events Format = "text/event-stream"
	Lines  Format = "application/x-ndjson"
)

// Accepted returns the form that the request's Accept header asks for.
func Accepted(r *http.Request) Format {
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	switch {
	case strings.Contains(accept, string(Events)):
		return Events
	case strings.Contains(accept, string(Lines)), strings.Contains(accept, "application/jsonl"):
		return Lines
	}
	return None
}

// Bounds of what waits for a slow reader.
const (
	maxPieces         = 4096
	maxBytes          = 8 << 20
	writeTimeout      = 30 * time.Second
	keepAliveInterval = 15 * time.Second
)

// errSlowClient is the cause with which a stream is cut off whose client does not
// read.
var errSlowClient = errors.New("the client does not read fast enough")

// Stream is one answer in pieces. It is safe for concurrent use.
type Stream struct {
	w      http.ResponseWriter
	format Format
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	pieces  [][]byte
	bytes   int
	ended   bool
	started bool
	wake    chan struct{}
	done    chan struct{}
}

// New returns a Stream that answers on w, and a context that ends with ctx or
// when the stream is cut off. Nothing is written before the first Send. End
// must be called.
func New(ctx context.Context, w http.ResponseWriter, format Format) (*Stream, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &Stream{w: w, format: format, cancel: cancel, wake: make(chan struct{}, 1), done: make(chan struct{})}, ctx
}

// Started reports whether something was sent: the time for an HTTP error is
// then over.
func (s *Stream) Started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// Send puts one JSON value into the stream, as an event of that name. It does
// not wait for the client.
func (s *Stream) Send(event string, data []byte) {
	piece := s.frame(event, data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	if len(s.pieces) >= maxPieces || s.bytes+len(piece) > maxBytes && s.bytes > 0 {
		s.ended = true
		s.cancel(errSlowClient)
		return
	}
	s.pieces = append(s.pieces, piece)
	s.bytes += len(piece)
	if !s.started {
		s.started = true
		go s.run()
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// frame writes a piece as it goes over the wire. A JSON value has no raw line
// breaks but between its tokens, where a space means the same; all other bytes
// stay as they are, even those that are no UTF-8.
func (s *Stream) frame(event string, data []byte) []byte {
	b := make([]byte, 0, len(event)+len(data)+20)
	if s.format == Events {
		b = append(b, "event: "...)
		b = append(b, event...)
		b = append(b, "\ndata: "...)
	}
	start := len(b)
	b = append(b, data...)
	for i, c := range b[start:] {
		if c == '\n' || c == '\r' {
			b[start+i] = ' '
		}
	}
	if s.format == Events {
		b = append(b, '\n')
	}
	return append(b, '\n')
}

// End waits until everything sent has left, or the client was given up.
func (s *Stream) End() {
	s.mu.Lock()
	s.ended = true
	started := s.started
	s.mu.Unlock()
	if started {
		select {
		case s.wake <- struct{}{}:
		default:
		}
		<-s.done
	}
	s.cancel(nil)
}

// run writes what is sent until the stream ends.
func (s *Stream) run() {
	defer close(s.done)
	h := s.w.Header()
	h.Set("Content-Type", string(s.format))
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // or a proxy in between holds the pieces back
	s.w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(s.w)
	alive := time.NewTicker(keepAliveInterval)
	defer alive.Stop()
	for {
		batch, ended := s.take()
		if len(batch) > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
			for _, piece := range batch {
				if _, err := s.w.Write(piece); err != nil {
					s.fail(err)
					return
				}
			}
			if err := control.Flush(); err != nil {
				s.fail(err)
				return
			}
			continue
		}
		if ended {
			return
		}
		select {
		case <-s.wake:
		case <-alive.C:
			s.sendKeepAlive()
		}
	}
}

// take returns what waits to be written.
func (s *Stream) take() (batch [][]byte, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch, s.pieces, s.bytes = s.pieces, nil, 0
	return batch, s.ended
}

// sendKeepAlive keeps proxies from closing a silent stream of events.
func (s *Stream) sendKeepAlive() {
	if s.format != Events {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended && len(s.pieces) == 0 {
		s.pieces = append(s.pieces, []byte(": alive\n\n"))
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// fail ends the stream of a client that cannot be written to.
func (s *Stream) fail(err error) {
	s.mu.Lock()
	s.ended, s.pieces, s.bytes = true, nil, 0
	s.mu.Unlock()
	s.cancel(err)
}
