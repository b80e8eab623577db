package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Levels that slog has no name for.
const (
	SlogTrace  = slog.LevelDebug - 4
	SlogFatal  = slog.LevelError + 4
	slogSilent = slog.LevelError + 1000
)

// Slog returns the corresponding level of slog; Info if l is unknown or empty.
func (l Level) Slog() slog.Level {
	switch l {
	case LevelTrace:
		return SlogTrace
	case LevelDebug:
		return slog.LevelDebug
	case LevelWarn:
		return slog.LevelWarn
	case LevelError:
		return slog.LevelError
	case LevelFatal:
		return SlogFatal
	case LevelSilent:
		return slogSilent
	}
	return slog.LevelInfo
}

// levelName returns the name of a level: TRACE, DEBUG, INFO, WARN, ERROR,
// FATAL.
func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelDebug:
		return "TRACE"
	case l < slog.LevelInfo:
		return "DEBUG"
	case l < slog.LevelWarn:
		return "INFO"
	case l < slog.LevelError:
		return "WARN"
	case l < SlogFatal:
		return "ERROR"
	}
	return "FATAL"
}

// LogOptions configure the logger. All but Output are optional.
type LogOptions struct {
	Output   io.Writer       // usually stderr
	Terminal bool            // Output is a terminal
	Colour   bool            // the terminal supports colours
	Format   LogFormat       // auto: text on a terminal, JSON otherwise
	Level    *slog.LevelVar  // may be changed while the program runs; nil means info
	Redactor *Redactor       // applied to everything
	Recent   *Ring[LogEntry] // stores the latest lines for the page
}

// NewLogger returns the program's logger. Every line has the request, session
// and trace ids of its context (see [WithRequest], [WithSession] and
// [WithTrace]) and is redacted. Durations are written in milliseconds, with a
// key that ends in Ms.
func NewLogger(o LogOptions) *slog.Logger {
	var level slog.Leveler = slog.LevelInfo
	if o.Level != nil {
		level = o.Level
	}
	var h slog.Handler
	if o.Format == FormatText || o.Format != FormatJSON && o.Terminal {
		h = newConsole(o.Output, level, o.Colour)
		if o.Recent != nil {
			h = slog.NewMultiHandler(h, newLines(nil, o.Recent, level))
		}
	} else {
		h = newLines(o.Output, o.Recent, level)
	}
	if b, ok := o.Output.(*LineBuffer); ok {
		h = flushing{h, b, h}
	}
	return slog.New(&handler{next: h, redactor: o.Redactor, level: level})
}

// flushing flushes the buffer after warnings and errors, and logs how many
// lines were dropped.
type flushing struct {
	slog.Handler
	buffer *LineBuffer
	plain  slog.Handler // without attributes
}

func (f flushing) Handle(ctx context.Context, rec slog.Record) error {
	f.reportDropped(ctx)
	err := f.Handler.Handle(ctx, rec)
	if rec.Level >= slog.LevelWarn {
		err = errors.Join(err, f.buffer.Flush())
	}
	return err
}

func (f flushing) handleAttrs(at time.Time, level slog.Level, msg string, attrs []slog.Attr) (done bool, err error) {
	if next, ok := f.Handler.(attrHandler); ok {
		f.reportDropped(context.Background())
		done, err = next.handleAttrs(at, level, msg, attrs)
	}
	if done && level >= slog.LevelWarn {
		err = errors.Join(err, f.buffer.Flush())
	}
	return done, err
}

func (f flushing) WithAttrs(attrs []slog.Attr) slog.Handler {
	return flushing{f.Handler.WithAttrs(attrs), f.buffer, f.plain}
}

func (f flushing) WithGroup(name string) slog.Handler {
	return flushing{f.Handler.WithGroup(name), f.buffer, f.plain}
}

func (f flushing) reportDropped(ctx context.Context) {
	if n := f.buffer.takeDropped(); n > 0 {
		rec := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines were dropped because the output did not accept them", 0)
		rec.AddAttrs(slog.Int64("lines", n))
		_ = f.plain.Handle(ctx, rec) // a failed log write cannot be logged
	}
}

// Handler returns a handler that adds the ids of the context to every record,
// masks its secrets, and passes it to next.
func (r *Redactor) Handler(next slog.Handler) slog.Handler {
	return &handler{next: next, redactor: r}
}

type handler struct {
	next     slog.Handler
	redactor *Redactor
	level    slog.Leveler // of next; nil if next.Enabled must be called
	bound    []string     // keys bound at the top level, which override those of the context
	grouped  bool
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, l slog.Level) bool {
	if h.level != nil {
		return l >= h.level.Level()
	}
	return h.next.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	c := *h
	clean := slices.Clone(attrs)
	inMillis(clean)
	clean, _ = h.clean(clean)
	c.next = h.next.WithAttrs(clean)
	if !h.grouped {
		for _, a := range attrs {
			c.bound = append(slices.Clip(c.bound), a.Key)
		}
	}
	return &c
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	c := *h
	c.next, c.grouped = h.next.WithGroup(name), true
	return &c
}

// attrLists pools the lists of a record's attributes.
var attrLists = sync.Pool{New: func() any { return new([]slog.Attr) }}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	list := attrLists.Get().(*[]slog.Attr)
	attrs := (*list)[:0]
	rec.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	inMillis(attrs)
	attrs, _ = h.clean(attrs)
	if known := fieldsOf(ctx); known != nil {
		own := len(attrs)
		known.each(func(key, value string) {
			if slices.Contains(h.bound, key) || slices.ContainsFunc(attrs[:own], func(a slog.Attr) bool { return a.Key == key }) {
				return
			}
			attrs = append(attrs, slog.String(key, h.redactor.String(value)))
		})
	}
	err := h.pass(ctx, &rec, h.redactor.String(rec.Message), attrs)
	clear(attrs)
	*list = attrs
	if cap(attrs) <= 64 {
		attrLists.Put(list)
	}
	return err
}

// pass passes the redacted record to next.
func (h *handler) pass(ctx context.Context, rec *slog.Record, msg string, attrs []slog.Attr) error {
	if next, ok := h.next.(attrHandler); ok { // it needs no rec.PC
		if done, err := next.handleAttrs(rec.Time, rec.Level, msg, attrs); done {
			return err
		}
	}
	out := slog.NewRecord(rec.Time, rec.Level, msg, rec.PC)
	out.AddAttrs(attrs...)
	return h.next.Handle(ctx, out)
}

// inMillis replaces durations by milliseconds and adds Ms to their keys,
// because slog would write nanoseconds in JSON. It modifies the list and
// reports whether there were any.
func inMillis(attrs []slog.Attr) (changed bool) {
	for i, a := range attrs {
		switch a.Value.Kind() {
		case slog.KindDuration:
			key := "tookMs" // the usual key
			if a.Key != "took" {
				key = a.Key + "Ms"
			}
			attrs[i] = slog.Float64(key, float64(a.Value.Duration().Microseconds())/1000)
			changed = true
		case slog.KindGroup:
			inner := slices.Clone(a.Value.Group())
			if inMillis(inner) {
				attrs[i].Value = slog.GroupValue(inner...)
				changed = true
			}
		}
	}
	return changed
}

// clean returns the attributes with secrets masked, and reports whether there
// were any. It does not modify attrs.
func (h *handler) clean(attrs []slog.Attr) ([]slog.Attr, bool) {
	var out []slog.Attr
	for i, a := range attrs {
		v, changed := h.cleanValue(a.Key, a.Value)
		if changed && out == nil {
			out = slices.Clone(attrs)
		}
		if changed {
			out[i].Value = v
		}
	}
	if out == nil {
		return attrs, false
	}
	return out, true
}

func (h *handler) cleanValue(key string, v slog.Value) (slog.Value, bool) {
	r := h.redactor
	if r == nil {
		return v, false
	}
	switch v.Kind() {
	case slog.KindString:
		s := v.String()
		if s != "" && s != Redacted && SecretName(key) {
			return slog.StringValue(Redacted), true
		}
		if c := r.String(s); c != s {
			return slog.StringValue(c), true
		}
	case slog.KindGroup:
		if c, changed := h.clean(v.Group()); changed {
			return slog.GroupValue(c...), true
		}
	case slog.KindLogValuer:
		c, _ := h.cleanValue(key, v.Resolve())
		return c, true
	case slog.KindAny:
		return h.cleanAny(key, v.Any())
	}
	return v, false
}

// cleanAny masks secrets in the text that slog would write for v.
func (h *handler) cleanAny(key string, v any) (slog.Value, bool) {
	r := h.redactor
	if SecretName(key) && v != nil {
		return slog.StringValue(Redacted), true
	}
	switch v := v.(type) {
	case nil, bool, int, slog.Level:
		return slog.Value{}, false
	case error:
		clean := r.Error(v)
		return slog.AnyValue(clean), true
	case json.RawMessage:
		return slog.StringValue(string(r.JSON(v))), true
	case []byte:
		return slog.StringValue(r.String(string(v))), true
	case fmt.Stringer:
		return slog.StringValue(r.String(v.String())), true
	}
	b, err := json.Marshal(v)
	if err != nil {
		return slog.StringValue(r.String(fmt.Sprintf("%+v", v))), true
	}
	if s, text := unquoted(b); text {
		return slog.StringValue(r.String(s)), true
	}
	return slog.AnyValue(jsonText(r.JSON(b))), true
}

// unquoted decodes a JSON string.
func unquoted(b []byte) (s string, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return "", false
	}
	ok = json.Unmarshal(b, &s) == nil
	return s, ok
}

// jsonText is written unchanged, both by JSON and by text handlers.
type jsonText json.RawMessage

func (j jsonText) MarshalJSON() ([]byte, error) { return j, nil }
func (j jsonText) String() string               { return string(j) }
