package httpserver

import (
	"io"
	"net/http"
	"time"
)

// timeouts are how long a client may take to send a whole body, and to read
// one write of a response. A stream may last for any time, but not a
// connection on which nothing moves.
type timeouts struct{ body, write time.Duration }

// defaultTimeouts are enough for 16 MiB at 2 Mbit/s.
var defaultTimeouts = timeouts{body: time.Minute, write: time.Minute}

// wrap sets a read deadline for the request body and a write deadline for each
// response write, so that slow clients cannot hold connections.
func (t timeouts) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.Body != nil && r.Body != http.NoBody {
			// The deadline must end with the body: after it the server reads
			// from the connection to notice that the client has gone, and
			// would take the deadline for that.
			if control.SetReadDeadline(time.Now().Add(t.body)) == nil {
				r.Body = &timedBody{ReadCloser: r.Body, control: control}
			}
		}
		timed := &timedWriter{ResponseWriter: w, control: control, within: t.write}
		next.ServeHTTP(timed, r)
		timed.extend() // for what the server has yet to send
	})
}

// timedBody lifts the deadline when the body has been read.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	ended   bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.ended {
		b.ended = true
		_ = b.control.SetReadDeadline(time.Time{}) // a line that is gone says so elsewhere
	}
	return n, err
}

// timedWriter gives every write its time.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
	set     time.Time // when the deadline was set; guarded by the rule that one goroutine writes
}

// extend sets the deadline of the next write. One that was set a moment ago
// stays: setting it costs as much as a small write.
func (w *timedWriter) extend() {
	now := time.Now()
	if now.Sub(w.set) < w.within/64 {
		return
	}
	w.set = now
	_ = w.control.SetWriteDeadline(now.Add(w.within)) // a broken connection fails the write
}

// SetWriteDeadline lets a handler set another deadline, until the next write.
func (w *timedWriter) SetWriteDeadline(at time.Time) error {
	w.set = time.Time{}
	return w.control.SetWriteDeadline(at)
}

// Unwrap lets http.ResponseController and WebSocket upgrades through.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *timedWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *timedWriter) Flush() {
	w.extend()
	_ = w.control.Flush() // the next write says what is wrong
}

// FlushError lets http.ResponseController say what is wrong at once.
func (w *timedWriter) FlushError() error {
	w.extend()
	return w.control.Flush()
}
