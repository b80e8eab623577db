// Package httpstream writes streaming responses: server-sent events or JSON
// lines.
//
// Each message is flushed immediately, and sending never blocks the sender. The
// buffer for a client that does not read is bounded; when it is full, the
// stream is aborted. The header is written with the first message, so that an
// earlier failure is still a plain HTTP error.
package httpstream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Format is the format of a stream.
type Format string

// The formats. None means that the client does not want a stream.
const (
	None   Format = ""
	Events Format = "text/event-stream"
	Lines  Format = "application/x-ndjson"
)

// Accepted returns the format that the request's Accept header asks for.
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

// Limits of the buffer for a slow client, and intervals.
const (
	maxPieces         = 4096
	maxBytes          = 8 << 20
	writeTimeout      = 30 * time.Second
	keepAliveInterval = 15 * time.Second
)

// errSlowClient is the cause with which a stream is cancelled whose client does
// not read.
var errSlowClient = errors.New("the client does not read fast enough")

// Stream is one streaming response. It is safe for concurrent use.
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

// New returns a Stream that writes to w, and a context that is cancelled with
// ctx or when the stream fails. Nothing is written before the first Send. End
// must be called.
func New(ctx context.Context, w http.ResponseWriter, format Format) (*Stream, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &Stream{w: w, format: format, cancel: cancel, wake: make(chan struct{}, 1), done: make(chan struct{})}, ctx
}

// Started reports whether Send was called; an HTTP error can then no longer be
// sent.
func (s *Stream) Started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// Send queues one JSON value, as an event of that name. It does not wait for
// the client.
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

// frame encodes a message in the format of the stream. Line breaks, which JSON
// allows only between tokens, are replaced by spaces. All other bytes are
// unchanged, even invalid UTF-8.
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

// End waits until all queued messages are written or the stream has failed.
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

// run writes queued messages until the stream ends.
func (s *Stream) run() {
	defer close(s.done)
	h := s.w.Header()
	h.Set("Content-Type", string(s.format))
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // otherwise a proxy may buffer the stream
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

// take removes and returns the queued messages.
func (s *Stream) take() (batch [][]byte, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch, s.pieces, s.bytes = s.pieces, nil, 0
	return batch, s.ended
}

// sendKeepAlive queues a comment, so that proxies do not close an idle stream
// of events.
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

// fail aborts the stream after a write error.
func (s *Stream) fail(err error) {
	s.mu.Lock()
	s.ended, s.pieces, s.bytes = true, nil, 0
	s.mu.Unlock()
	s.cancel(err)
}
