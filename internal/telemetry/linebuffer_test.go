package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLineBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out writes
		b := NewLineBuffer(&out)
		log := NewLogger(LogOptions{Output: b, Format: FormatJSON})
		log.Info("alone")
		if got := out.take(); got != 1 {
			t.Fatalf("%d writes for a line that comes alone, want 1 at once", got)
		}
		for range 10 {
			log.Info("one of many")
		}
		if got := out.take(); got != 0 {
			t.Fatalf("%d writes for lines that follow at once, want none yet", got)
		}
		time.Sleep(flushAfter)
		synctest.Wait()
		if got := out.take(); got != 1 {
			t.Fatalf("%d writes %s later, want 1", got, flushAfter)
		}
		log.Info("waits")
		log.Warn("does not wait")
		if got := out.take(); got != 1 {
			t.Fatalf("%d writes after a warning, want 1", got)
		}
		log.With("a", 1).WithGroup("g").Error("neither")
		if got := out.take(); got != 1 {
			t.Fatalf("%d writes after an error, want 1", got)
		}
		log.Info(strings.Repeat("x", flushBytes))
		if got := out.take(); got != 1 {
			t.Fatalf("%d writes after a full buffer, want 1", got)
		}
		log.Info("last")
		if err := b.Unbuffer(); err != nil || out.take() != 1 {
			t.Fatalf("Unbuffer = %v, and it wrote nothing", err)
		}
		log.Info("direct")
		log.Info("direct")
		if got := out.take(); got != 2 {
			t.Fatalf("%d writes for two lines that are not buffered, want 2", got)
		}
		if n := strings.Count(out.text(), "\n"); n != 18 {
			t.Errorf("%d lines came, want 18:\n%.2000s", n, out.text())
		}
	})
}

// writes records and counts writes.
type writes struct {
	mu  sync.Mutex
	n   int
	all bytes.Buffer
}

func (w *writes) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	return w.all.Write(b)
}

func (w *writes) take() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.n
	w.n = 0
	return n
}

func (w *writes) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

func TestLineBufferFails(t *testing.T) {
	b := NewLineBuffer(broken{})
	if _, err := b.Write([]byte("x\n")); err == nil {
		t.Error("a write that failed was not reported")
	}
	var none *LineBuffer
	if none.Flush() != nil || none.Unbuffer() != nil {
		t.Error("a nil buffer has something to flush")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

// TestLineBufferKeepsLinesWhole: with concurrent writers, lines are written
// whole and in the order of their logger.
func TestLineBufferKeepsLinesWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out writes
		b := NewLineBuffer(&out)
		ring := NewRing[LogEntry](10_000)
		log := NewLogger(LogOptions{Output: b, Format: FormatJSON, Recent: ring})
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 200 {
					log.Info("line", "from", g, "n", i, "text", fmt.Sprintf("%d \"msg\":", g))
				}
			})
		}
		wg.Wait()
		if err := b.Flush(); err != nil {
			t.Fatal(err)
		}
		var next [8]int
		for line := range strings.Lines(out.text()) {
			var m struct{ From, N int }
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if m.N != next[m.From] {
				t.Fatalf("line %d of logger %d, want %d", m.N, m.From, next[m.From])
			}
			next[m.From]++
		}
		if next != [8]int{200, 200, 200, 200, 200, 200, 200, 200} || len(ring.Latest(0)) != 1600 {
			t.Errorf("lines came: %v; the ring has %d", next, len(ring.Latest(0)))
		}
	})
}

func TestRecentDetails(t *testing.T) {
	ring := NewRing[LogEntry](10)
	log := NewLogger(LogOptions{Output: &bytes.Buffer{}, Format: FormatJSON, Recent: ring})
	log.Info(`a "msg":"x" \`, "k", "v")
	log.Info("nothing more")
	log.Log(t.Context(), SlogFatal, "named", slog.Group("g", "a", 1))
	want := []LogEntry{
		{Level: "INFO", Message: `a "msg":"x" \`, Details: json.RawMessage(`{"k":"v"}`)},
		{Level: "INFO", Message: "nothing more"},
		{Level: "FATAL", Message: "named", Details: json.RawMessage(`{"g":{"a":1}}`)},
	}
	for i, got := range ring.Latest(0) {
		if got.Level != want[i].Level || got.Message != want[i].Message || string(got.Details) != string(want[i].Details) {
			t.Errorf("entry %d: %s %q %s, want %s %q %s", i, got.Level, got.Message, got.Details, want[i].Level, want[i].Message, want[i].Details)
		}
	}
}

// TestLineBufferWithUnreadOutput checks that a stalled output blocks the
// program once, for stallTimeout. Lines that fit are buffered, the others
// counted, and the lines and the count are written when the output accepts data
// again.
func TestLineBufferWithUnreadOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{read: make(chan struct{})}
		b := NewLineBuffer(out)
		log := NewLogger(LogOptions{Output: b, Format: FormatJSON}).With("bound", 1)
		begun := time.Now()
		const lines = 5000
		for i := range lines {
			log.Warn("line", "n", i, "text", strings.Repeat("x", 100))
		}
		if took := time.Since(begun); took != stallTimeout {
			t.Errorf("%d lines took %s, want %s for all of them", lines, took, stallTimeout)
		}
		if err := b.Unbuffer(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != 2*stallTimeout {
			t.Errorf("Unbuffer returned after %s, want %s", took, 2*stallTimeout)
		}
		if n := len(b.lines); n > maxStalled {
			t.Errorf("%d bytes are kept, want %d at most", n, maxStalled)
		}
		close(out.read)
		synctest.Wait()
		log.Info("read again")
		var came, dropped int
		for line := range strings.Lines(out.text()) {
			var m struct {
				Msg             string
				N, Lines, Bound int
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			switch {
			case m.Msg == "line" && m.N == came && m.Bound == 1:
				came++
			case m.Lines > 0 && m.Bound == 0:
				dropped += m.Lines
			case m.Msg != "read again":
				t.Fatalf("after %d lines: %s", came, line)
			}
		}
		if came == 0 || dropped == 0 || came+dropped != lines {
			t.Errorf("%d lines came and %d were dropped, want %d in all", came, dropped, lines)
		}
		if !strings.HasSuffix(out.text(), "\"read again\",\"bound\":1}\n") {
			t.Errorf("the last line is missing: %q", out.text()[len(out.text())-200:])
		}
	})
}

// stuck accepts nothing until read is closed.
type stuck struct {
	writes
	read chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.read
	return s.writes.Write(b)
}

// TestLineBufferWithSlowReader: a reader that reads only occasionally does not
// block the program each time.
func TestLineBufferWithSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		b := NewLineBuffer(w)
		line := []byte("a line\n")
		if _, err := b.Write(line); err != nil { // takes stallTimeout
			t.Fatal(err)
		}
		begun, read := time.Now(), make([]byte, len(line))
		for range 10 {
			for range 2 {
				if _, err := b.Write(line); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(begun); took > 0 {
				t.Fatalf("a line took %s", took)
			}
			time.Sleep(2 * stallTimeout)
			if _, err := io.ReadFull(r, read); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			begun = time.Now()
		}
		go func() { _, _ = io.Copy(io.Discard, r) }()
		if err := b.Unbuffer(); err != nil || len(b.lines) > 0 {
			t.Errorf("Unbuffer = %v, and %d bytes are left", err, len(b.lines))
		}
		r.Close()
	})
}
