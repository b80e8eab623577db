package app

import (
	"io"
	"net"
	"net/http"
	"time"

	"junctor/internal/upstream"
)

// pace is how long a client may take: to send a whole body, and to read one
// write of an answer. A stream may last for ever, but not a line on which
// nothing moves.
type pace struct{ body, write time.Duration }

// usual is enough for 16 MiB over a line of 2 Mbit/s.
var usual = pace{body: time.Minute, write: time.Minute}

// hurry lets no client hold a connection by doing next to nothing: a body that
// trickles in is cut off, and so is an answer that is not read.
func (p pace) hurry(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.Body != nil && r.Body != http.NoBody {
			// The deadline must end with the body: after it the server waits
			// on the same line for the client to go away, and would take the
			// deadline for that.
			if control.SetReadDeadline(time.Now().Add(p.body)) == nil {
				r.Body = &timedBody{ReadCloser: r.Body, control: control}
			}
		}
		next.ServeHTTP(&timedWriter{ResponseWriter: w, control: control, within: p.write}, r)
		_ = control.SetWriteDeadline(time.Now().Add(p.write)) // for what the server has yet to send
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
}

// Unwrap lets http.ResponseController and WebSocket upgrades through.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *timedWriter) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.within))
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *timedWriter) Flush() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.within))
	_ = w.control.Flush() // the next write says what is wrong
}

// FlushError lets http.ResponseController say what is wrong at once.
func (w *timedWriter) FlushError() error {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.within))
	return w.control.Flush()
}

// forward lets upstreams know the address of the caller, where their
// configuration has them told. Headers that say who a request was forwarded
// for are not believed: anyone can write them.
func forward(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			r = r.WithContext(upstream.WithClientIP(r.Context(), host))
		}
		next.ServeHTTP(w, r)
	})
}
