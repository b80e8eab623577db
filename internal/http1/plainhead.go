package http1

import (
	"bytes"
	"net/textproto"
	"strings"
)

// readPlainHead reads a head as nearly all servers send them: it has come as a
// whole, its lines end with CRLF, its names are written as [textproto] writes
// them, and its values have no control characters. Its strings share one piece
// of memory. Of any other head it reads nothing and reports false, and textproto
// decides what that means.
func (c *conn) readPlainHead() (line string, header textproto.MIMEHeader, ok bool) {
	buffered, _ := c.r.Peek(c.r.Buffered())
	end := bytes.Index(buffered, []byte("\r\n\r\n"))
	if end < 0 {
		return "", nil, false
	}
	line, rest, more := strings.Cut(string(buffered[:end]), "\r\n")
	if !validValue(line) {
		return "", nil, false
	}
	lines := 0
	if more {
		lines = 1 + strings.Count(rest, "\r\n")
	}
	header = make(textproto.MIMEHeader, lines)
	values := make([]string, lines)
	for i := range values {
		var field string
		field, rest, _ = strings.Cut(rest, "\r\n")
		name, value, found := strings.Cut(field, ":")
		if !found || !isCanonical(name) || !validValue(value) {
			return "", nil, false
		}
		values[i] = strings.Trim(value, " \t")
		if before := header[name]; before != nil {
			header[name] = append(before, values[i])
		} else {
			header[name] = values[i : i+1 : i+1]
		}
	}
	_, err := c.r.Discard(end + 4)
	return line, header, err == nil
}

// isCanonical reports whether the name of a header field is a token in the form
// of [textproto.CanonicalMIMEHeaderKey].
func isCanonical(name string) bool {
	upper := true // the next letter
	for i := range len(name) {
		if c := name[i]; upper && 'a' <= c && c <= 'z' || !upper && 'A' <= c && c <= 'Z' {
			return false
		}
		upper = name[i] == '-'
	}
	return isToken(name)
}
