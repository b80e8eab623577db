package http1

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
)

// Body is the body of a response. The connection belongs to it until it was
// read to its end or closed. Close may be called while another goroutine reads.
type Body struct {
	t      *Transport
	c      *conn
	resp   *http.Response
	stop   func() bool // the watch over the context
	chunks io.Reader   // nil unless chunked
	left   int64       // without chunks

	detached bool

	ended atomic.Pointer[error] // what further reads return
}

// newChunks reads a chunked body up to its last chunk, and leaves the trailer.
func newChunks(r *bufio.Reader) io.Reader { return httputil.NewChunkedReader(r) }

// Detach parts the body from the context of its request: what is left can be
// read after the context has ended. It must not be called while the body is
// read or closed.
func (b *Body) Detach() {
	watched := b.stop()
	b.stop = func() bool { return watched }
	b.detached = true
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	if err := b.ended.Load(); err != nil {
		return 0, *err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if b.chunks != nil {
		n, err := b.chunks.Read(p)
		if errors.Is(err, io.EOF) {
			err = b.readTrailer()
		}
		return n, b.check(err, err == io.EOF)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.c.r.Read(p)
	b.left -= int64(n)
	switch {
	case b.left == 0:
		return n, b.check(io.EOF, true)
	case errors.Is(err, io.EOF) && b.resp.ContentLength >= 0:
		err = io.ErrUnexpectedEOF
	}
	return n, b.check(err, false)
}

// readTrailer reads what follows the last chunk and returns io.EOF.
func (b *Body) readTrailer() error {
	b.c.limit = b.t.maxHeader()
	trailer, err := b.c.text.ReadMIMEHeader()
	if err != nil {
		return b.c.headError(err)
	}
	if len(trailer) > 0 {
		b.resp.Trailer = http.Header(trailer)
	}
	return io.EOF
}

// check ends the body with the error of a read. whole says that the response
// was read to its end.
func (b *Body) check(err error, whole bool) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, io.EOF) && !b.detached {
		if ended := b.resp.Request.Context().Err(); ended != nil {
			err = ended
		}
	}
	b.finish(whole, err)
	return err
}

var (
	errClosed = errors.New("the body of the response is closed")
	atEnd     = io.EOF // never changed
)

// Close gives up what was not read, and the connection with it.
func (b *Body) Close() error {
	if b.ended.Load() == nil {
		b.finish(false, errClosed)
	}
	return nil
}

// finish parts the body from its connection, once. It may be called while
// another goroutine reads.
func (b *Body) finish(whole bool, err error) {
	end := &atEnd
	if err != io.EOF { // which every body that was read has
		failed := err
		end = &failed
	}
	if !b.ended.CompareAndSwap(nil, end) {
		return
	}
	if watching := b.stop(); watching && whole && !b.resp.Close && b.c.r.Buffered() == 0 {
		b.t.put(b.c)
		return
	}
	b.c.close()
}
