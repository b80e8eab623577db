package mcpserver

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// eventStream is a bounded log of the messages for one HTTP response, which the
// response's goroutine writes. A caller that lost its connection can resume the
// stream as far as its events are still in the log.
type eventStream struct {
	id       string
	keep     bool                    // events are kept for a replay and have ids
	standing bool                    // it is the standalone stream of a session
	plain    bool                    // the caller accepts no event stream, only responses
	limit    streamLimit             // of the unread and the kept events
	answered func(mcp.ID)            // called for every response; may be nil
	status   func(*mcp.Message) int  // returns the HTTP status of a plain response; nil means 200
	stop     context.CancelCauseFunc // ends the calls of the stream; nil when standing
	memory   *tool.ResultMemory      // of the response; nil for none
	drops    atomic.Int64            // notifications dropped because the reader was too slow

	mu      sync.Mutex
	events  []event
	room    [1]event // backs events in the common case
	first   int      // the number of events[0]; the first event of the stream is 1
	bytes   int
	next    int // the number of the event to be written next
	open    int // pending responses
	ended   bool
	reader  int // the current reader; a newer one takes over
	wake    chan struct{}
	early   *response   // to be written as soon as a message other than a response is added; nil for none
	onEvent func()      // called instead of using wake, if a hijacked connection reads the stream
	grace   *time.Timer // runs while the stream is kept for a caller that may resume it

	forgotten bool
	onForget  func() // called once, when the stream is dropped from its session; may be nil
	// onDetachedEnd is called when the last response is added while the stream
	// has no reader.
	onDetachedEnd func()
}

type event struct {
	data     mcp.Encoded
	reply    bool
	question bool
	status   int
}

type streamLimit struct{ events, bytes int }

// Bounds of a stream's log. They apply to notifications to a slow reader and to
// events that are kept for a replay. Responses are never dropped, and questions
// have a separate bound.
var (
	callLimit       = streamLimit{events: 1024, bytes: 4 << 20}
	standaloneLimit = streamLimit{events: 128, bytes: 256 << 10}
)

const (
	standaloneStream = "own"
	maxReplay        = 16       // finished streams of one session that can be replayed
	replayBytes      = 64 << 20 // of all finished streams that a server keeps for a replay
	maxQuestionBytes = 16 << 20 // of the unread questions of a stream; a single one may be larger
	firstNumber      = 1
	firstReader      = 1
)

// newEventStream returns the stream of a POST with open requests. Its reader is
// firstReader until another one attaches.
func newEventStream(id string, keep bool, open int) *eventStream {
	s := &eventStream{id: id, keep: keep, open: open, limit: callLimit, wake: make(chan struct{}, 1), first: firstNumber, next: firstNumber}
	s.events, s.reader = s.room[:0], firstReader
	return s
}

// put implements outlet.
func (s *eventStream) put(m *mcp.Message) bool {
	taken, _ := s.add(m, false)
	return taken
}

// answer implements outlet. It releases the id before the response can be read,
// because some clients use the same id for all requests.
func (s *eventStream) answer(m *mcp.Message) {
	if s.answered != nil {
		s.answered(m.ID)
	}
	if _, onEnd := s.add(m, true); onEnd != nil {
		onEnd()
	}
}

// add appends a message, unless it is dropped. onEnd is the function to call when
// the message was the last one and the stream has no reader, and otherwise nil.
func (s *eventStream) add(m *mcp.Message, reply bool) (taken bool, onEnd func()) {
	data := mcp.Encode(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.plain && !reply {
		return false, nil
	}
	if s.first == 0 {
		s.first, s.next = firstNumber, firstNumber
	}
	waiting := s.events[min(len(s.events), max(0, s.next-s.first)):]
	e := event{data: data, reply: reply, question: !reply && m.ID != "", status: http.StatusOK}
	if s.standing && m.ID == "" && contains(waiting, data) {
		return true, nil // a list_changed that is unread is not repeated
	}
	if !reply && !s.fits(waiting, &e) {
		if !e.question { // the sender of a question gets an error
			s.drops.Add(1)
		}
		return false, nil
	}
	if reply && s.status != nil {
		e.status = s.status(m)
	}
	s.events = append(s.events, e)
	s.bytes += data.Size()
	if reply {
		s.open--
	} else if s.early != nil {
		s.early.writeEarly(false)
	}
	if !s.standing && s.open <= 0 {
		s.ended = true
		onEnd, s.onDetachedEnd = s.onDetachedEnd, nil
	}
	s.trim()
	s.signal()
	return true, onEnd
}

// fits reports whether a notification or a question may be added to the unread
// events. Only questions count towards the limit of questions, because a call
// waits for each of them.
func (s *eventStream) fits(waiting []event, e *event) bool {
	size := 0
	for _, other := range waiting {
		if other.question || !e.question {
			size += other.data.Size()
		}
	}
	if e.question {
		return size == 0 || size+e.data.Size() <= maxQuestionBytes
	}
	return len(waiting) < s.limit.events && size+e.data.Size() <= s.limit.bytes
}

func contains(events []event, data mcp.Encoded) bool {
	for _, e := range events {
		if bytes.Equal(e.data.Head, data.Head) && bytes.Equal(e.data.Body, data.Body) {
			return true
		}
	}
	return false
}

// trim drops written events that need not or cannot be kept.
func (s *eventStream) trim() {
	for len(s.events) > 0 && s.first < s.next &&
		(!s.keep || len(s.events) > s.limit.events || s.bytes > s.limit.bytes) {
		s.bytes -= s.events[0].data.Size()
		s.events[0] = event{}
		s.events = s.events[1:]
		s.first++
	}
	if len(s.events) == 0 {
		s.events = nil
	}
}

func (s *eventStream) signal() {
	if s.onEvent != nil {
		s.onEvent()
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// end closes the stream, even if responses are pending.
func (s *eventStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.grace != nil {
		s.grace.Stop()
	}
	s.signal()
}

// attach makes the caller the only reader of the stream, starting after event
// number. It replaces the previous reader. ok is false if the events after
// number are not available.
func (s *eventStream) attach(number int) (reader int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == 0 {
		s.first, s.next = firstNumber, firstNumber
	}
	if number+1 < s.first || number >= s.first+len(s.events) {
		return 0, false
	}
	if s.grace != nil && !s.ended { // the timer of a finished stream keeps running while it is read again
		s.grace.Stop()
		s.grace = nil
	}
	s.onDetachedEnd = nil
	s.reader++
	s.next = number + 1
	close(s.wake) // wakes the old reader, which notices that it was replaced
	s.wake = make(chan struct{}, 1)
	if s.onEvent != nil {
		s.onEvent()
		s.onEvent = nil
	}
	s.signal()
	return s.reader, true
}

// lastWritten returns the number of the last event that was written.
func (s *eventStream) lastWritten() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.next-1)
}

// eventBatch contains the events that a reader has to write now.
type eventBatch struct {
	events []event
	number int // of the first of them
	ended  bool
	lost   bool // another reader has taken over
	wake   <-chan struct{}
}

// take returns the events that reader has not written yet. Events count as
// written once they were taken: after a failed write the connection is lost
// anyway, and a caller that resumes the stream names the last event that it
// received.
func (s *eventStream) take(reader int) eventBatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reader != s.reader {
		return eventBatch{lost: true}
	}
	b := eventBatch{number: s.next, ended: s.ended, wake: s.wake}
	unread := s.events[min(len(s.events), s.next-s.first):]
	if len(unread) == 0 {
		return b
	}
	s.next += len(unread)
	if s.keep {
		b.events = slices.Clone(unread)
		s.trim()
		return b
	}
	b.events, s.events, s.bytes, s.first = unread, nil, 0, s.next // they cannot be replayed
	return b
}

// detach removes the reader. It calls f after the grace period unless another
// reader attaches first. It calls onEnd when the stream ends before that, or
// immediately if it has ended.
func (s *eventStream) detach(reader int, grace time.Duration, f, onEnd func()) {
	s.mu.Lock()
	ended := s.ended
	if reader == s.reader && !ended {
		s.reader++
		s.grace = time.AfterFunc(grace, f)
		s.onDetachedEnd = onEnd
	}
	s.mu.Unlock()
	if ended {
		onEnd()
	}
}

// eventID returns the id of an event, as used in Last-Event-ID.
func eventID(stream string, number int) string { return stream + "_" + strconv.Itoa(number) }

func parseEventID(id string) (stream string, number int, ok bool) {
	i := strings.LastIndexByte(id, '_')
	if i <= 0 {
		return "", 0, false
	}
	number, err := strconv.Atoi(id[i+1:])
	if err != nil || number < 0 {
		return "", 0, false
	}
	return id[:i], number, true
}

// remember keeps a stream so that it can be resumed, and drops the oldest
// finished ones.
func (s *Session) remember(st *eventStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; len(s.streams) >= maxReplay && i < len(s.streams); {
		if old := s.streams[i]; old.finished() {
			old.forget()
			s.streams = append(s.streams[:i:i], s.streams[i+1:]...)
			continue
		}
		i++
	}
	s.streams = append(s.streams, st)
}

func (s *eventStream) finished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// keepFor keeps a finished stream for a replay and calls expire after d. It
// returns false if the stream was already dropped. onForget is called when the
// stream is dropped, by expire or before.
func (s *eventStream) keepFor(d time.Duration, expire, onForget func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten {
		return false
	}
	s.drop()
	s.onForget = onForget
	s.grace = time.AfterFunc(d, expire)
	return true
}

// forget drops the stream. It stops the timer, which would otherwise keep the
// stream in memory until it fires.
func (s *eventStream) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten = true
	s.drop()
}

// drop stops the timer and calls onForget. s.mu is held.
func (s *eventStream) drop() {
	if s.grace != nil {
		s.grace.Stop()
	}
	if s.onForget != nil {
		s.onForget()
		s.onForget = nil
	}
}

// size returns the bytes of the events that the stream holds.
func (s *eventStream) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// forgetStream drops a stream that no longer needs to be replayed.
func (s *Session) forgetStream(st *eventStream) {
	st.forget()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.streams {
		if other == st {
			s.streams = append(s.streams[:i:i], s.streams[i+1:]...)
			break
		}
	}
	if len(s.streams) == 0 {
		s.streams = nil
	}
}

// findStream returns the session's stream with the id, or nil.
func (s *Session) findStream(id string) *eventStream {
	if own, ok := s.standalone.(*eventStream); ok && own.id == id {
		return own
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		if st.id == id {
			return st
		}
	}
	return nil
}
