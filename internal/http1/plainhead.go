package http1

import (
	"bytes"
	"net/textproto"
	"strings"
)

// readPlainHead parses a head in the form that nearly all servers send: it is
// buffered completely, its lines end with CRLF, its names are canonical, and
// its values have no control characters. The strings share one allocation. For
// any other head it consumes nothing and returns false, so that textproto
// parses it.
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

// isCanonical reports whether the name of a header field is a token in
// canonical form; see [textproto.CanonicalMIMEHeaderKey].
func isCanonical(name string) bool {
	upper := true // whether the next letter must be upper case
	for i := range len(name) {
		if c := name[i]; upper && 'a' <= c && c <= 'z' || !upper && 'A' <= c && c <= 'Z' {
			return false
		}
		upper = name[i] == '-'
	}
	return isToken(name)
}
