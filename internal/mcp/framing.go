package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/rawjson"
)

// Framing is how messages are distinguished on a byte stream.
type Framing int

// The framings. FramingAuto detects the framing from the first bytes of the
// other side; a frameWriter with it writes lines until the framing is set.
const (
	FramingLines   Framing = iota // one message per line, as in MCP's stdio transport
	FramingHeaders                // Content-Length headers, as in vscode-jsonrpc
	FramingAuto                   // by the first bytes
)

// DroppedInput is input of a stream that was not a message and was discarded.
type DroppedInput struct {
	Bytes    int
	Preview  string // the beginning, at most 200 bytes
	TooLarge bool   // a message over the size limit, not a stray line
	ID       ID     // of that message, if it could be read
}

const dropPreview = 200

// Reader splits a byte stream into messages. For each it buffers at most the
// size limit. It is not safe for concurrent use.
type Reader struct {
	r       *bufio.Reader
	src     *source // what r reads from
	framing Framing
	max     int
	onDrop  func(DroppedInput)
	flood   *garbageCounter // nil for no limit
}

// readBuffer is small because every upstream has one; longer lines use a
// scratch buffer.
const readBuffer = 8 << 10

// NewReader reads messages from r. onDrop may be nil; it is called in the
// goroutine that calls Next.
func NewReader(r io.Reader, framing Framing, limits Limits, onDrop func(DroppedInput)) *Reader {
	if onDrop == nil {
		onDrop = func(DroppedInput) {}
	}
	src := &source{Reader: r}
	return &Reader{r: bufio.NewReaderSize(src, readBuffer), src: src, framing: framing, max: limits.WithDefaults().MaxBytes, onDrop: onDrop}
}

// source is a stream preceded by bytes that were read from it too early.
type source struct {
	io.Reader
	early []byte
}

func (s *source) Read(p []byte) (int, error) {
	if len(s.early) == 0 {
		return s.Reader.Read(p)
	}
	n := copy(p, s.early)
	if s.early = s.early[n:]; len(s.early) == 0 {
		s.early = nil
	}
	return n, nil
}

// Next returns the bytes of the next message, which belong to the caller. They
// are one line that begins like an object or an array, or one body; [Decode]
// checks whether they are a message. A *DecodeError reports one message that
// was too large and has been skipped; any other error is final. At the end of
// the stream it is io.EOF. In FramingHeaders it is io.ErrUnexpectedEOF in the
// middle of a message.
func (r *Reader) Next() ([]byte, error) {
	if r.framing == FramingAuto {
		if err := r.detect(); err != nil {
			return nil, err
		}
	}
	if r.framing == FramingHeaders {
		return r.nextBody()
	}
	return r.nextLine()
}

func (r *Reader) detect() error {
	for {
		first, err := r.r.Peek(1)
		if err != nil {
			return err
		}
		if rawjson.SkipSpace(first, 0) == 0 {
			break
		}
		if _, err := r.r.Discard(1); err != nil {
			return err
		}
	}
	r.framing = FramingLines
	const header = "content-"
	for n := 1; n <= len(header); n++ { // byte by byte, so as not to wait for more bytes than necessary
		head, err := r.r.Peek(n)
		if err != nil || !strings.EqualFold(string(head), header[:n]) {
			return nil
		}
	}
	r.framing = FramingHeaders
	return nil
}

func (r *Reader) nextLine() ([]byte, error) {
	for {
		line, err := r.line()
		if _, skipped := errors.AsType[*DecodeError](err); skipped || len(line) == 0 && err != nil {
			return nil, err
		}
		start := rawjson.SkipSpace(line, 0)
		if start == len(line) {
			continue // blank lines are ignored
		}
		if line[start] == '{' || line[start] == '[' {
			return line[start:], nil
		}
		// Programs print prompts and progress without a newline: the message
		// may follow on the same line.
		if i := bytes.Index(line, []byte(`{"jsonrpc"`)); i > 0 {
			r.onDrop(DroppedInput{Bytes: i, Preview: Preview(line[:i])})
			return line[i:], nil
		}
		r.onDrop(DroppedInput{Bytes: len(line), Preview: Preview(line)})
		if err := r.flood.add(len(line) + strayCost); err != nil {
			return nil, err
		}
	}
}

// line returns a copy of the next line without its newline, which the last line
// need not have. A line that is too long is skipped and reported.
func (r *Reader) line() ([]byte, error) {
	part, err := r.r.ReadSlice('\n')
	if err == nil && len(part) <= r.max+1 {
		return bytes.Clone(part[:len(part)-1]), nil
	}
	long := newScratch()
	defer long.release()
	long.b = append(long.b, part...)
	for errors.Is(err, bufio.ErrBufferFull) && len(long.b) <= r.max+1 {
		err = r.appendLine(long)
	}
	switch {
	case len(long.b) > r.max+1:
		return nil, r.skipLine(long.b, err)
	case err == nil:
		return bytes.Clone(long.b[:len(long.b)-1]), nil
	}
	return bytes.Clone(long.b), err
}

// appendLine reads more of a line that has filled the buffer, as much as is
// available. The error is bufio.ErrBufferFull until the line ends.
func (r *Reader) appendLine(long *scratch) error {
	if n := len(long.b); cap(long.b)-n < readBuffer {
		long.b = slices.Grow(long.b, min(max(n, scratchSize), maxKeptScratch))
	}
	free := long.b[len(long.b):cap(long.b)]
	n, err := r.r.Read(free) // bypasses its buffer, which is empty and smaller
	if i := bytes.IndexByte(free[:n], '\n'); i >= 0 {
		r.src.early = append(bytes.Clone(free[i+1:n]), r.src.early...)
		n, err = i+1, nil
	} else if err == nil {
		err = bufio.ErrBufferFull
	}
	long.b = long.b[:len(long.b)+n]
	return err
}

// skipLine discards the rest of a line, and reports what its beginning and end
// reveal about it.
func (r *Reader) skipLine(long []byte, err error) error {
	head := bytes.Clone(long[:min(len(long), peekBytes)])
	tail := appendTail(nil, long[max(0, len(long)-peekBytes):])
	n := len(long)
	for errors.Is(err, bufio.ErrBufferFull) {
		var part []byte
		part, err = r.r.ReadSlice('\n')
		n += len(part)
		tail = appendTail(tail, part)
		if err := r.flood.add(len(part)); err != nil {
			return err
		}
	}
	id := peekID(head)
	if id == "" && err == nil {
		id = peekTailID(tail)
	}
	return r.tooLarge(DroppedInput{Bytes: n, Preview: Preview(head), TooLarge: true, ID: id})
}

func (r *Reader) tooLarge(d DroppedInput) error {
	r.onDrop(d)
	return tooLarge(d, Limits{MaxBytes: r.max})
}

func tooLarge(d DroppedInput, limits Limits) *DecodeError {
	return &DecodeError{Code: CodeInvalidRequest, ID: d.ID, TooLarge: true,
		Msg: fmt.Sprintf("message of %d bytes is over the limit of %d", d.Bytes, limits.WithDefaults().MaxBytes)}
}

func appendTail(tail, part []byte) []byte {
	tail = append(tail, part...)
	return tail[max(0, len(tail)-peekBytes):]
}

// Preview returns the beginning of b as text for a log.
func Preview(b []byte) string {
	return strings.ToValidUTF8(strings.TrimSpace(string(b[:min(len(b), dropPreview)])), "")
}

// maxHeaders bounds the header lines of one message.
const maxHeaders = 32

// maxSkipped is the length of the longest message that is skipped. A larger
// length is an error: its sender would wait forever for a response.
const maxSkipped = 1 << 30

func (r *Reader) nextBody() ([]byte, error) {
	length, err := r.headers()
	if err != nil {
		return nil, err
	}
	if length <= int64(r.max) {
		return readBody(r.r, int(length))
	}
	head, err := r.r.Peek(int(min(length, peekBytes)))
	if err != nil {
		return nil, unexpectedEOF(err)
	}
	drop := DroppedInput{Bytes: int(length), Preview: Preview(head), TooLarge: true, ID: peekID(head)}
	if _, err := io.CopyN(io.Discard, r.r, length); err != nil {
		return nil, unexpectedEOF(err)
	}
	return nil, r.tooLarge(drop)
}

// readBody reads a body of the given length. It allocates memory only as bytes
// arrive.
func readBody(r io.Reader, length int) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(min(length, 64<<10))
	if n, err := io.CopyN(&buf, r, int64(length)); err != nil {
		return nil, unexpectedEOF(fmt.Errorf("%w after %d of %d bytes", err, n, length))
	}
	return buf.Bytes(), nil
}

func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// headers reads the header lines of one message and returns its length.
func (r *Reader) headers() (int64, error) {
	length := int64(-1)
	for n := 0; ; n++ {
		line, err := r.r.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, io.EOF) && n == 0 && len(bytes.TrimSpace(line)) == 0 {
				return 0, io.EOF
			}
			if errors.Is(err, bufio.ErrBufferFull) || n > maxHeaders {
				return 0, errors.New("message headers are too long")
			}
			return 0, unexpectedEOF(err)
		}
		if n > maxHeaders {
			return 0, errors.New("message headers are too long")
		}
		text := strings.TrimSpace(string(line))
		if text == "" {
			if length >= 0 {
				return length, nil
			}
			if n == 0 {
				n-- // blank lines before the first header
				continue
			}
			return 0, errors.New("message headers without Content-Length")
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok || strings.ContainsAny(name, "{[\"") { // a line of JSON also contains colons
			return 0, fmt.Errorf("%q is not a message header, but this stream began with headers", Preview(line))
		}
		if strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			length, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil || length < 0 {
				return 0, fmt.Errorf("Content-Length %q is not a valid length", Preview([]byte(value)))
			}
			if length > maxSkipped {
				return 0, fmt.Errorf("Content-Length %d is too large", length)
			}
		}
	}
}
