package http1

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// conn is a connection to a server. It is used by one request at a time.
type conn struct {
	nc     net.Conn
	raw    syscall.RawConn // nil if the socket cannot be peeked
	remote net.Addr
	key    string
	r      *bufio.Reader
	text   textproto.Reader
	out    []byte // buffer for the request
	limit  int64  // number of bytes that may still be read
	reused bool
	began  time.Time     // start of its last request; the server's idle timeout starts later
	hint   time.Duration // timeout in the server's Keep-Alive header; 0 if there is none

	end    func()                // c.close
	look   func(fd uintptr) bool // c.peek
	silent bool                  // result of peek
}

func (c *conn) close() { c.nc.Close() } // errors do not matter for an abandoned connection

var errHeadTooLarge = errors.New("the head of the response is too large")

// limited reads from the connection up to its limit.
type limited conn

func (l *limited) Read(p []byte) (int, error) {
	if l.limit <= 0 {
		return 0, errHeadTooLarge
	}
	if int64(len(p)) > l.limit {
		p = p[:l.limit]
	}
	n, err := l.nc.Read(p)
	l.limit -= int64(n)
	return n, err
}

// isQuiet reports whether the idle connection is open and has no unread data:
// unsolicited data might be taken for the response to the next request.
func (c *conn) isQuiet() bool {
	c.silent = false
	return c.r.Buffered() == 0 && c.raw != nil && c.raw.Read(c.look) == nil && c.silent
}

// peek is called with the connection's socket.
func (c *conn) peek(fd uintptr) bool {
	c.silent = hasNoInput(fd)
	return true
}

// maxKeptOutput is the maximum size of a request buffer that a connection
// keeps.
const maxKeptOutput = 8 << 10

// roundTrip writes a request and reads the head of its response.
func (c *conn) roundTrip(r *http.Request, body io.Reader, maxHeader int64) (*http.Response, error) {
	out, err := appendRequest(c.out[:0], r, body)
	if err != nil {
		return nil, err
	}
	if cap(out) <= maxKeptOutput {
		c.out = out
	}
	if n, err := c.nc.Write(out); err != nil {
		return nil, &staleError{err: err, written: n > 0}
	}
	c.limit = maxHeader
	if _, err := c.r.Peek(1); err != nil {
		return nil, &staleError{err: err, written: true}
	}
	resp, err := c.readHead(r)
	c.limit = math.MaxInt64
	return resp, err
}

// appendRequest appends the request in wire format, with body instead of
// r.Body.
func appendRequest(dst []byte, r *http.Request, body io.Reader) ([]byte, error) {
	uri := r.URL.RequestURI()
	for i := range len(uri) {
		if uri[i] <= ' ' || uri[i] == 0x7f {
			return nil, fmt.Errorf("the path %q of the request holds a space or a control character", uri)
		}
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	if !isToken(method) {
		return nil, fmt.Errorf("invalid method %q", method)
	}
	dst = append(append(append(dst, method...), ' '), uri...)
	dst = append(append(append(dst, " HTTP/1.1\r\nHost: "...), r.URL.Host...), "\r\n"...)
	for name, values := range r.Header {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
			continue
		}
		if !isToken(name) {
			return nil, fmt.Errorf("invalid header field name %q", name)
		}
		for _, value := range values {
			if !validValue(value) {
				return nil, fmt.Errorf("invalid header field value for %q", name) // the value may be secret
			}
			dst = append(append(dst, name...), ": "...)
			dst = append(append(dst, strings.Trim(value, " \t")...), "\r\n"...)
		}
	}
	hasBody := r.Body != nil && r.Body != http.NoBody
	if hasBody || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		dst = append(dst, "Content-Length: "...)
		dst = append(strconv.AppendInt(dst, r.ContentLength, 10), "\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	if !hasBody {
		return dst, nil
	}
	return appendBody(dst, body, int(r.ContentLength))
}

// appendBody appends exactly n bytes.
func appendBody(dst []byte, body io.Reader, n int) ([]byte, error) {
	start, end := len(dst), len(dst)+n
	if cap(dst) <= end { // one more byte, to detect a body that is too long
		dst = append(make([]byte, 0, end+1), dst...)
	}
	if _, err := io.ReadFull(body, dst[start:end]); err != nil {
		return nil, fmt.Errorf("read the body of the request: %w", err)
	}
	if extra, _ := body.Read(dst[end : end+1]); extra > 0 {
		return nil, fmt.Errorf("the body of the request is longer than its Content-Length of %d bytes", n)
	}
	return dst[:end], nil
}

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

func validValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
