package provider

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxWritten bounds the schemas that are written out for one tool. It is far
// above what a model can make use of.
const maxWritten = 2_000

// maxRepeats is how often a schema may stand inside itself before it is cut:
// once shows the model the form of the recursion.
const maxRepeats = 2

// lowering writes one tool's schema in one dialect. It remembers what it
// could not say.
type lowering struct {
	doc     *document
	d       *dialect
	concise bool
	testing bool // the schema tests values (if, not) rather than declares them
	written int
	stack   map[*node]int
	losses  []loss
	seen    map[loss]bool
}

// loss is something of a schema that its declaration does not say.
type loss struct{ path, message string }

// lose notes that something of the schema is not in the output.
func (l *lowering) lose(path, format string, args ...any) {
	lost := loss{path, fmt.Sprintf(format, args...)}
	if !l.seen[lost] {
		l.seen[lost] = true
		l.losses = append(l.losses, lost)
	}
}

func (l *lowering) takes(keyword string) bool { return l.d.keywords[keyword] }

// schema writes n. It returns nil for a schema that nothing satisfies.
func (l *lowering) schema(n *node, path string, depth int) *object {
	if l.doc.flatten(n).never {
		return nil
	}
	again := slices.ContainsFunc(n.parts, l.repeats) || l.repeats(n)
	if l.written++; again || depth > l.d.depth || l.written > maxWritten {
		return l.cut(n, path)
	}
	l.enter(n, 1)
	defer l.enter(n, -1)

	f := l.doc.flatten(n)
	if f.cut {
		l.lose(path, "the schema is too large; the rest of it is left out")
	}
	if f.missing != "" {
		l.lose(path, "%s leads nowhere; anything is declared in its place", f.missing)
	}
	w := &writing{lowering: l, n: f, path: path, depth: depth, out: newObject()}
	w.write()
	return w.out
}

// enter counts the schemas that references lead to, on the way down and back:
// every recursion goes through one of them.
func (l *lowering) enter(n *node, by int) {
	l.stack[n] += by
	for _, p := range n.parts {
		l.stack[p] += by
	}
}

func (l *lowering) repeats(n *node) bool {
	return l.stack[n] >= maxRepeats && (n.label != "" || n == l.doc.root)
}

// cut ends a recursion with the plain type, and says so.
func (l *lowering) cut(n *node, path string) *object {
	f := l.doc.flatten(n)
	name := first(f.label, first(f.title, "the level above"))
	t := f.types
	if t == 0 {
		t = f.implied()
	}
	note := "same form as " + name
	bare := &node{types: t, description: strings.TrimSpace(f.description + " (" + note + ")")}
	if t.has(tArray) {
		bare.items = &node{}
	}
	l.lose(path, "nested too deep or without end; cut (%s)", note)
	w := &writing{lowering: l, n: bare, path: path, depth: math.MaxInt32, out: newObject()}
	w.write()
	return w.out
}

// implied guesses the type of a schema that does not say it from what it says.
func (n *node) implied() types {
	if n.hasEnum {
		var t types
		for _, v := range n.enum {
			t |= typesOf(v)
		}
		if t.has(tNumber) {
			t &^= tInteger
		}
		return t
	}
	var t types
	if len(n.props)+len(n.required)+len(n.patternProps) > 0 || n.additional != nil {
		t |= tObject
	}
	if len(n.prefix) > 0 || n.items != nil {
		t |= tArray
	}
	if len(n.patterns) > 0 || n.minLength != "" || n.maxLength != "" {
		t |= tString
	}
	if n.min != "" || n.max != "" || n.exMin != "" || n.exMax != "" || len(n.multiples) > 0 {
		t |= tNumber
	}
	if t&(t-1) != 0 { // keywords of several types: no guess
		return 0
	}
	return t
}

// writing is one schema on its way out.
type writing struct {
	*lowering
	n     *node
	path  string
	depth int
	out   *object
	hints []string
}

func (w *writing) hint(format string, args ...any) {
	w.hints = append(w.hints, fmt.Sprintf(format, args...))
}

// missing tells in words what the dialect cannot say.
func (w *writing) missing(keyword, format string, args ...any) {
	w.hint(format, args...)
	w.lose(w.path, "%s cannot be declared; told in the description", keyword)
}

func (w *writing) write() {
	n := w.n
	t := n.types
	if t == 0 && len(n.alts) == 0 && !w.testing {
		t = n.implied()
	}
	if len(n.alts) > 0 && (w.d.lonelyAnyOf || len(n.alts) > 1 && !w.takes("allOf")) {
		w.distribute()
		return
	}
	if w.d.oneType {
		if null := tNull; t.has(null) && t != null {
			w.out.set("nullable", true)
			t &^= null
		}
		if n.hasEnum && w.d.stringEnums {
			t = w.enumAsText()
		}
		if t == 0 && len(n.alts) == 0 {
			t = tString | tNumber | tBoolean
			if w.path != "" {
				w.lose(w.path, "any value is allowed; only text, numbers and booleans are declared")
			}
		}
		if t&(t-1) != 0 {
			w.splitTypes(t)
			return
		}
	} else {
		if n.hasEnum && len(n.enum) > 0 && !w.enumAsIs() {
			t = w.enumAsText()
		}
		if t.has(tNull) && t != tNull && w.d.dropNull {
			t &^= tNull
		}
	}
	if t == 0 && len(n.alts) == 0 && w.d.strict {
		t = tString | tNumber | tBoolean | tNull
		w.lose(w.path, "any value is allowed; only text, numbers, booleans and null are declared")
	}
	if t.has(tObject) && w.d.textMaps && w.path != "" && !w.hasProps() {
		t = w.mapAsText(t)
	}
	w.setType(t)
	if t == 0 || t.has(tString) {
		w.strings()
	}
	if t == 0 || t.has(tNumber) || t.has(tInteger) {
		w.numbers(t)
	}
	if t.has(tObject) || t == 0 && (w.hasProps() || n.additional != nil || len(n.patternProps)+len(n.dependencies) > 0) {
		w.object()
	}
	if t.has(tArray) || t == 0 && (n.items != nil || len(n.prefix)+len(n.contains) > 0) {
		w.array()
	}
	w.combinations()
	w.remarks()
}

func (w *writing) setType(t types) {
	names := t.names()
	if w.d.upper {
		for i := range names {
			names[i] = strings.ToUpper(names[i])
		}
	}
	switch len(names) {
	case 0:
	case 1:
		w.out.setFirst("type", names[0])
	default:
		w.out.setFirst("type", names)
	}
}

// enumAsIs writes the enum where the dialect takes its values.
func (w *writing) enumAsIs() bool {
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

// enumAsText writes the values of an enum as strings; the call's values are
// turned back by comparing them with the tool's own enum.
func (w *writing) enumAsText() types {
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
	w.out.set("enum", texts)
	return tString
}

// enumText is the string that stands for a value of an enum.
func enumText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(encode(v))
}

// splitTypes writes a schema of several types as a choice between them.
func (w *writing) splitTypes(t types) {
	choice := alternative{}
	for _, name := range typeNames {
		if t.has(name.t) {
			choice.nodes = append(choice.nodes, &node{types: name.t})
		}
	}
	rest := *w.n
	rest.types = t
	rest.alts = append(slices.Clip(rest.alts), choice)
	if nullable, _ := w.out.get("nullable"); nullable == true {
		rest.types |= tNull
		choice.nodes[0].types |= tNull
	}
	w.n, w.out = &rest, newObject()
	w.distribute()
}

// maxBranches bounds a choice that is multiplied out.
const maxBranches = 16

// distribute writes a choice as anyOf and nothing beside it: what stands
// beside the choice is said in each of its branches.
func (w *writing) distribute() {
	base := *w.n
	base.alts, base.flat, base.parts = nil, nil, nil
	branches := []*node{&base}
	for _, alt := range w.n.alts {
		if len(branches)*len(alt.nodes) > maxBranches && len(branches) > 1 {
			w.lose(w.path, "a choice is left out: there are too many combinations")
			continue
		}
		var next []*node
		for _, b := range branches {
			for _, choice := range alt.nodes {
				next = append(next, &node{parts: []*node{choice, b}})
			}
		}
		branches = next
	}
	nullable := false
	var out []any
	for _, b := range branches {
		f := w.doc.flatten(b)
		switch {
		case f.never:
			continue
		case f.types == tNull:
			nullable = true
			continue
		}
		o := w.schema(b, w.path, w.depth+1)
		if o == nil {
			continue
		}
		inner, nested := o.vals["anyOf"].([]any) // a choice among choices is one choice
		if !nested || len(o.keys) > 1 {
			inner = []any{o}
		}
		for _, o := range inner {
			if !containsValue(out, o) {
				out = append(out, o)
			}
		}
	}
	switch {
	case len(out) == 0: // only null, or nothing at all
		w.n = &node{types: tString, description: w.n.description}
		w.out = newObject()
		w.lose(w.path, "no value that can be declared satisfies the schema")
		w.write()
	case len(out) == 1:
		w.out = out[0].(*object)
		w.allowNull(nullable)
	default:
		if nullable && w.d.oneType {
			setNullable(out[0].(*object))
		} else if nullable {
			out = append(out, nullSchema())
		}
		w.out.set("anyOf", out)
		if !w.d.lonelyAnyOf {
			w.remarks()
		}
	}
}

// setNullable marks a schema, or the first branch of a choice.
func setNullable(o *object) {
	if list, ok := o.vals["anyOf"].([]any); ok {
		o = list[0].(*object)
	}
	o.set("nullable", true)
}

func nullSchema() *object {
	o := newObject()
	o.set("type", "null")
	return o
}

// allowNull adds null to what w.out allows.
func (w *writing) allowNull(yes bool) {
	switch {
	case !yes || w.d.dropNull:
	case w.d.oneType:
		setNullable(w.out)
	default:
		w.out = orNull(w.out)
	}
}

// orNull returns a schema that also allows null.
func orNull(o *object) *object {
	t, _ := o.get("type")
	enum, hasEnum := o.get("enum")
	_, hasAlts := o.get("anyOf")
	name, single := t.(string)
	switch {
	case hasAlts && t == nil:
		list, _ := o.vals["anyOf"].([]any)
		if !containsValue(list, nullSchema()) {
			o.set("anyOf", append(slices.Clip(list), nullSchema()))
		}
		return o
	case !single && !hasAlts:
		if names, ok := t.([]string); ok && !slices.Contains(names, "null") {
			o.set("type", append(slices.Clip(names), "null"))
		}
	case single && !hasAlts && name != "null":
		o.set("type", []string{name, "null"})
	}
	if hasEnum {
		switch list := enum.(type) {
		case []any:
			if !containsValue(list, nil) {
				o.set("enum", append(slices.Clip(list), nil))
			}
		case []string:
			var all []any
			for _, s := range list {
				all = append(all, s)
			}
			o.set("enum", append(all, nil))
		}
	}
	return o
}

// mapAsText writes an object of free keys as JSON in a string.
func (w *writing) mapAsText(t types) types {
	w.hint("a JSON object written as text")
	free := *w.n
	free.types, free.title, free.description, free.examples, free.hasDefault = 0, "", "", nil, false
	if told := w.told(&free); told != "{}" {
		w.missing("a map", "fitting %s", told)
	}
	return t&^tObject | tString
}

// hasProps reports whether there is a property to declare.
func (w *writing) hasProps() bool {
	possible := func(n *node) bool { return n == nil || !w.doc.flatten(n).never }
	return slices.ContainsFunc(w.n.props, func(p property) bool { return possible(p.node) }) ||
		slices.ContainsFunc(w.n.required, func(k string) bool { return w.n.prop(k) == nil && possible(w.n.unnamed(k)) })
}

func (w *writing) strings() {
	n := w.n
	for i, f := range n.formats {
		if i == 0 && w.takes("format") && (w.d.formats == nil || w.d.formats[f]) && n.types&^tNull&^tString == 0 {
			if _, set := w.out.get("format"); !set {
				w.out.set("format", f)
			}
			continue
		}
		w.hint("format: %s", f) // a remark in JSON Schema: no loss
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
func (w *writing) bound(keyword string, v json.Number, words string) {
	if v == "" || v == "0" && strings.HasPrefix(keyword, "min") {
		return
	}
	if f, _ := v.Float64(); w.takes(keyword) && (w.d.maxBound == 0 || f <= w.d.maxBound) {
		w.out.set(keyword, v)
		return
	}
	w.missing(keyword, words, v)
}

func (w *writing) numbers(t types) {
	n := w.n
	low, high := n.min, n.max
	exLow, exHigh := n.exMin, n.exMax
	if t == tInteger { // beyond a whole number is the next whole number
		if v, ok := shifted(exLow, math.Floor, 1); ok && !w.takes("exclusiveMinimum") {
			low, exLow = most(low, v), ""
		}
		if v, ok := shifted(exHigh, math.Ceil, -1); ok && !w.takes("exclusiveMaximum") {
			high, exHigh = least(high, v), ""
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

// shifted returns the whole number after a bound.
func shifted(v json.Number, round func(float64) float64, by float64) (json.Number, bool) {
	f, err := v.Float64()
	if err != nil || math.Abs(f) > 1<<52 {
		return "", false
	}
	return json.Number(strconv.FormatFloat(round(f)+by, 'f', -1, 64)), true
}
