package rawjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

const (
	everyByte = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// special sets the high bit in the first byte of x that is a control character,
// a quote or a backslash. Later bytes of the result may be wrong and must be
// ignored. With the second bit flipped, exactly the quote and the control
// characters are below 0x21.
func special(x uint64) uint64 {
	low := (x ^ everyByte*0x02) - everyByte*0x21
	slash := x ^ everyByte*'\\'
	return (low&^x | (slash-everyByte)&^slash) & highBits
}

// plainRun returns the index of the first byte at or after i that is a control
// character, a quote or a backslash. Most of a large message is inside strings,
// so it processes many bytes at a time.
func plainRun(b []byte, i int) int {
	for n := 0; len(b)-i >= 32; i += 32 {
		x := b[i : i+32]
		if special(binary.LittleEndian.Uint64(x))|special(binary.LittleEndian.Uint64(x[8:]))|
			special(binary.LittleEndian.Uint64(x[16:]))|special(binary.LittleEndian.Uint64(x[24:])) != 0 {
			break
		}
		if n++; n == 8 { // a long string
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

// window is the number of bytes of a long string that are checked at a time.
const window = 1 << 10

// plainWindows skips consecutive windows from i that contain no special byte,
// and returns the index after them. Searching for single bytes is faster than
// plainRun, and control characters are the rarest, so they are checked last.
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

// escapeLen returns the length of the escape sequence at the beginning of b, or
// 0 if it is not valid.
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

// Unquote decodes a quoted JSON string.
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

// AppendQuoted appends s as a JSON string. Invalid UTF-8 is replaced by U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	return AppendQuotedBytes(dst, unsafe.Slice(unsafe.StringData(s), len(s))) // only reads the bytes
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
