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
		both := &struct { // in one allocation
			body   timedBody
			writer timedWriter
		}{writer: timedWriter{ResponseWriter: w, within: t.write}}
		timed := &both.writer
		timed.conn, _ = w.(deadlines)
		if r.Body != nil && r.Body != http.NoBody && timed.conn != nil {
			// The deadline must end with the body: after it the server reads
			// from the connection to notice that the client has gone, and
			// would take the deadline for that.
			if timed.conn.SetReadDeadline(time.Now().Add(t.body)) == nil {
				both.body = timedBody{ReadCloser: r.Body, conn: timed.conn}
				r.Body = &both.body
			}
		}
		next.ServeHTTP(timed, r)
		timed.extend() // for what the server has yet to send
	})
}

// deadlines are those of the connection of a [http.ResponseWriter].
type deadlines interface {
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// timedBody lifts the deadline when the body has been read.
type timedBody struct {
	io.ReadCloser
	conn  deadlines
	ended bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.ended {
		b.ended = true
		_ = b.conn.SetReadDeadline(time.Time{}) // a line that is gone says so elsewhere
	}
	return n, err
}

// timedWriter gives every write its time.
type timedWriter struct {
	http.ResponseWriter
	conn   deadlines // nil if the writer has none
	within time.Duration
	set    time.Time // when the deadline was set; guarded by the rule that one goroutine writes
}

// extend sets the deadline of the next write. One that was set a moment ago
// stays: setting it costs as much as a small write.
func (w *timedWriter) extend() {
	now := time.Now()
	if w.conn == nil || now.Sub(w.set) < w.within/64 {
		return
	}
	w.set = now
	_ = w.conn.SetWriteDeadline(now.Add(w.within)) // a broken connection fails the write
}

// SetWriteDeadline lets a handler set another deadline, until the next write.
func (w *timedWriter) SetWriteDeadline(at time.Time) error {
	if w.conn == nil {
		return http.ErrNotSupported
	}
	w.set = time.Time{}
	return w.conn.SetWriteDeadline(at)
}

// WriteHeader dates the response.
func (w *timedWriter) WriteHeader(status int) {
	w.Header()["Date"] = dateAt(time.Now())
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController and WebSocket upgrades through.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *timedWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *timedWriter) Flush() {
	_ = w.FlushError() // the next write says what is wrong
}

// FlushError lets http.ResponseController say what is wrong at once.
func (w *timedWriter) FlushError() error {
	w.extend()
	return http.NewResponseController(w.ResponseWriter).Flush()
}
