package telemetry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
)

// lines is the handler of the JSON log. It encodes a record once, with slog's
// own handler, for the output and for the ring of recent lines alike.
type lines struct {
	to *lineTarget

	// plain writes the levels that slog has a name for. Naming the others
	// takes a function that slog calls for every attribute.
	plain, named slog.Handler
}

// lineTarget is where the lines of a logger and of those derived from it go.
type lineTarget struct {
	out    io.Writer       // nil for none
	recent *Ring[LogEntry] // nil for none

	mu   sync.Mutex
	line bytes.Buffer // what slog writes, while mu is held
}

func newLines(out io.Writer, recent *Ring[LogEntry], level slog.Leveler) slog.Handler {
	to := &lineTarget{out: out, recent: recent}
	return lines{
		to:    to,
		plain: slog.NewJSONHandler(&to.line, &slog.HandlerOptions{Level: level}),
		named: slog.NewJSONHandler(&to.line, &slog.HandlerOptions{Level: level, ReplaceAttr: nameLevel}),
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
	return lines{h.to, h.plain.WithAttrs(attrs), h.named.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h lines) WithGroup(name string) slog.Handler {
	return lines{h.to, h.plain.WithGroup(name), h.named.WithGroup(name)}
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
	if h.to.line.Reset(); h.to.line.Cap() > 2*flushBytes {
		h.to.line = bytes.Buffer{} // one line was very long
	}
	if err := encode.Handle(ctx, rec); err != nil {
		return err
	}
	line := h.to.line.Bytes()
	if h.to.recent != nil {
		h.to.recent.Add(LogEntry{
			Timestamp: rec.Time.UnixMilli(), Level: levelName(rec.Level), Message: rec.Message, Details: detailsOf(line),
		})
	}
	if h.to.out == nil {
		return nil
	}
	_, err := h.to.out.Write(line)
	return err
}

// detailsOf returns the attributes of an encoded line as an object of their
// own; nil when there are none. slog writes time, level and message first, and
// the time is left out of a record without one.
func detailsOf(line []byte) []byte {
	const key = `"msg":`
	at := bytes.Index(line, []byte(key)) // neither a time nor the name of a level has it inside
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
