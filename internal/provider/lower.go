package provider

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// maxWritten bounds the number of subschemas in one declaration. It is far
// above what a model can use.
const maxWritten = 2_000

// maxRepeats is how often a schema may contain itself before it is cut: once
// shows the recursion.
const maxRepeats = 2

// lowering converts one tool's schema into one dialect and records what is
// lost.
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

// loss is a part of a schema that its declaration does not express.
type loss struct{ path, message string }

// lose records a loss.
func (l *lowering) lose(path, format string, args ...any) {
	lost := loss{path, fmt.Sprintf(format, args...)}
	if !l.seen[lost] {
		l.seen[lost] = true
		l.losses = append(l.losses, lost)
	}
}

func (l *lowering) takes(keyword string) bool { return l.d.keywords[keyword] }

// schema converts n. It returns nil for a schema that no value satisfies.
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
		l.lose(path, "%s cannot be resolved; anything is declared in its place", f.missing)
	}
	w := &schemaWriter{lowering: l, n: f, path: path, depth: depth, out: newObject()}
	w.write()
	return w.out
}

// enter counts the referenced schemas on the path from the root; every
// recursion passes through one of them.
func (l *lowering) enter(n *node, by int) {
	l.stack[n] += by
	for _, p := range n.parts {
		l.stack[p] += by
	}
}

func (l *lowering) repeats(n *node) bool {
	return l.stack[n] >= maxRepeats && (n.label != "" || n == l.doc.root)
}

// cut replaces a recursive or deeply nested schema with one that only has the
// type.
func (l *lowering) cut(n *node, path string) *object {
	f := l.doc.flatten(n)
	name := cmp.Or(f.label, f.title, "the level above")
	t := f.types
	if t == 0 {
		t = f.implied()
	}
	note := "same form as " + name
	bare := &node{types: t, description: strings.TrimSpace(f.description + " (" + note + ")")}
	if t.has(tArray) {
		bare.items = &node{}
	}
	l.lose(path, "nested too deeply or recursive; cut (%s)", note)
	w := &schemaWriter{lowering: l, n: bare, path: path, depth: math.MaxInt32, out: newObject()}
	w.write()
	return w.out
}

// implied derives the type of a schema without one from its keywords.
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
	if t&(t-1) != 0 { // keywords of several types: ambiguous
		return 0
	}
	return t
}

// schemaWriter converts one schema.
type schemaWriter struct {
	*lowering
	n     *node
	path  string
	depth int
	out   *object
	hints []string
}

func (w *schemaWriter) hint(format string, args ...any) {
	w.hints = append(w.hints, fmt.Sprintf(format, args...))
}

// missing adds a note about a keyword that the dialect does not support.
func (w *schemaWriter) missing(keyword, format string, args ...any) {
	w.hint(format, args...)
	w.lose(w.path, "%s cannot be declared; moved to the description", keyword)
}

func (w *schemaWriter) write() {
	n := w.n
	t := n.types
	if t == 0 && len(n.alts) == 0 && !w.testing {
		t = n.implied()
	}
	if len(n.alts) > 0 && (w.d.anyOfAlone || len(n.alts) > 1 && !w.takes("allOf")) {
		w.distribute()
		return
	}
	if w.d.oneType {
		if t.has(tNull) && t != tNull {
			w.out.set("nullable", true)
			t &^= tNull
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

func (w *schemaWriter) setType(t types) {
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
		w.out.setFirst("type", toAnySlice(names))
	}
}
