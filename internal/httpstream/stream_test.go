package httpstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAcceptedFormat(t *testing.T) {
	for accept, want := range map[string]Format{
		"": None, "application/json": None, "*/*": None,
		"text/event-stream, application/json": Events,
		"Application/X-NDJSON":                Lines,
		"application/jsonl":                   Lines,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", accept)
		if got := Accepted(r); got != want {
			t.Errorf("Accept %q = %q, want %q", accept, got, want)
		}
	}
}

func TestEventsAreFlushedAtOnce(t *testing.T) {
	goOn := make(chan struct{})
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, _ := New(r.Context(), w, Accepted(r))
		if s.Started() {
			t.Error("started before anything was sent")
		}
		s.Send("message", []byte("{\"n\":\n1}"))
		<-goOn
		s.Send("message", []byte(`{"n":2}`))
		s.End()
		s.Send("message", []byte(`{"late":true}`))
	}))
	defer ts.Close()
	for format, want := range map[Format][]string{
		Events: {"event: message", `data: {"n": 1}`, "", "event: message", `data: {"n":2}`, ""},
		Lines:  {`{"n": 1}`, `{"n":2}`},
	} {
		req, _ := http.NewRequest("GET", ts.URL, nil)
		req.Header.Set("Accept", string(format))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Header.Get("Content-Type"); got != string(format) {
			t.Errorf("content type %q", got)
		}
		lines := bufio.NewScanner(res.Body)
		first := len(want) / 2
		for i, line := range want {
			if i == first { // the first message has arrived completely, and the second was not sent yet
				goOn <- struct{}{}
			}
			if !lines.Scan() || lines.Text() != line {
				t.Fatalf("%s line %d = %q, want %q", format, i, lines.Text(), line)
			}
		}
		if lines.Scan() {
			t.Errorf("%s: one more line %q", format, lines.Text())
		}
		res.Body.Close()
	}
}

// stuck is a client that accepts the header and nothing more.
type stuck struct {
	http.ResponseWriter
	release chan struct{}
	fail    error
}

func (s *stuck) Header() http.Header { return http.Header{} }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) Flush()              {}
func (s *stuck) Write(b []byte) (int, error) {
	<-s.release
	return len(b), s.fail
}

func TestSlowClientIsDisconnected(t *testing.T) {
	w := &stuck{release: make(chan struct{})}
	s, ctx := New(t.Context(), w, Lines)
	piece := []byte(strings.Repeat("x", 1<<20))
	for range 20 {
		s.Send("message", piece)
	}
	if !errors.Is(context.Cause(ctx), errSlowClient) {
		t.Errorf("cause = %v", context.Cause(ctx))
	}
	s.mu.Lock()
	waiting := s.bytes
	s.mu.Unlock()
	if waiting > maxBytes {
		t.Errorf("%d bytes wait", waiting)
	}
	close(w.release)
	s.End()

	w = &stuck{release: make(chan struct{})}
	s, ctx = New(t.Context(), w, Lines)
	for range maxPieces * 2 {
		s.Send("message", nil)
	}
	if !errors.Is(context.Cause(ctx), errSlowClient) {
		t.Error("too many small pieces are kept")
	}
	close(w.release)
	s.End()
}

func TestDisconnectedClientCancelsContext(t *testing.T) {
	w := &stuck{release: make(chan struct{}), fail: io.ErrClosedPipe}
	close(w.release)
	s, ctx := New(t.Context(), w, Lines)
	s.Send("message", nil)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), io.ErrClosedPipe) {
		t.Errorf("cause = %v", context.Cause(ctx))
	}
	s.End()
}

func TestEndWithoutSendWritesNothing(t *testing.T) {
	w := httptest.NewRecorder()
	s, ctx := New(t.Context(), w, Events)
	s.End()
	if ctx.Err() == nil || w.Body.Len() != 0 || w.Header().Get("Content-Type") != "" {
		t.Errorf("wrote %q, %v", w.Body, w.Header())
	}
}

func TestIdleStreamSendsHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for format, want := range map[Format]int{Events: 2, Lines: 0} {
			w := httptest.NewRecorder()
			s, _ := New(t.Context(), w, format)
			s.Send("message", []byte(`1`))
			time.Sleep(2*keepAliveInterval + time.Second)
			s.End()
			if got := strings.Count(w.Body.String(), ": alive"); got != want {
				t.Errorf("%s: %d keep-alives, want %d", format, got, want)
			}
		}
	})
}

// TestDataIsSentUnchanged: any bytes from a server are passed on, except for
// line breaks.
func TestDataIsSentUnchanged(t *testing.T) {
	in := "{\"a\":\r\n\"\xff\xc3\x28 \u2028 é\"}"
	for format, want := range map[Format]string{
		Events: "event: message\ndata: {\"a\":  \"\xff\xc3\x28 \u2028 é\"}\n\n",
		Lines:  "{\"a\":  \"\xff\xc3\x28 \u2028 é\"}\n",
	} {
		w := httptest.NewRecorder()
		s, _ := New(t.Context(), w, format)
		s.Send("message", []byte(in))
		s.End()
		if got := w.Body.String(); got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
}
