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
// response's goroutine writes. A caller that lost its connection resumes the
// stream from what the log still has.
type eventStream struct {
	id       string
	keep     bool                    // events stay for a replay, and carry ids
	standing bool                    // belongs to the session rather than to a request
	plain    bool                    // the caller takes no event stream: answers alone
	limit    streamLimit             // of what waits to be read and of what is kept
	answered func(mcp.ID)            // called for every response; may be nil
	status   func(*mcp.Message) int  // the HTTP status of a plain answer; nil means 200
	stop     context.CancelCauseFunc // ends the calls of the stream; nil when standing
	memory   *tool.ResultMemory      // of the answer; nil for none
	drops    atomic.Int64            // notifications that the reader was too slow for

	mu      sync.Mutex
	events  []event
	room    [1]event // of events, as a rule
	first   int      // the number of events[0]; the first event of all is 1
	bytes   int
	next    int // the number of the event to be written next
	open    int // answers still to come
	ended   bool
	reader  int // which reader the stream belongs to; a newer one takes over
	wake    chan struct{}
	early   *response   // to be written from the first message on that is not an answer; nil for none
	onEvent func()      // called too, when a hijacked connection reads the stream
	grace   *time.Timer // runs while the stream is kept for a caller that may take it up again

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

// Bounds of a stream's log. Answers are never dropped; the bounds concern
// notifications to a slow reader, and what is kept for a replay. Questions have
// a bound of their own.
var (
	callLimit       = streamLimit{events: 1024, bytes: 4 << 20}
	standaloneLimit = streamLimit{events: 128, bytes: 256 << 10}
)

const (
	standaloneStream = "own"
	maxReplay        = 16       // finished streams of one session that can be replayed
	replayBytes      = 64 << 20 // of all finished streams that a server keeps for a replay
	maxQuestionBytes = 16 << 20 // of the questions that wait for a reader; one alone may be larger
	firstNumber      = 1
	firstReader      = 1
)

// newEventStream makes the stream of a POST with that many requests. Its reader
// is firstReader until another one attaches.
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

// answer implements outlet. The id is free before the answer can be read:
// some clients use one id for all their requests.
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
		return true, nil // "the list has changed" is no news twice
	}
	if !reply && !s.fits(waiting, &e) {
		if !e.question { // whose sender is told
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

// fits reports whether a notification or a question may wait behind others. A
// question waits for its answer, so notifications leave it room.
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

// trim forgets written events that need not or cannot be kept.
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

// end closes the stream, whatever is still open.
func (s *eventStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.grace != nil {
		s.grace.Stop()
	}
	s.signal()
}

// attach makes the caller the one reader of the stream, from the event after
// number on. A previous reader finds its number replaced. ok is false when
// events after number are no longer kept.
func (s *eventStream) attach(number int) (reader int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == 0 {
		s.first, s.next = firstNumber, firstNumber
	}
	if number+1 < s.first || number >= s.first+len(s.events) {
		return 0, false
	}
	if s.grace != nil && !s.ended { // a finished stream expires while it is read again
		s.grace.Stop()
		s.grace = nil
	}
	s.onDetachedEnd = nil
	s.reader++
	s.next = number + 1
	close(s.wake) // the old reader finds its number gone
	s.wake = make(chan struct{}, 1)
	if s.onEvent != nil {
		s.onEvent()
		s.onEvent = nil
	}
	s.signal()
	return s.reader, true
}

// unread returns the number of the last event that was written.
func (s *eventStream) unread() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.next-1)
}

// eventBatch is what a reader has to write now.
type eventBatch struct {
	events []event
	number int // of the first of them
	ended  bool
	lost   bool // another reader has taken over
	wake   <-chan struct{}
}

// take returns what reader has not written yet. Events count as written when
// they have been taken; a write that fails loses the connection anyway, and
// the caller names the last event that it saw.
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
	b.events, s.events, s.bytes, s.first = unread, nil, 0, s.next // nobody reads them again
	return b
}

// detach removes the reader. It calls f after the grace period unless another
// reader attaches first, and onEnd when the stream ends before that, or at once
// if it has ended.
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

// eventID names an event of a stream for Last-Event-ID.
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
// returns false when the stream has been dropped already. onForget is called
// when the stream is dropped, by expire or before.
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

// forget stops the timer that would hold the stream in memory until it fires.
func (s *eventStream) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten = true
	s.drop()
}

// drop ends what keepFor began. s.mu is held.
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

// forgetStream drops a stream that needs no replay any more.
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

// find returns the session's stream of that id, or nil.
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
