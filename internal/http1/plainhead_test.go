package http1

import (
	"bufio"
	"reflect"
	"strings"
	"testing"
)

// TestPlainHead parses heads in both ways. A head that readPlainHead accepts
// must have the same meaning for textproto, and only the head must be
// consumed.
func TestPlainHead(t *testing.T) {
	for name, tt := range map[string]struct {
		head  string
		plain bool
	}{
		"usual":           {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Mon, 16 Nov 2026 08:00:00 GMT\r\nContent-Length: 3\r\n\r\n", true},
		"no fields":       {"HTTP/1.1 204 No Content\r\n\r\n", true},
		"repeated":        {"HTTP/1.1 200 OK\r\nX-A: 1\r\nX-B: 2\r\nX-A: 3\r\n\r\n", true},
		"spaces":          {"HTTP/1.1 200 OK\r\nX-A: \t 1 2 \t\r\nX-B:3\r\nX-C:\r\n\r\n", true},
		"colons":          {"HTTP/1.1 200 OK\r\nX-A: a:b: c\r\n\r\n", true},
		"beyond ASCII":    {"HTTP/1.1 200 OK\r\nX-A: caf\xc3\xa9 \xff\r\n\r\n", true},
		"odd tokens":      {"HTTP/1.1 200 OK\r\nX_a-1b!: 1\r\n\r\n", true},
		"small letters":   {"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", false},
		"capital letters": {"HTTP/1.1 200 OK\r\nETag: 3\r\n\r\n", false},
		"folded":          {"HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\n\r\n", false},
		"first folded":    {"HTTP/1.1 200 OK\r\n X-A: 1\r\n\r\n", false},
		"space in name":   {"HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\n", false},
		"no name":         {"HTTP/1.1 200 OK\r\n: 3\r\n\r\n", false},
		"no colon":        {"HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n", false},
		"bare LF":         {"HTTP/1.1 200 OK\r\nX-A: 1\nContent-Length: 3\r\n\r\n", false},
		"LF before":       {"HTTP/1.1 200 OK\nX-A: 1\r\n\r\n", false},
		"LF and end":      {"HTTP/1.1 200 OK\r\nX-A: 1\n\r\n\r\n", false},
		"bare CR":         {"HTTP/1.1 200 OK\r\nX-A: 1\rX-B: 2\r\n\r\n", false},
		"NUL":             {"HTTP/1.1 200 OK\r\nX-A: 1\x002\r\n\r\n", false},
		"incomplete":      {"HTTP/1.1 200 OK\r\nX-A: 1\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			const body = "{}\r\n\r\n"
			text := tt.head
			if strings.HasSuffix(text, "\r\n\r\n") {
				text += body
			}
			open := func() *conn {
				c := &conn{r: bufio.NewReader(strings.NewReader(text))}
				c.text.R = c.r
				if _, err := c.r.Peek(1); err != nil {
					t.Fatal(err)
				}
				return c
			}
			c := open()
			line, header, plain := c.readPlainHead()
			if plain != tt.plain {
				t.Fatalf("plain = %v, want %v", plain, tt.plain)
			}
			if !plain {
				if c.r.Buffered() != len(text) {
					t.Errorf("%d of %d bytes are left", c.r.Buffered(), len(text))
				}
				return
			}
			if c.r.Buffered() != len(body) {
				t.Errorf("%d bytes are left, want the %d of the body", c.r.Buffered(), len(body))
			}
			other := open()
			wantLine, err := other.text.ReadLine()
			if err != nil {
				t.Fatal(err)
			}
			want, err := other.text.ReadMIMEHeader()
			if err != nil {
				t.Fatal(err)
			}
			if line != wantLine || !reflect.DeepEqual(header, want) {
				t.Errorf("got %q %q, want %q %q", line, header, wantLine, want)
			}
		})
	}
}
