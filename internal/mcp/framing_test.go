package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"junctor/internal/rawjson"
)

// frames reads all of a stream and returns messages as they are, dropped input
// in brackets, and the final error.
func frames(in string, framing Framing, max int, wrap func(io.Reader) io.Reader) string {
	var got []string
	var src io.Reader = strings.NewReader(in)
	if wrap != nil {
		src = wrap(src)
	}
	r := NewReader(src, framing, Limits{MaxBytes: max}, func(d DroppedInput) {
		s := "[" + d.Preview + "]"
		if d.TooLarge {
			s = fmt.Sprintf("[%d bytes, id %s]", d.Bytes, d.ID)
		}
		got = append(got, s)
	})
	for {
		data, err := r.Next()
		if d, ok := errors.AsType[*DecodeError](err); ok && d.TooLarge {
			continue
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				got = append(got, "error: "+err.Error())
			}
			return strings.Join(got, " ")
		}
		got = append(got, string(data))
	}
}

func TestReader(t *testing.T) {
	long := strings.Repeat("x", 20_000)
	for name, tt := range map[string]struct {
		in      string
		framing Framing
		max     int
		want    string
	}{
		"lines":                {"{1}\n{2}\r\n\n  {3}\n", FramingLines, 0, "{1} {2}\r {3}"},
		"last without end":     {"{1}\n{2}", FramingLines, 0, "{1} {2}"},
		"empty":                {"", FramingLines, 0, ""},
		"stray":                {"hello\n{1}\nwarning: x\n", FramingLines, 0, "[hello] {1} [warning: x]"},
		"behind a prompt":      {`> {"jsonrpc":1}` + "\n", FramingLines, 0, `[>] {"jsonrpc":1}`},
		"larger than buffer":   {`{"` + long + `"}` + "\n{2}\n", FramingLines, 0, `{"` + long + `"} {2}`},
		"too large, id first":  {`{"id":17,"x":"` + long + `"}` + "\n{2}\n", FramingLines, 1000, "[20017 bytes, id 17] {2}"},
		"too large, id last":   {`{"x":"` + long + `","jsonrpc":"2.0","id":"q"}` + "\n{2}\n", FramingLines, 1000, `[20034 bytes, id "q"] {2}`},
		"too large, inner id":  {`{"x":["` + long + `",{"id":4}]}` + "\n", FramingLines, 1000, "[20020 bytes, id ]"},
		"too large, cut off":   {`{"x":"` + long, FramingLines, 1000, "[20006 bytes, id ]"},
		"small but over":       {"{123456789}\n{2}\n", FramingLines, 8, "[12 bytes, id ] {2}"},
		"headers":              {"Content-Length: 3\r\n\r\n{1}content-length:3\nContent-Type: x\n\n{2}", FramingHeaders, 0, "{1} {2}"},
		"blank lines between":  {"\r\nContent-Length: 3\r\n\r\n{1}\r\n", FramingHeaders, 0, "{1}"},
		"body with newline":    {"Content-Length: 4\r\n\r\n{\n1}", FramingHeaders, 0, "{\n1}"},
		"large body":           {"Content-Length: 2000\r\n\r\n" + `{"id":3,` + long[:1992] + "Content-Length: 3\r\n\r\n{2}", FramingHeaders, 1000, "[2000 bytes, id 3] {2}"},
		"large body, cut":      {"Content-Length: 2000\r\n\r\n{", FramingHeaders, 1000, "error: unexpected EOF"},
		"large, cut later":     {"Content-Length: 2000\r\n\r\n" + long[:800], FramingHeaders, 1000, "error: unexpected EOF"},
		"body cut":             {"Content-Length: 3\r\n\r\n{", FramingHeaders, 0, "error: unexpected EOF"},
		"header cut":           {"Content-Le", FramingHeaders, 0, "error: unexpected EOF"},
		"no length":            {"Content-Type: x\r\n\r\n{}", FramingHeaders, 0, "error: message headers without Content-Length"},
		"bad length":           {"Content-Length: -3\r\n\r\n{}", FramingHeaders, 0, `error: Content-Length "-3" is not a valid length`},
		"no header":            {"{1}\n", FramingHeaders, 0, `error: "{1}" is not a message header, but this stream began with headers`},
		"a line among headers": {"Content-Length: 3\r\n\r\n{1}" + `{"jsonrpc":"2.0","id":1}` + "\n", FramingHeaders, 0, `{1} error: "{\"jsonrpc\":\"2.0\",\"id\":1}" is not a message header, but this stream began with headers`},
		"length without end":   {"Content-Length: 99999999999\r\n\r\n{}", FramingHeaders, 0, "error: Content-Length 99999999999 is too large"},
		"headers too long":     {"X: " + long + "\n", FramingHeaders, 0, "error: message headers are too long"},
		"too many headers":     {strings.Repeat("X: y\n", 100), FramingHeaders, 0, "error: message headers are too long"},
		"auto, lines":          {" \n{1}\n{2}\n", FramingAuto, 0, "{1} {2}"},
		"auto, headers":        {"\r\ncontent-length: 3\r\n\r\n{1}", FramingAuto, 0, "{1}"},
		"auto, stray":          {"Connecting\n{1}\n", FramingAuto, 0, "[Connecting] {1}"},
		"auto, short":          {"C", FramingAuto, 0, "[C]"},
		"auto, empty":          {"  ", FramingAuto, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, wrap := range []func(io.Reader) io.Reader{nil, iotest.OneByteReader, iotest.DataErrReader} {
				if got := frames(tt.in, tt.framing, tt.max, wrap); got != tt.want {
					t.Errorf("got %.200q, want %.200q", got, tt.want)
				}
			}
		})
	}
}

func TestWriter(t *testing.T) {
	var buf bytes.Buffer
	w := newFrameWriter(&buf, FramingLines)
	big := Message{Method: "m", Params: []byte(`{"x":"` + strings.Repeat("y", maxKeptBuffer) + `"}`)}
	for _, m := range []Message{{Method: "a"}, big, {ID: "1", Method: "b"}} {
		if err := w.writeMessages(&m); err != nil {
			t.Fatal(err)
		}
	}
	w.setFraming(FramingHeaders)
	for _, m := range []Message{{Method: "c"}, big} {
		if err := w.writeMessages(&m); err != nil {
			t.Fatal(err)
		}
	}
	bigText := string(AppendMessage(nil, &big))
	want := `{"jsonrpc":"2.0","method":"a"}` + "\n" + bigText + "\n" + `{"jsonrpc":"2.0","id":1,"method":"b"}` + "\n" +
		"Content-Length: 30\r\n\r\n" + `{"jsonrpc":"2.0","method":"c"}` + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(bigText)) + bigText
	if buf.String() != want {
		t.Errorf("wrote %.300q", buf.String())
	}
	if err := newFrameWriter(shortWriter{}, FramingLines).writeMessages(&Message{Method: "x"}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("short write: %v", err)
	}
}

type shortWriter struct{}

func (shortWriter) Write(p []byte) (int, error) { return len(p) / 2, nil }

func TestStreamFollowsTheFramingItReads(t *testing.T) {
	var out bytes.Buffer
	s := NewStream(strings.NewReader("Content-Length: 40\r\n\r\n"+`{"jsonrpc":"2.0","id":1,"method":"ping"} `), &out, StreamOptions{Framing: FramingAuto})
	m, err := s.Receive()
	if err != nil || m.Method != "ping" {
		t.Fatalf("%+v, %v", m, err)
	}
	if err := s.Send(&Message{ID: m.ID}); err != nil || !strings.HasPrefix(out.String(), "Content-Length: ") {
		t.Errorf("answered %q, %v", out.String(), err)
	}
	if _, err := s.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("end: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestStreamBatch(t *testing.T) {
	s := NewStream(strings.NewReader(`[{"jsonrpc":"2.0","id":1,"method":"a"},5,{"jsonrpc":"2.0","method":"b"}]`+"\n"+`{"jsonrpc":"2.0","method":"c"}`), io.Discard,
		StreamOptions{Close: func() error { return errors.New("closed by hand") }})
	var got []string
	for {
		m, err := s.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			m.Method = "!"
		}
		got = append(got, m.Method)
	}
	if strings.Join(got, " ") != "a ! b c" {
		t.Errorf("got %q", got)
	}
	if err := s.Close(); err == nil || err.Error() != "closed by hand" {
		t.Errorf("Close: %v", err)
	}
}

func TestPipe(t *testing.T) {
	a, b := Pipe()
	for i := range 3 {
		if err := a.Send(&Message{ID: NumberID(int64(i)), Method: "m"}); err != nil {
			t.Fatal(err)
		}
	}
	a.Close()
	a.Close()
	if err := a.Send(&Message{}); !errors.Is(err, ErrClosed) {
		t.Errorf("Send after Close: %v", err)
	}
	if _, err := a.Receive(); !errors.Is(err, ErrClosed) {
		t.Errorf("Receive after Close: %v", err)
	}
	for i := range 3 {
		if m, err := b.Receive(); err != nil || m.ID != NumberID(int64(i)) {
			t.Errorf("what was sent before the end: %+v, %v", m, err)
		}
	}
	if _, err := b.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("Receive from who left: %v", err)
	}
	if err := b.Send(&Message{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Send to who left: %v", err)
	}
	for _, closer := range []bool{true, false} {
		c, d := Pipe()
		full := make(chan error)
		go func() {
			var err error
			for err == nil {
				err = c.Send(&Message{Method: "m"})
			}
			full <- err
		}()
		for len(d.in) < pipeDepth {
			runtime.Gosched()
		}
		if closer {
			c.Close()
		} else {
			d.Close()
		}
		if err := <-full; err == nil {
			t.Error("a full pipe took more")
		}
	}
}

// FuzzReader: with any input the reader terminates and returns no message over
// the limit.
func FuzzReader(f *testing.F) {
	for _, m := range realTraffic {
		f.Add([]byte(m+"\n"+m+"\n"), 0)
		f.Add(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n%s", len(m), m), 1)
		f.Add(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n%s", len(m), m), 2)
	}
	f.Add([]byte("debug: starting\n{\"jsonrpc\":\"2.0\"}\n"), 2)
	f.Fuzz(func(t *testing.T, data []byte, framing int) {
		const max = 300
		s := NewStream(bytes.NewReader(data), io.Discard, StreamOptions{Framing: Framing(uint(framing) % 3), Limits: Limits{MaxBytes: max}})
		for range len(data) + 2 {
			m, err := s.Receive()
			if err == nil {
				if len(m.Params)+len(m.Result) > max {
					t.Fatalf("message of %d bytes", len(m.Params)+len(m.Result))
				}
				continue
			}
			if _, ok := errors.AsType[*DecodeError](err); !ok {
				return
			}
		}
		t.Fatal("no end")
	})
}

// Messages are read as they were written.
func FuzzWriteRead(f *testing.F) {
	f.Add("tools/call", []byte(`{"a":1}`), true)
	f.Fuzz(func(t *testing.T, method string, params []byte, headers bool) {
		if end, err := rawjson.SkipValue(params, 0, 10); err != nil || end != len(params) || params[0] != '{' || method == "" {
			return
		}
		framing := FramingLines
		if headers {
			framing = FramingHeaders
		}
		var buf bytes.Buffer
		w := newFrameWriter(&buf, framing)
		for range 2 {
			if err := w.writeMessages(&Message{ID: "1", Method: method, Params: params}); err != nil {
				t.Fatal(err)
			}
		}
		s := NewStream(&buf, io.Discard, StreamOptions{Framing: framing})
		for range 2 {
			m, err := s.Receive()
			if err != nil || string(m.Method) != strings.ToValidUTF8(method, "\ufffd") && strings.ToValidUTF8(method, "") == method || len(m.Params) != len(params) {
				t.Fatalf("%+v, %v", m, err)
			}
		}
	})
}

// TestReaderOfLongLines: lines of all sizes are read completely and in order,
// however many of them a read returns, and only the one over the limit is
// skipped.
func TestReaderOfLongLines(t *testing.T) {
	sizes := []int{2, 8191, 8192, 8193, 3, 32 << 10, 100_000, 5, 90_000, 300_000, 2, 2 << 20, 7}
	var all bytes.Buffer
	for i, size := range sizes {
		all.WriteString("{" + strings.Repeat(string(rune('a'+i)), size-2) + "}\n")
	}
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"all there is": func(r io.Reader) io.Reader { return r },
		"half of it":   iotest.HalfReader,
		"with its end": iotest.DataErrReader,
	} {
		const limit = 1 << 20
		r := NewReader(wrap(bytes.NewReader(all.Bytes())), FramingLines, Limits{MaxBytes: limit}, nil)
		for i, size := range sizes {
			line, err := r.Next()
			if size > limit {
				if d, ok := errors.AsType[*DecodeError](err); !ok || !d.TooLarge || !strings.Contains(d.Msg, fmt.Sprint(size+1)) {
					t.Errorf("%s, %d bytes: %v", name, size, err)
				}
				continue
			}
			if err != nil || len(line) != size || len(bytes.Trim(line[1:size-1], string(rune('a'+i)))) > 0 {
				t.Fatalf("%s, %d bytes: %d bytes, %v", name, size, len(line), err)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
}
