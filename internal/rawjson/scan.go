package rawjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// Why bytes are not to be used as JSON.
var (
	ErrSyntax = errors.New("not valid JSON")
	ErrDepth  = errors.New("JSON nested too deeply")
	ErrUTF8   = errors.New("not valid UTF-8")
)

// MaxDepth bounds the scanner's recursion, as encoding/json bounds its
// own.
const MaxDepth = 10_000

// RepairUTF8 returns b with U+FFFD in place of bytes that are not UTF-8.
func RepairUTF8(b []byte) []byte { return bytes.ToValidUTF8(b, []byte("\uFFFD")) }

// InvalidUTF8 returns the index of the first byte that is not UTF-8, or -1.
func InvalidUTF8(b []byte) int {
	ascii := asciiRun(b)
	if utf8.Valid(b[ascii:]) {
		return -1
	}
	for i := ascii; ; {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
}

// asciiRun returns the length of the beginning of b that is ASCII, or a little
// less. Large messages are ASCII throughout as a rule.
func asciiRun(b []byte) int {
	i := 0
	for ; len(b)-i >= 64; i += 64 {
		x := b[i : i+64]
		if (binary.LittleEndian.Uint64(x)|binary.LittleEndian.Uint64(x[8:])|binary.LittleEndian.Uint64(x[16:])|binary.LittleEndian.Uint64(x[24:])|
			binary.LittleEndian.Uint64(x[32:])|binary.LittleEndian.Uint64(x[40:])|binary.LittleEndian.Uint64(x[48:])|binary.LittleEndian.Uint64(x[56:]))&highBits != 0 {
			break
		}
	}
	return i
}

// Check returns nil if data is one JSON value, valid UTF-8 and nested at most
// depth levels. An error that is [ErrDepth] is about the depth alone.
func Check(data []byte, depth int) error {
	if at := InvalidUTF8(data); at >= 0 {
		return fmt.Errorf("the JSON is %w, at byte %d", ErrUTF8, at)
	}
	end, err := SkipValue(data, SkipSpace(data, 0), min(depth, MaxDepth))
	if err == ErrDepth {
		return fmt.Errorf("%w: deeper than %d levels", ErrDepth, depth)
	}
	if err == nil && SkipSpace(data, end) != len(data) {
		err = ErrSyntax
	}
	if err != nil {
		return fmt.Errorf("%w, at byte %d", err, end)
	}
	return nil
}

// Valid reports whether data is one JSON value, as json.Valid does.
func Valid(data []byte) bool {
	end, err := SkipValue(data, SkipSpace(data, 0), MaxDepth)
	return err == nil && SkipSpace(data, end) == len(data)
}

// TooDeep reports whether a JSON value is nested deeper than depth levels.
func TooDeep(value []byte, depth int) bool {
	_, err := SkipValue(value, SkipSpace(value, 0), depth)
	return err == ErrDepth
}

// SkipSpace returns the index of the first byte at or after i that is no JSON
// white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// SkipValue returns the index after the value that begins at i, where white
// space has been skipped already. depth is how many levels may still open.
func SkipValue(b []byte, i, depth int) (int, error) {
	if i >= len(b) {
		return i, ErrSyntax
	}
	switch c := b[i]; c {
	case '"':
		return skipString(b, i)
	case '{':
		return WalkObject(b, i, depth, nil)
	case '[':
		return skipArray(b, i, depth)
	case 't':
		return skipLiteral(b, i, "true")
	case 'f':
		return skipLiteral(b, i, "false")
	case 'n':
		return skipLiteral(b, i, "null")
	default:
		return skipNumber(b, i)
	}
}

// WalkObject returns where the object at i ends, and on the way hands each
// member to found, which may be nil.
func WalkObject(b []byte, i, depth int, found func(key, value []byte)) (int, error) {
	if depth <= 0 {
		return i, ErrDepth
	}
	i = SkipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return i, ErrSyntax
		}
		key := i
		keyEnd, err := skipString(b, i)
		if err != nil {
			return keyEnd, err
		}
		if i = SkipSpace(b, keyEnd); i >= len(b) || b[i] != ':' {
			return i, ErrSyntax
		}
		i = SkipSpace(b, i+1)
		end, err := SkipValue(b, i, depth-1)
		if err != nil {
			return end, err
		}
		if found != nil {
			found(b[key:keyEnd], b[i:end:end])
		}
		if i = SkipSpace(b, end); i >= len(b) {
			return i, ErrSyntax
		}
		switch b[i] {
		case '}':
			return i + 1, nil
		case ',':
			i = SkipSpace(b, i+1)
		default:
			return i, ErrSyntax
		}
	}
}

func skipArray(b []byte, i, depth int) (int, error) {
	if depth <= 0 {
		return i, ErrDepth
	}
	i = SkipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for {
		var err error
		if i, err = SkipValue(b, i, depth-1); err != nil {
			return i, err
		}
		if i = SkipSpace(b, i); i >= len(b) {
			return i, ErrSyntax
		}
		switch b[i] {
		case ']':
			return i + 1, nil
		case ',':
			i = SkipSpace(b, i+1)
		default:
			return i, ErrSyntax
		}
	}
}

func skipLiteral(b []byte, i int, word string) (int, error) {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return i, ErrSyntax
	}
	return i + len(word), nil
}

func skipNumber(b []byte, i int) (int, error) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	digits := func() bool {
		start := i
		for i < len(b) && '0' <= b[i] && b[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return i, ErrSyntax
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return i, ErrSyntax
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return i, ErrSyntax
		}
	}
	return i, nil
}

const (
	everyByte = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// special has the high bit set in the first byte of x that is a control
// character, a quote or a backslash. Later bytes may be wrong, and are not to
// be looked at. A quote with its second bit flipped is below 0x21, as the
// control characters are with theirs, and nothing else is.
func special(x uint64) uint64 {
	low := (x ^ everyByte*0x02) - everyByte*0x21
	slash := x ^ everyByte*'\\'
	return (low&^x | (slash-everyByte)&^slash) & highBits
}

// plainRun returns the index of the first byte at or after i that is a control
// character, a quote or a backslash. Most of a large message is the inside of
// strings, so it goes many bytes at a time.
func plainRun(b []byte, i int) int {
	for n := 0; len(b)-i >= 32; i += 32 {
		x := b[i : i+32]
		if special(binary.LittleEndian.Uint64(x))|special(binary.LittleEndian.Uint64(x[8:]))|
			special(binary.LittleEndian.Uint64(x[16:]))|special(binary.LittleEndian.Uint64(x[24:])) != 0 {
			break
		}
		if n++; n == 8 { // the string is a long one
			i = plainWindows(b, i+32) - 32 // the loop adds 32 again
		}
	}
	for ; len(b)-i >= 8; i += 8 {
		if hit := special(binary.LittleEndian.Uint64(b[i:])); hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	for i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// window is how much of a long string is looked at at once.
const window = 1 << 10

// plainWindows returns the end of the last window at or after i that is plain
// as a whole. The search for one byte is faster than that for three, and none
// is rarer than a control character.
func plainWindows(b []byte, i int) int {
	for ; len(b)-i >= window; i += window {
		w := b[i : i+window]
		if bytes.IndexByte(w, '"') >= 0 || bytes.IndexByte(w, '\\') >= 0 {
			return i
		}
		var control uint64
		for ; len(w) >= 32; w = w[32:] {
			x0, x1 := binary.LittleEndian.Uint64(w), binary.LittleEndian.Uint64(w[8:])
			x2, x3 := binary.LittleEndian.Uint64(w[16:]), binary.LittleEndian.Uint64(w[24:])
			control |= (x0-everyByte*0x20)&^x0 | (x1-everyByte*0x20)&^x1 | (x2-everyByte*0x20)&^x2 | (x3-everyByte*0x20)&^x3
		}
		if control&highBits != 0 {
			return i
		}
	}
	return i
}

// skipString returns the index after the string that opens at i.
func skipString(b []byte, i int) (int, error) {
	for i++; ; {
		if i = plainRun(b, i); i >= len(b) {
			return i, ErrSyntax
		}
		switch b[i] {
		case '"':
			return i + 1, nil
		case '\\':
			n := escapeLen(b[i:])
			if n == 0 {
				return i, ErrSyntax
			}
			i += n
		default:
			return i, ErrSyntax
		}
	}
}

// escapeLen returns the length of the escape that b begins with, 0 when it is
// none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// Unquote returns the Go string of a JSON string in its quotes.
func Unquote(quoted []byte) (string, bool) {
	if len(quoted) < 2 || quoted[0] != '"' {
		return "", false
	}
	inner := quoted[1 : len(quoted)-1]
	plain := true
	for _, c := range inner {
		if c == '\\' || c >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if plain {
		return string(inner), true
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return "", false
	}
	return s, true
}

// keyIs reports whether the quoted JSON string is key, which must be plain
// ASCII. It allocates only for keys written with escapes.
func keyIs(quoted []byte, key string) bool {
	inner := quoted[1 : len(quoted)-1]
	if string(inner) == key {
		return true
	}
	if bytes.IndexByte(inner, '\\') < 0 {
		return false
	}
	s, ok := Unquote(quoted)
	return ok && s == key
}

// AppendQuoted appends s as a JSON string. What is not UTF-8 in it becomes
// U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	return AppendQuotedBytes(dst, unsafe.Slice(unsafe.StringData(s), len(s))) // which only reads it
}

// AppendQuotedBytes is AppendQuoted for bytes.
func AppendQuotedBytes(dst, text []byte) []byte {
	if !utf8.Valid(text) {
		text = RepairUTF8(text)
	}
	dst = append(dst, '"')
	for i := 0; ; i++ {
		end := plainRun(text, i)
		dst = append(dst, text[i:end]...)
		if end == len(text) {
			return append(dst, '"')
		}
		switch c := text[end]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i = end
	}
}
