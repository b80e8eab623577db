package child

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The number and the length of the lines of stderr that are kept.
const (
	tailLines = 50
	tailLine  = 1 << 10
)

// tail keeps the last lines of a stream, each truncated to a bounded length.
type tail struct {
	mu     sync.Mutex
	kept   []string // oldest first
	open   []byte   // the incomplete line
	longer bool     // the open line was truncated
	onLine func(string)
}

// newTail returns a tail that also calls onLine, unless it is nil, for every
// line.
func newTail(onLine func(string)) *tail { return &tail{onLine: onLine} }

// readFrom reads r until it ends.
func (t *tail) readFrom(r io.Reader) {
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		t.write(buf[:n])
		if err != nil {
			return
		}
	}
}

// readPipe reads a pipe until its end. After the read deadline it reads only
// what the pipe already contains.
func (t *tail) readPipe(f *os.File) {
	t.readFrom(f)
	t.drain(f)
}

func (t *tail) write(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(b) > 0 {
		line, rest, ended := bytes.Cut(b, []byte{'\n'})
		if room := tailLine - len(t.open); len(line) > room {
			line, t.longer = line[:room], true
		}
		t.open = append(t.open, line...)
		if ended {
			t.end()
		}
		b = rest
	}
}

// end adds the open line to the kept lines.
func (t *tail) end() {
	line := clean(t.open)
	if t.longer {
		line += "…"
	}
	t.open, t.longer = t.open[:0], false
	if line == "" {
		return
	}
	if len(t.kept) == tailLines {
		copy(t.kept, t.kept[1:])
		t.kept = t.kept[:tailLines-1]
	}
	t.kept = append(t.kept, line)
	if t.onLine != nil {
		t.onLine(line)
	}
}

// lines returns the last lines, oldest first, the unfinished one included.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := append([]string(nil), t.kept...)
	if open := clean(t.open); open != "" {
		lines = append(lines, open)
	}
	return lines
}

// clean makes a line safe to show on a terminal and in JSON: no colours, no
// control characters, valid text.
func clean(line []byte) string {
	var b strings.Builder
	for len(line) > 0 {
		if line[0] == 0x1b {
			line = line[escapeLen(line):]
			continue
		}
		r, n := utf8.DecodeRune(line)
		line = line[n:]
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case !unicode.IsControl(r):
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}

// escapeLen returns the length of the terminal escape sequence that line
// begins with.
func escapeLen(line []byte) int {
	if len(line) < 2 || line[1] != '[' {
		return min(2, len(line))
	}
	for i := 2; i < len(line); i++ {
		if line[i] >= 0x40 && line[i] <= 0x7e {
			return i + 1
		}
	}
	return len(line)
}
