package schema

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// text checks the keywords of strings.
func (c *checker) text(s *jsonschema.Schema, v string, out *report) bool {
	ok := true
	if s.MinLength != nil || s.MaxLength != nil {
		c.spend(len(v) / 64)
		n := utf8.RuneCountInString(v)
		if s.MinLength != nil && n < *s.MinLength {
			ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.MinLength{Got: n, Want: *s.MinLength} })
		}
		if s.MaxLength != nil && n > *s.MaxLength {
			ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.MaxLength{Got: n, Want: *s.MaxLength} })
		}
	}
	if s.Pattern != nil && !c.match(s.Pattern, v) {
		ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.Pattern{Got: cut(v), Want: cut(s.Pattern.String())} })
	}
	return ok
}

// number checks the keywords of numbers.
func (c *checker) number(s *jsonschema.Schema, v json.Number, out *report) bool {
	if s.Minimum == nil && s.Maximum == nil && s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil {
		return true
	}
	c.spend(4)
	n := rational(v)
	ok := true
	if s.Minimum != nil && n.Cmp(s.Minimum) < 0 {
		ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.Minimum{Got: n, Want: s.Minimum} })
	}
	if s.Maximum != nil && n.Cmp(s.Maximum) > 0 {
		ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.Maximum{Got: n, Want: s.Maximum} })
	}
	if s.ExclusiveMinimum != nil && n.Cmp(s.ExclusiveMinimum) <= 0 {
		ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.ExclusiveMinimum{Got: n, Want: s.ExclusiveMinimum} })
	}
	if s.ExclusiveMaximum != nil && n.Cmp(s.ExclusiveMaximum) >= 0 {
		ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.ExclusiveMaximum{Got: n, Want: s.ExclusiveMaximum} })
	}
	if s.MultipleOf != nil && s.MultipleOf.Sign() != 0 && !new(big.Rat).Quo(n, s.MultipleOf).IsInt() {
		ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.MultipleOf{Got: n, Want: s.MultipleOf} })
	}
	return ok
}

// Numbers are exact up to this many digits and this exponent, and rounded
// beyond: an exact 1e999999 takes 400 KB, and a million digits take a second.
const (
	maxDigits   = 400
	maxExponent = 400
)

// decimal is a number as its significant digits and the power of ten of the
// last digit.
type decimal struct {
	negative bool
	digits   string // without leading and trailing zeros; empty for zero
	exponent int
}

func parseDecimal(n json.Number) (d decimal) {
	text := string(n)
	if text, d.negative = strings.CutPrefix(text, "-"); text == "" {
		return decimal{}
	}
	mantissa := text
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa = text[:i]
		e, err := strconv.Atoi(text[i+1:])
		if err != nil || e > 1<<40 || e < -1<<40 { // may overflow an int
			e = 1 << 40
			if text[i+1] == '-' {
				e = -e
			}
		}
		d.exponent = e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.exponent -= len(fraction)
	digits := strings.TrimRight(whole+fraction, "0")
	d.exponent += len(whole) + len(fraction) - len(digits)
	d.digits = strings.TrimLeft(digits, "0")
	if d.digits == "" {
		return decimal{}
	}
	return d
}

// rational returns the number for comparison, rounded if it is out of range.
func rational(n json.Number) *big.Rat {
	d := parseDecimal(n)
	if d.digits == "" {
		return new(big.Rat)
	}
	if len(d.digits) > maxDigits {
		d.exponent += len(d.digits) - maxDigits
		d.digits = d.digits[:maxDigits]
	}
	d.exponent = max(-maxExponent-maxDigits, min(d.exponent, maxExponent))
	r, ok := new(big.Rat).SetString(d.digits + "e" + strconv.Itoa(d.exponent))
	if !ok {
		return new(big.Rat) // digits and a small exponent always parse
	}
	if d.negative {
		r.Neg(r)
	}
	return r
}

func isInteger(n json.Number) bool { return parseDecimal(n).exponent >= 0 }

// equal compares values like JSON Schema: numbers by value, objects regardless
// of order.
func (c *checker) equal(a, b any) bool {
	c.spend(1)
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			other, ok := b[key]
			if !ok || !c.equal(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, c.equal)
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		c.spend((len(a) + len(b)) / 64)
		return parseDecimal(a) == parseDecimal(b)
	case string:
		b, ok := b.(string)
		if ok && len(a) == len(b) {
			c.spend(len(a) / 64)
		}
		return ok && a == b
	}
	return a == b // nil and booleans; values of different types differ
}

// duplicates returns the indexes of two equal items, i < j; j is 0 if there are
// none.
func (c *checker) duplicates(items []any) (i, j int) {
	seen := make(map[string]int, len(items))
	var buf []byte
	for j, item := range items {
		buf = c.canonical(buf[:0], item)
		if i, twice := seen[string(buf)]; twice {
			return i, j
		}
		seen[string(buf)] = j
	}
	return 0, 0
}

// canonical appends an encoding that is the same for equal values.
func (c *checker) canonical(dst []byte, v any) []byte {
	c.spend(1)
	switch v := v.(type) {
	case nil:
		return append(dst, 'n')
	case bool:
		return strconv.AppendBool(dst, v)
	case json.Number:
		c.spend(len(v) / 16)
		d := parseDecimal(v)
		if d.negative {
			dst = append(dst, '-')
		}
		return strconv.AppendInt(append(append(dst, d.digits...), 'e'), int64(d.exponent), 10)
	case string:
		c.spend(len(v) / 16)
		return strconv.AppendQuote(dst, v)
	case []any:
		dst = append(dst, '[')
		for _, item := range v {
			dst = append(c.canonical(dst, item), ',')
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for _, key := range slices.Sorted(maps.Keys(v)) {
			dst = append(strconv.AppendQuote(dst, key), ':')
			dst = append(c.canonical(dst, v[key]), ',')
		}
		return append(dst, '}')
	}
	return dst
}
