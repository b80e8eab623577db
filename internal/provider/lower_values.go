package provider

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// enumAsIs writes the enum if the dialect supports its values.
func (w *schemaWriter) enumAsIs() bool {
	if w.d.stringEnums {
		return false
	}
	enum := w.n.enum
	if w.d.dropNull && len(enum) > 1 {
		enum = slices.DeleteFunc(slices.Clone(enum), func(v any) bool { return v == nil })
	}
	w.out.set("enum", enum)
	return true
}

// enumAsText writes the values of an enum as strings. The values of a call are
// converted back by comparing them with the tool's own enum.
func (w *schemaWriter) enumAsText() types {
	var texts []string
	for _, v := range w.n.enum {
		text := enumText(v)
		switch {
		case v == nil && w.d.oneType:
			w.out.set("nullable", true)
		case text == "":
			w.lose(w.path, "the empty string cannot be declared as a choice")
		case !slices.Contains(texts, text):
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		w.lose(w.path, "null is the only value; it cannot be declared as the only one")
		if t := w.n.implied() &^ tNull; t != 0 {
			return t
		}
		return tString
	}
	if w.d.upper {
		w.out.set("format", "enum")
	}
	w.out.set("enum", toAnySlice(texts))
	return tString
}

// enumText returns the string for a value of an enum.
func enumText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(encode(v))
}

func (w *schemaWriter) strings() {
	n := w.n
	for i, f := range n.formats {
		if i == 0 && w.takes("format") && (w.d.formats == nil || w.d.formats[f]) && n.types&^tNull&^tString == 0 {
			if _, set := w.out.get("format"); !set {
				w.out.set("format", f)
			}
			continue
		}
		w.hint("format: %s", f) // an annotation in JSON Schema, so this is no loss
	}
	for i, p := range n.patterns {
		if _, err := regexp.Compile(p); i == 0 && err == nil && w.takes("pattern") {
			w.out.set("pattern", p)
			continue
		}
		w.missing("pattern", "pattern: %s", p)
	}
	w.bound("minLength", n.minLength, "at least %s characters")
	w.bound("maxLength", n.maxLength, "at most %s characters")
	for _, c := range n.content {
		if w.takes(c.key) {
			w.out.set(c.key, c.text)
		} else {
			w.hint("%s", c.text)
		}
	}
}

// bound writes a bound on a length or a count.
func (w *schemaWriter) bound(keyword string, v json.Number, words string) {
	if v == "" || v == "0" && strings.HasPrefix(keyword, "min") {
		return
	}
	if f, _ := v.Float64(); w.takes(keyword) && (w.d.maxBound == 0 || f <= w.d.maxBound) {
		w.out.set(keyword, v)
		return
	}
	w.missing(keyword, words, v)
}

func (w *schemaWriter) numbers(t types) {
	n := w.n
	low, high := n.min, n.max
	exLow, exHigh := n.exMin, n.exMax
	if t == tInteger { // the next integer beyond the bound
		if v, ok := shifted(exLow, math.Floor, 1); ok && !w.takes("exclusiveMinimum") {
			low, exLow = maxNumber(low, v), ""
		}
		if v, ok := shifted(exHigh, math.Ceil, -1); ok && !w.takes("exclusiveMaximum") {
			high, exHigh = minNumber(high, v), ""
		}
	}
	for _, b := range []struct {
		keyword, words string
		v              json.Number
	}{
		{"minimum", "at least %s", low}, {"maximum", "at most %s", high},
		{"exclusiveMinimum", "more than %s", exLow}, {"exclusiveMaximum", "less than %s", exHigh},
	} {
		switch {
		case b.v == "":
		case w.takes(b.keyword):
			w.out.set(b.keyword, b.v)
		default:
			w.missing(b.keyword, b.words, b.v)
		}
	}
	for i, m := range n.multiples {
		if f, _ := m.Float64(); i == 0 && f > 0 && w.takes("multipleOf") {
			w.out.set("multipleOf", m)
		} else {
			w.missing("multipleOf", "a multiple of %s", m)
		}
	}
	if w.d.upper && len(n.formats) > 0 && slices.Contains([]string{"int32", "int64", "float", "double"}, n.formats[0]) &&
		(t == tInteger) == strings.HasPrefix(n.formats[0], "int") && t&(t-1) == 0 {
		w.out.set("format", n.formats[0])
	}
}

// shifted returns the next integer after a bound.
func shifted(v json.Number, round func(float64) float64, by float64) (json.Number, bool) {
	f, err := v.Float64()
	if err != nil || math.Abs(f) > 1<<52 {
		return "", false
	}
	return json.Number(strconv.FormatFloat(round(f)+by, 'f', -1, 64)), true
}
