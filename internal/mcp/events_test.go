package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestEventReader(t *testing.T) {
	big := strings.Repeat("x", 30_000)
	for name, tt := range map[string]struct {
		in   string
		want string // name|data, ! for one that was too large
		id   string
	}{
		"plain":                {"data: {1}\n\n", "|{1}", ""},
		"no space":             {"data:{1}\n\n", "|{1}", ""},
		"crlf":                 {"event: message\r\ndata: {1}\r\n\r\n", "message|{1}", ""},
		"many lines":           {"data: {\ndata: 1\ndata: }\n\n", "|{\n1\n}", ""},
		"comments":             {": hi\n\n: there\ndata: {1}\n: x\n\n", "|{1}", ""},
		"byte order mark":      {"\xef\xbb\xbfdata: {1}\n\n", "|{1}", ""},
		"ids":                  {"id: a\ndata: {1}\n\nid: b\ndata:\n\n", "|{1}", "b"},
		"unfinished":           {"id: a\ndata: {1}\n\ndata: {2}\n", "|{1}", "a"},
		"cut in the data":      {"id: a\ndata: {1}\n\nid: b\ndata: {2", "|{1}", "a"},
		"cut before the end":   {"id: a\ndata: {1}\n\nid: b\ndata: {2}\n", "|{1}", "a"},
		"id is kept":           {"id: a\ndata: {1}\n\ndata: {2}\n\n: x\n\n", "|{1} |{2}", "a"},
		"id is taken back":     {"id: a\ndata: {1}\n\nid\ndata: {2}\n\n", "|{1} |{2}", ""},
		"bad id":               {"id: a\x00b\ndata: {1}\n\n", "|{1}", ""},
		"unknown field":        {"foo: bar\ndata\ndata: {1}\n\n", "|\n{1}", ""},
		"larger than buffer":   {"data: " + big + "\n\ndata: {2}\n\n", "|" + big + " |{2}", ""},
		"too large":            {"data: " + big + big + "\n\ndata: {2}\n\n", "! |{2}", ""},
		"too large with an id": {"id: a\ndata: {1}\n\nid: b\ndata: " + big + big + "\n\n", "|{1} !", "b"},
		"too large, and cut":   {"id: a\ndata: {1}\n\nid: b\ndata: " + big + big + "\n", "|{1}", "a"},
		"too large, in pieces": {strings.Repeat("data: "+big[:5000]+"\n", 20) + "\ndata: {2}\n\n", "! |{2}", ""},
		"retry":                {"retry: 1500\nretry: x\ndata: {1}\n\n", "|{1}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, wrap := range []func(io.Reader) io.Reader{nil, iotest.OneByteReader} {
				var src io.Reader = strings.NewReader(tt.in)
				if wrap != nil {
					src = wrap(src)
				}
				e := NewEventReader(src, Limits{MaxBytes: 40_000})
				var got []string
				for {
					name, data, err := e.Next()
					if d, ok := errors.AsType[*DecodeError](err); ok && d.TooLarge {
						got = append(got, "!")
						continue
					}
					if err != nil {
						break
					}
					got = append(got, name+"|"+string(data))
				}
				if s := strings.Join(got, " "); s != tt.want || e.LastID != tt.id {
					t.Errorf("got %.100q with id %q, want %.100q with %q", s, e.LastID, tt.want, tt.id)
				}
				if name == "retry" && e.Retry != 1500*time.Millisecond {
					t.Errorf("retry = %v", e.Retry)
				}
				e.Release()
			}
		})
	}
}

func TestTooLargeEventNamesItsCall(t *testing.T) {
	long := strings.Repeat("x", 50_000)
	for name, data := range map[string]string{
		"one line": `data: {"jsonrpc":"2.0","id":5,"result":"` + long + `"}`,
		// The line that is too long is not the one with the id, but looks like it.
		"two lines": "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":\ndata: {\"id\":6,\"of\":\"" + long + "\"}}",
	} {
		e := NewEventReader(strings.NewReader(data+"\n\n"), Limits{MaxBytes: 100})
		_, _, err := e.Next()
		if d, ok := errors.AsType[*DecodeError](err); !ok || d.ID != "5" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// FuzzEvents: with any input the reader terminates and buffers no more than the
// limit, and an event is read as it was written.
func FuzzEvents(f *testing.F) {
	for _, m := range realTraffic {
		f.Add([]byte("event: message\nid: 1_2\ndata: " + m + "\n\n"))
	}
	f.Add([]byte("retry: 100\nid: x\ndata:\n\n: ping\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const max = 200
		e := NewEventReader(bytes.NewReader(data), Limits{MaxBytes: max})
		ended := false
		for range len(data) + 2 {
			_, got, err := e.Next()
			if len(got) > max+maxEventField {
				t.Fatalf("event of %d bytes", len(got))
			}
			if err != nil {
				if _, ok := errors.AsType[*DecodeError](err); !ok {
					ended = true
					break
				}
			}
		}
		if !ended {
			t.Fatal("no end")
		}
		if len(data) < max && !bytes.ContainsAny(data, "\r\n") && len(bytes.TrimSpace(data)) > 0 {
			_, got, err := NewEventReader(strings.NewReader(fmt.Sprintf("data: %s\n\n", data)), Limits{}).Next()
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%q came back as %q, %v", data, got, err)
			}
		}
	})
}
