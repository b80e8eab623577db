package telemetry

import (
	"bytes"
	"log/slog"
	"math"
	"strconv"
	"time"
)

// attrHandler is a handler that accepts attributes without a slog.Record, which
// allocates for attributes beyond the fifth.
type attrHandler interface {
	handleAttrs(at time.Time, level slog.Level, msg string, attrs []slog.Attr) (done bool, err error)
}

// appendLine appends the line that slog's JSON handler would write. ok is false
// for records that must be left to that handler: those with text that needs
// escaping or with uncommon levels or kinds of values.
func (t *timeText) appendLine(dst []byte, at time.Time, level slog.Level, msg string, bound []byte, attrs []slog.Attr) (line []byte, ok bool) {
	switch level {
	case slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError:
	default:
		return dst, false
	}
	if !plainText(msg) {
		return dst, false
	}
	dst = append(dst, `{"time":"`...)
	if dst, ok = t.append(dst, at); !ok {
		return dst, false
	}
	dst = append(append(dst, `","level":"`...), levelName(level)...)
	dst = append(append(dst, `","msg":"`...), msg...)
	dst = append(append(dst, '"'), bound...)
	if dst, ok = appendAttrs(dst, attrs); !ok {
		return dst, false
	}
	return append(dst, "}\n"...), true
}

// timeText formats times as slog does. It caches the text of the last second,
// because many lines are written within the same second.
type timeText struct {
	second     int64
	zone       *time.Location // nil before the first call
	head, tail []byte         // before and after the fraction of the second
}

// append appends a time. ok is false if slog would format it differently.
func (t *timeText) append(dst []byte, at time.Time) (out []byte, ok bool) {
	if at.Unix() != t.second || at.Location() != t.zone {
		if year := at.Year(); at.IsZero() || year < 0 || year > 9999 {
			return dst, false
		}
		const seconds = len("2006-01-02T15:04:05")
		text := at.AppendFormat(t.head[:0], time.RFC3339)
		t.head, t.tail = text[:seconds], append(t.tail[:0], text[seconds:]...)
		t.second, t.zone = at.Unix(), at.Location()
	}
	dst = append(dst, t.head...)
	if nanos := at.Nanosecond(); nanos > 0 {
		digits := [10]byte{0: '.'}
		for i := 9; i > 0; i-- {
			digits[i] = '0' + byte(nanos%10)
			nanos /= 10
		}
		dst = append(dst, bytes.TrimRight(digits[:], "0")...)
	}
	return append(dst, t.tail...), true
}

// appendAttrs appends each attribute with a comma before it.
func appendAttrs(dst []byte, attrs []slog.Attr) (out []byte, ok bool) {
	for i := range attrs {
		a := &attrs[i]
		if a.Key == "" || !plainText(a.Key) {
			return dst, false
		}
		dst = append(append(append(dst, `,"`...), a.Key...), `":`...)
		switch a.Value.Kind() {
		case slog.KindString:
			text := a.Value.String()
			if !plainText(text) {
				return dst, false
			}
			dst = append(append(append(dst, '"'), text...), '"')
		case slog.KindInt64:
			dst = strconv.AppendInt(dst, a.Value.Int64(), 10)
		case slog.KindUint64:
			dst = strconv.AppendUint(dst, a.Value.Uint64(), 10)
		case slog.KindBool:
			dst = strconv.AppendBool(dst, a.Value.Bool())
		case slog.KindFloat64:
			n := a.Value.Float64()
			if size := math.Abs(n); n != 0 && (size < 1e-6 || size >= 1e21) || n != n {
				return dst, false // encoding/json writes an exponent, or fails
			}
			dst = strconv.AppendFloat(dst, n, 'f', -1, 64)
		default:
			return dst, false
		}
	}
	return dst, true
}

// plainText reports whether a text needs no escaping in JSON.
func plainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
