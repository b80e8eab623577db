package telemetry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// lines is the handler of the JSON log. It encodes a record once, for both the
// output and the ring of recent lines.
type lines struct {
	to *lineTarget

	// plain is for the levels that slog has a name for. Naming the others
	// requires a function that slog calls for every attribute.
	plain, named slog.Handler

	// bound are the encoded attributes of WithAttrs for appendLine; direct
	// reports whether appendLine can be used.
	bound  []byte
	direct bool
}

// lineTarget is the destination of a logger and of the loggers derived from it.
type lineTarget struct {
	out    io.Writer       // nil for none
	recent *Ring[LogEntry] // nil for none

	mu   sync.Mutex
	line bytes.Buffer // the current line; guarded by mu
	time timeText     // guarded by mu
}

func newLines(out io.Writer, recent *Ring[LogEntry], level slog.Leveler) slog.Handler {
	to := &lineTarget{out: out, recent: recent}
	return lines{
		to:    to,
		plain: slog.NewJSONHandler(&to.line, &slog.HandlerOptions{Level: level}),
		named: slog.NewJSONHandler(&to.line, &slog.HandlerOptions{Level: level, ReplaceAttr: nameLevel}),

		direct: true,
	}
}

func nameLevel(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.LevelKey {
		if l, ok := a.Value.Any().(slog.Level); ok {
			a.Value = slog.StringValue(levelName(l))
		}
	}
	return a
}

// Enabled implements slog.Handler.
func (h lines) Enabled(ctx context.Context, l slog.Level) bool { return h.plain.Enabled(ctx, l) }

// WithAttrs implements slog.Handler.
func (h lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	bound, direct := appendAttrs(slices.Clip(h.bound), attrs)
	return lines{h.to, h.plain.WithAttrs(attrs), h.named.WithAttrs(attrs), bound, h.direct && direct}
}

// WithGroup implements slog.Handler.
func (h lines) WithGroup(name string) slog.Handler {
	return lines{to: h.to, plain: h.plain.WithGroup(name), named: h.named.WithGroup(name)}
}

// Handle implements slog.Handler.
func (h lines) Handle(ctx context.Context, rec slog.Record) error {
	encode := h.named
	switch rec.Level {
	case slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError:
		encode = h.plain
	}
	h.to.mu.Lock()
	defer h.to.mu.Unlock()
	h.to.reset()
	if err := encode.Handle(ctx, rec); err != nil {
		return err
	}
	return h.to.write(rec.Time, rec.Level, rec.Message)
}

// handleAttrs is Handle for a list of attributes instead of a slog.Record. If
// appendLine cannot encode the line, done is false and nothing is written.
func (h lines) handleAttrs(at time.Time, level slog.Level, msg string, attrs []slog.Attr) (done bool, err error) {
	if !h.direct {
		return false, nil
	}
	h.to.mu.Lock()
	defer h.to.mu.Unlock()
	h.to.reset()
	line, ok := h.to.time.appendLine(h.to.line.AvailableBuffer(), at, level, msg, h.bound, attrs)
	if !ok {
		return false, nil
	}
	h.to.line.Write(line)
	return true, h.to.write(at, level, msg)
}

// reset empties the line. The caller holds t.mu.
func (t *lineTarget) reset() {
	if t.line.Reset(); t.line.Cap() > 2*flushBytes {
		t.line = bytes.Buffer{} // release the memory of a very long line
	}
}

// write passes the line to the ring and the output. The caller holds t.mu.
func (t *lineTarget) write(at time.Time, level slog.Level, msg string) error {
	line := t.line.Bytes()
	if t.recent != nil {
		t.recent.Add(LogEntry{Timestamp: at.UnixMilli(), Level: levelName(level), Message: msg, Details: detailsOf(line)})
	}
	if t.out == nil {
		return nil
	}
	_, err := t.out.Write(line)
	return err
}

// detailsOf returns the attributes of an encoded line as a JSON object, or nil
// if there are none. slog writes the time, if any, the level and the message
// first.
func detailsOf(line []byte) []byte {
	const key = `"msg":`
	at := bytes.Index(line, []byte(key)) // the time and the level cannot contain it
	if at < 0 {
		return nil
	}
	end := at + len(key) + 1
	for end < len(line) && line[end] != '"' {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	end++                                                                         // the closing quote
	if rest := bytes.TrimRight(line[min(end, len(line)):], "\n"); len(rest) > 1 { // more than the closing brace
		details := make([]byte, len(rest))
		copy(details, rest)
		details[0] = '{' // in place of the comma
		return details
	}
	return nil
}
