package rawjson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Errors of [Check] and [SkipValue].
var (
	ErrSyntax = errors.New("not valid JSON")
	ErrDepth  = errors.New("JSON nested too deeply")
	ErrUTF8   = errors.New("not valid UTF-8")
)

// MaxDepth bounds the scanner's recursion, like the limit of encoding/json.
const MaxDepth = 10_000

// RepairUTF8 returns b with invalid UTF-8 replaced by U+FFFD.
func RepairUTF8(b []byte) []byte { return bytes.ToValidUTF8(b, []byte("\uFFFD")) }

// InvalidUTF8 returns the index of the first byte that is not valid UTF-8, or
// -1.
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

// asciiRun returns a length up to which b is ASCII, in steps of 64 bytes. Most
// large messages are ASCII throughout.
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
// depth levels. An error that is [ErrDepth] is only about the depth.
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

// SkipSpace returns the index of the first byte at or after i that is not JSON
// white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// SkipValue returns the index after the value that begins at i, where there
// must be no white space. depth is the number of levels that may still be
// opened.
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

// WalkObject returns the index after the object that begins at i, and calls
// found, which may be nil, for each member.
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
