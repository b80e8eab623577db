package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// EventReader reads a stream of server-sent events. It buffers no more of one
// event than the size limit. Lines end with LF or CRLF; the single CR that the
// standard also allows is not supported, because no server uses it.
type EventReader struct {
	r      *bufio.Reader
	max    int
	LastID string        // of the last complete event that had one
	Retry  time.Duration // the delay that the server last requested; 0 for none
	began  bool
	long   *scratch // of lines longer than r's buffer; nil before the first
}

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readBuffer) }}

// NewEventReader reads events from r.
func NewEventReader(r io.Reader, limits Limits) *EventReader {
	br := readers.Get().(*bufio.Reader)
	br.Reset(r)
	return &EventReader{r: br, max: limits.WithDefaults().MaxBytes}
}

// Reset continues with another stream of the same server.
func (e *EventReader) Reset(r io.Reader) { e.r.Reset(r) }

// Release returns the buffer to its pool; the reader must not be used
// afterwards.
func (e *EventReader) Release() {
	e.r.Reset(nil)
	readers.Put(e.r)
	e.r = nil
	if e.long != nil {
		e.long.release()
		e.long = nil
	}
}

const (
	maxEventField = 8 << 10 // of names, ids and comments
	maxRetry      = time.Minute
)

// Next returns the next event that has data. The data belongs to the caller.
// A *DecodeError concerns only one event.
func (e *EventReader) Next() (name string, data []byte, err error) {
	size := 0
	id := e.LastID  // becomes LastID when the event is complete, because a resumed stream begins after LastID
	var head []byte // of data that is too large to keep
	for {
		line, err := e.line(e.max - len(data))
		if err != nil {
			return "", nil, err // an event without a blank line at its end is incomplete
		}
		if line.cut {
			if size == 0 && data != nil {
				head = data[:min(len(data), peekBytes)]
			} else if size == 0 {
				head = bytes.Clone(bytes.TrimPrefix(line.bytes[:min(len(line.bytes), peekBytes)], []byte("data:")))
			}
			size += line.size
			data = nil
			continue
		}
		if len(line.bytes) == 0 { // the end of the event
			e.LastID = id
			if size > 0 {
				return name, nil, &DecodeError{Code: CodeInvalidRequest, ID: peekID(bytes.TrimSpace(head)), TooLarge: true,
					Msg: fmt.Sprintf("event of more than %d bytes", e.max)}
			}
			if data != nil && len(bytes.TrimSpace(data)) > 0 {
				return name, data, nil
			}
			name, data = "", nil
			continue
		}
		field, value, _ := bytes.Cut(line.bytes, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			switch {
			case size > 0:
			case data == nil:
				data = append(make([]byte, 0, len(value)), value...)
			default:
				data = append(append(data, '\n'), value...)
			}
		case "event":
			name = string(value[:min(len(value), maxEventField)])
		case "id":
			if len(value) <= maxEventField && bytes.IndexByte(value, 0) < 0 {
				id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.Retry = min(time.Duration(ms)*time.Millisecond, maxRetry)
			}
		}
	}
}

// eventLine is a line that is valid until the next read.
type eventLine struct {
	bytes []byte
	size  int
	cut   bool // too long: bytes is its beginning
}

func (e *EventReader) line(room int) (eventLine, error) {
	room += maxEventField
	part, err := e.r.ReadSlice('\n')
	if err == nil {
		if !e.began {
			e.began = true
			part = bytes.TrimPrefix(part, []byte("\xef\xbb\xbf"))
		}
		if len(part) > room {
			return eventLine{bytes: part, size: len(part), cut: true}, nil
		}
		return eventLine{bytes: trimEnd(part), size: len(part)}, nil
	}
	if e.long == nil {
		e.long = newScratch()
	}
	long := e.long.b[:0]
	size, cut := 0, false
	for {
		size += len(part)
		if cut = cut || size > room; !cut {
			long = append(long, part...)
			e.long.b = long
		}
		switch {
		case err == nil:
			return eventLine{bytes: trimEnd(long), size: size, cut: cut}, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return eventLine{}, err
		}
		part, err = e.r.ReadSlice('\n')
	}
}

func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}
