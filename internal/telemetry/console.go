package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// console writes lines for people:
//
//	15:04:05.000 INFO  upstream: connected  server=github tools=51
type console struct {
	out    io.Writer
	mu     *sync.Mutex
	level  slog.Leveler
	colour bool

	component string
	bound     string // attributes of WithAttrs, already formatted
	group     string // prefix of keys, from WithGroup
}

func newConsole(out io.Writer, level slog.Leveler, colour bool) *console {
	return &console{out: out, mu: &sync.Mutex{}, level: level, colour: colour}
}

func (c *console) Enabled(_ context.Context, l slog.Level) bool { return l >= c.level.Level() }

func (c *console) WithAttrs(attrs []slog.Attr) slog.Handler {
	d := *c
	b := []byte(d.bound)
	for _, a := range attrs {
		if a.Key == KeyComponent && d.group == "" {
			d.component = a.Value.Resolve().String()
			continue
		}
		b = d.append(b, d.group, a)
	}
	d.bound = string(b)
	return &d
}

func (c *console) WithGroup(name string) slog.Handler {
	if name == "" {
		return c
	}
	d := *c
	d.group += name + "."
	return &d
}

func (c *console) Handle(_ context.Context, rec slog.Record) error {
	b := make([]byte, 0, 256)
	if !rec.Time.IsZero() {
		b = c.paint(b, dim, rec.Time.Format("15:04:05.000"))
		b = append(b, ' ')
	}
	name := levelName(rec.Level)
	b = c.paint(b, levelColour(rec.Level), fmt.Sprintf("%-5s", name))
	b = append(b, ' ')
	component, tail := c.component, []byte(nil)
	rec.Attrs(func(a slog.Attr) bool {
		if a.Key == KeyComponent && c.group == "" && component == "" {
			component = a.Value.Resolve().String()
		} else {
			tail = c.append(tail, c.group, a)
		}
		return true
	})
	if component != "" {
		b = append(append(b, plain(component)...), ": "...)
	}
	b = append(b, plain(rec.Message)...)
	if len(c.bound)+len(tail) > 0 {
		b = append(append(append(b, ' '), c.bound...), tail...)
	}
	b = append(b, '\n')
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.out.Write(b)
	return err
}

// append writes one attribute as " key=value".
func (c *console) append(b []byte, prefix string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return b
	}
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, g := range v.Group() {
			b = c.append(b, prefix, g)
		}
		return b
	}
	b = c.paint(append(b, ' '), dim, plain(prefix+a.Key)+"=")
	var text string
	switch v.Kind() {
	case slog.KindTime:
		text = v.Time().Format(time.RFC3339)
	case slog.KindDuration:
		text = v.Duration().Round(time.Microsecond).String()
	default:
		text = v.String()
	}
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || r == '"' || r == '=' || !unicode.IsPrint(r) }) {
		text = strconv.Quote(text)
	}
	return append(b, text...)
}

// The colours of a terminal.
const (
	dim    = "2"
	red    = "31"
	yellow = "33"
	cyan   = "36"
	green  = "32"
)

func levelColour(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return red
	case l >= slog.LevelWarn:
		return yellow
	case l >= slog.LevelInfo:
		return green
	}
	return cyan
}

func (c *console) paint(b []byte, colour, text string) []byte {
	if !c.colour {
		return append(b, text...)
	}
	return slices.Concat(b, []byte("\x1b["+colour+"m"), []byte(text), []byte("\x1b[0m"))
}

// plain escapes control characters, so that logged text cannot move the cursor
// or add lines.
func plain(text string) string {
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	q := strconv.Quote(text)
	return q[1 : len(q)-1]
}
