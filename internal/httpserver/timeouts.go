package httpserver

import (
	"io"
	"net/http"
	"time"
)

// timeouts bound how long a client may take to send a whole body, and to read
// one write of a response. The duration of a stream is not bounded, but a
// connection on which nothing moves is closed.
type timeouts struct{ body, write time.Duration }

// defaultTimeouts are sufficient for 16 MiB at 2 Mbit/s.
var defaultTimeouts = timeouts{body: time.Minute, write: time.Minute}

// wrap sets a read deadline for the request body and a write deadline for each
// response write, so that slow clients cannot hold connections.
func (t timeouts) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		both := &struct { // a single allocation
			body   timedBody
			writer timedWriter
		}{writer: timedWriter{ResponseWriter: w, within: t.write}}
		timed := &both.writer
		timed.conn, _ = w.(deadlines)
		if r.Body != nil && r.Body != http.NoBody && timed.conn != nil {
			// The read deadline must be cleared after the body. The server then
			// reads from the connection to detect that the client has
			// disconnected, and would mistake an expired deadline for that.
			if timed.conn.SetReadDeadline(time.Now().Add(t.body)) == nil {
				both.body = timedBody{ReadCloser: r.Body, conn: timed.conn}
				r.Body = &both.body
			}
		}
		next.ServeHTTP(timed, r)
		timed.extend() // for buffered data that the server has yet to send
	})
}

// deadlines are the methods of a [http.ResponseWriter] that set the deadlines
// of its connection.
type deadlines interface {
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// timedBody clears the read deadline when the body has been read.
type timedBody struct {
	io.ReadCloser
	conn  deadlines
	ended bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.ended {
		b.ended = true
		_ = b.conn.SetReadDeadline(time.Time{}) // errors of the connection are reported elsewhere
	}
	return n, err
}

// timedWriter sets a deadline for every write.
type timedWriter struct {
	http.ResponseWriter
	conn   deadlines // nil if the writer has none
	within time.Duration
	set    time.Time // when the deadline was set; not locked, because only one goroutine may write
}

// extend sets the deadline of the next write. A deadline that was set recently
// is kept, because setting it costs as much as a small write.
func (w *timedWriter) extend() {
	now := time.Now()
	if w.conn == nil || now.Sub(w.set) < w.within/64 {
		return
	}
	w.set = now
	_ = w.conn.SetWriteDeadline(now.Add(w.within)) // a broken connection fails the write
}

// SetWriteDeadline lets a handler set another deadline. It applies until the
// next write.
func (w *timedWriter) SetWriteDeadline(at time.Time) error {
	if w.conn == nil {
		return http.ErrNotSupported
	}
	w.set = time.Time{}
	return w.conn.SetWriteDeadline(at)
}

// WriteHeader sets the Date header and writes the header.
func (w *timedWriter) WriteHeader(status int) {
	w.Header()["Date"] = dateAt(time.Now())
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap supports http.ResponseController and WebSocket upgrades.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *timedWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *timedWriter) Flush() {
	_ = w.FlushError() // the next write returns the error
}

// FlushError returns errors to http.ResponseController.
func (w *timedWriter) FlushError() error {
	w.extend()
	return http.NewResponseController(w.ResponseWriter).Flush()
}
