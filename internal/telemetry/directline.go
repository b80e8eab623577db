package telemetry

import (
	"log/slog"
	"math"
	"strconv"
	"time"
)

// attrHandler is a handler that can take a record without a slog.Record, whose
// attributes beyond the fifth cost allocations.
type attrHandler interface {
	handleAttrs(at time.Time, level slog.Level, msg string, attrs []slog.Attr) (done bool, err error)
}

// appendLine appends the line that slog's JSON handler would write. ok is
// false for what is left to that handler: texts with characters that are
// escaped, levels and kinds of values that are rare.
func appendLine(dst []byte, at time.Time, level slog.Level, msg string, bound []byte, attrs []slog.Attr) (line []byte, ok bool) {
	switch level {
	case slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError:
	default:
		return dst, false
	}
	if year := at.Year(); at.IsZero() || year < 0 || year > 9999 || !plainText(msg) {
		return dst, false
	}
	dst = append(dst, `{"time":"`...)
	dst = at.AppendFormat(dst, time.RFC3339Nano)
	dst = append(append(dst, `","level":"`...), levelName(level)...)
	dst = append(append(dst, `","msg":"`...), msg...)
	dst = append(append(dst, '"'), bound...)
	if dst, ok = appendAttrs(dst, attrs); !ok {
		return dst, false
	}
	return append(dst, "}\n"...), true
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

// plainText reports whether a text stands in JSON as it is.
func plainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
