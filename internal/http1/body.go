package http1

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
)

// Body is the body of a response. It owns the connection until it was read to
// its end or closed. Close may be called concurrently with Read.
type Body struct {
	t      *Transport
	c      *conn
	resp   *http.Response
	stop   func() bool // stops watching the context
	chunks io.Reader   // nil unless chunked
	left   int64       // unread bytes; not used if chunked

	detached bool

	ended atomic.Pointer[error] // error of further reads; nil while open
}

// newChunks reads a chunked body including the last chunk, but not the
// trailer.
func newChunks(r *bufio.Reader) io.Reader { return httputil.NewChunkedReader(r) }

// Detach detaches the body from the context of its request: the rest can be
// read after the context is done. It must not be called concurrently with Read
// or Close.
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

// readTrailer reads the trailer after the last chunk and returns io.EOF.
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

// check ends the body if a read returned an error. whole reports that the
// response was read to its end.
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
	atEnd     = io.EOF // never modified
)

// Close closes the body. If it was not read to its end, the connection is
// closed, too.
func (b *Body) Close() error {
	if b.ended.Load() == nil {
		b.finish(false, errClosed)
	}
	return nil
}

// finish detaches the body from its connection, once. It may be called
// concurrently with Read.
func (b *Body) finish(whole bool, err error) {
	end := &atEnd
	if err != io.EOF { // shared by all bodies that were read to their end
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
