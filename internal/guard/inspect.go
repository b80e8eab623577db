package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/tool"
)

// Flag is one thing in a definition that a person should look at before a
// model reads it.
type Flag struct {
	Kind    string `json:"kind"`    // hidden, override, secrecy, exfiltration, shadowing, coercion, command, encoded
	Where   string `json:"where"`   // description, inputSchema.properties.path.description …
	What    string `json:"what"`    // in words
	Excerpt string `json:"excerpt"` // the text that raised it, made visible
}

// String is the flag in one line.
func (f Flag) String() string {
	return fmt.Sprintf("%s: %s in %s: %q", f.Kind, f.What, f.Where, f.Excerpt)
}

// Bounds of what is looked at in one definition. A text that is longer is
// read at both ends, because that is where people do not look.
const (
	maxText    = 32 << 10
	maxStrings = 2000
	maxFlags   = 12
	maxNesting = 64
)

// Inspect looks for hidden characters and for text that speaks to the model
// rather than about the tool, in every string of the definition: names,
// descriptions, enumerations, defaults. It finds what it knows, and it is no
// proof that a definition is harmless.
func Inspect(d tool.Definition) []Flag {
	w := newWalker(d)
	w.run(d)
	return w.done()
}

func newWalker(d tool.Definition) *walker {
	return &walker{own: map[string]bool{strings.ToLower(d.Name.Tool): true}}
}

func (w *walker) run(d tool.Definition) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(d.Raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return
	}
	w.names(v, 0)
	w.walk(v, "", 0)
}

// names notes what the definition calls its parameters.
func (w *walker) names(v any, depth int) {
	if depth > maxNesting || len(w.own) > maxStrings {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			w.names(e, depth+1)
		}
	case map[string]any:
		for k, e := range v {
			if properties, ok := e.(map[string]any); ok && k == "properties" {
				for name := range properties {
					w.own[strings.ToLower(name)] = true
				}
			}
			w.names(e, depth+1)
		}
	}
}

// InspectText looks at one text that models read, such as the instructions of
// a server.
func InspectText(where, text string) []Flag {
	w := &walker{}
	w.text(where, text)
	return w.done()
}

// enough is what the findings of a definition must weigh together for it to be
// flagged. It was set where thousands of real tools stay clear.
const enough = 0.69

// finding is a flag and how much it weighs.
type finding struct {
	Flag
	weight float64
}

type walker struct {
	own      map[string]bool // the names of the tool and its parameters
	strings  int
	findings []finding
}

func (w *walker) walk(v any, where string, depth int) {
	if depth > maxNesting || w.strings > maxStrings {
		return
	}
	switch v := v.(type) {
	case string:
		w.text(where, v)
	case []any:
		for i, e := range v {
			w.walk(e, where+"["+strconv.Itoa(i)+"]", depth+1)
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			at := strings.TrimPrefix(where+"."+k, ".")
			if where != "" {
				w.text("a key of "+where, k)
			}
			w.walk(v[k], at, depth+1)
		}
	}
}

func (w *walker) text(where, s string) {
	w.strings++
	if w.strings > maxStrings || len(s) < 3 {
		return
	}
	if len(s) > 2*maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "\n" + strings.ToValidUTF8(s[len(s)-maxText:], "")
	}
	for _, f := range hidden(s) {
		f.Where = where
		w.findings = append(w.findings, f)
	}
	for _, f := range spoken(s, func(name string) bool { return w.own[name] }, isParameter(where)) {
		f.Where = where
		w.findings = append(w.findings, f)
	}
	for _, f := range encoded(s) {
		f.Where = where
		w.findings = append(w.findings, f)
	}
}

// done weighs what was found: the weights of different rules add up, and one
// rule counts once however often it matched.
func (w *walker) done() []Flag {
	best := map[string]float64{}
	for _, f := range w.findings {
		best[f.What] = max(best[f.What], f.weight)
	}
	total := 0.0
	for _, weight := range best {
		total += weight
	}
	if total < enough {
		return nil
	}
	slices.SortStableFunc(w.findings, func(a, b finding) int {
		switch {
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return 0
	})
	var out []Flag
	seen := map[Flag]bool{}
	for _, f := range w.findings {
		if !seen[f.Flag] && len(out) < maxFlags {
			seen[f.Flag] = true
			out = append(out, f.Flag)
		}
	}
	return out
}

// excerpt shows a piece of text in one line.
func excerpt(s string) string {
	const most = 120
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		return r
	}, Visible(s)))
}

// Visible spells out the characters of a text that nobody sees.
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

// isParameter reports whether a text at that place says what a parameter is
// to hold.
func isParameter(where string) bool {
	return strings.HasSuffix(where, ".description") && strings.Contains(where, "properties.")
}
