package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/tool"
)

// Flag is a suspicious part of a definition that a person should review before
// a model reads it.
type Flag struct {
	Kind    string `json:"kind"`    // hidden, encoded, override, secrecy, exfiltration, command
	Where   string `json:"where"`   // description, inputSchema.properties.path.description …
	What    string `json:"what"`    // in words
	Excerpt string `json:"excerpt"` // the matching text, with invisible characters spelled out
}

// String returns the flag in one line.
func (f Flag) String() string {
	return fmt.Sprintf("%s: %s in %s: %q", f.Kind, f.What, f.Where, f.Excerpt)
}

// Limits on what is inspected in one definition. Of a longer text both ends are
// inspected.
const (
	maxText    = 32 << 10
	maxStrings = 2000
	maxFlags   = 12
	maxNesting = 64
)

// Inspect looks for invisible characters, encoded sentences and known forms
// of prompt injection in every string of the definition: names, descriptions,
// enumerations, defaults. The absence of flags does not prove that a definition
// is harmless.
func Inspect(d tool.Definition) []Flag {
	var v any
	dec := json.NewDecoder(bytes.NewReader(d.Raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil
	}
	var in inspector
	in.value(v, "", 0)
	return in.flags
}

// InspectText inspects one text that models read, such as the instructions of a
// server.
func InspectText(where, text string) []Flag {
	var in inspector
	in.text(where, text)
	return in.flags
}

// inspector collects flags while it walks a definition.
type inspector struct {
	strings int // inspected so far
	flags   []Flag
}

func (in *inspector) value(v any, where string, depth int) {
	if depth > maxNesting || in.strings > maxStrings {
		return
	}
	switch v := v.(type) {
	case string:
		in.text(where, v)
	case []any:
		for i, e := range v {
			in.value(e, where+"["+strconv.Itoa(i)+"]", depth+1)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if where != "" {
				in.text("a key of "+where, k)
			}
			in.value(v[k], strings.TrimPrefix(where+"."+k, "."), depth+1)
		}
	}
}

func (in *inspector) text(where, s string) {
	in.strings++
	if in.strings > maxStrings || len(s) < 3 {
		return
	}
	if len(s) > 2*maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "\n" + strings.ToValidUTF8(s[len(s)-maxText:], "")
	}
	for _, f := range slices.Concat(hidden(s), matchPatterns(s), encoded(s)) {
		f.Where = where
		if len(in.flags) < maxFlags && !slices.Contains(in.flags, f) {
			in.flags = append(in.flags, f)
		}
	}
}

// excerpt returns the beginning of s in one line.
func excerpt(s string) string {
	const maxRunes = 120
	if runes := []rune(s); len(runes) > maxRunes {
		s = string(runes[:maxRunes]) + "…"
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		return r
	}, Visible(s)))
}

// Visible returns s with invisible characters replaced by their code, such as
// ‹U+200B›.
func Visible(s string) string {
	if strings.IndexFunc(s, isHidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isHidden(r) {
			fmt.Fprintf(&b, "‹U+%04X›", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
