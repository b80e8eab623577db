package http1

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// maxInterim bounds the number of interim (1xx) responses.
const maxInterim = 5

// readHead reads the head of the final response.
func (c *conn) readHead(r *http.Request) (*http.Response, error) {
	for range maxInterim + 1 {
		resp, err := c.readOneHead(r)
		if err != nil {
			return nil, err
		}
		switch {
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the server switches to a protocol that was not asked for")
		case resp.StatusCode >= 200:
			return resp, nil
		}
	}
	return nil, fmt.Errorf("more than %d interim responses", maxInterim)
}

func (c *conn) readOneHead(r *http.Request) (*http.Response, error) {
	line, header, plain := c.readPlainHead()
	var err error
	if !plain {
		if line, err = c.text.ReadLine(); err != nil {
			return nil, c.headError(err)
		}
	}
	resp := &http.Response{Request: r, ProtoMajor: 1}
	var ok bool
	if resp.Proto, resp.Status, ok = strings.Cut(line, " "); !ok {
		return nil, fmt.Errorf("malformed response %.80q", line)
	}
	switch resp.Proto {
	case "HTTP/1.1":
		resp.ProtoMinor = 1
	case "HTTP/1.0":
	default:
		return nil, fmt.Errorf("malformed response %.80q", line)
	}
	resp.Status = strings.TrimLeft(resp.Status, " ")
	code, _, _ := strings.Cut(resp.Status, " ")
	if resp.StatusCode, err = strconv.Atoi(code); err != nil || len(code) != 3 || resp.StatusCode < 100 {
		return nil, fmt.Errorf("malformed status in response %.80q", line)
	}
	if !plain {
		if header, err = c.text.ReadMIMEHeader(); err != nil {
			return nil, c.headError(err)
		}
		for name := range header {
			if strings.IndexByte(name, ' ') >= 0 { // "Content-Length : 1" is a valid length to some parsers and not to others
				return nil, fmt.Errorf("malformed header %.80q", name)
			}
		}
	}
	resp.Header = http.Header(header)
	if resp.StatusCode >= 200 {
		c.hint = keepAliveHint(resp.Header.Get("Keep-Alive"))
	}
	return resp, frame(resp)
}

// headError converts the error of reading a head or a trailer.
func (c *conn) headError(err error) error {
	switch {
	case c.limit <= 0: // a truncated line may look malformed
		return errHeadTooLarge
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// frame determines where the response ends. An ambiguous response is an error.
func frame(resp *http.Response) error {
	lengths, encodings := resp.Header["Content-Length"], resp.Header["Transfer-Encoding"]
	resp.ContentLength = -1
	resp.Close = resp.ProtoMinor == 0 || hasToken(resp.Header["Connection"], "close")
	for i, length := range lengths {
		if length = textproto.TrimString(length); i > 0 && length != textproto.TrimString(lengths[0]) {
			return fmt.Errorf("the response has Content-Length %.40q and %.40q", lengths[0], length)
		}
		n, err := strconv.ParseUint(length, 10, 63)
		if err != nil || length[0] == '+' {
			return fmt.Errorf("malformed Content-Length %.40q", length)
		}
		resp.ContentLength = int64(n)
	}
	if len(encodings) > 0 {
		switch {
		case len(lengths) > 0:
			return errors.New("the response has both Content-Length and Transfer-Encoding")
		case len(encodings) > 1 || !strings.EqualFold(textproto.TrimString(encodings[0]), "chunked") || resp.ProtoMinor == 0:
			return fmt.Errorf("unsupported Transfer-Encoding %.40q", encodings)
		}
		resp.TransferEncoding = []string{"chunked"}
		delete(resp.Header, "Transfer-Encoding")
	}
	if resp.StatusCode < 200 || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified ||
		resp.Request.Method == http.MethodHead {
		resp.ContentLength, resp.TransferEncoding = 0, nil
	}
	return nil
}

// hasToken reports whether a list of header values contains a token.
func hasToken(values []string, token string) bool {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(textproto.TrimString(part), token) {
				return true
			}
		}
	}
	return false
}
