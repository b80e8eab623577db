package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"junctor/internal/tool"
)

// maxDescription bounds the description of a tool, maxRemark that of a
// parameter. Both are far above what is useful and below what a request can
// contain.
const (
	maxDescription = 8 << 10
	maxRemark      = 2 << 10
)

// lowered is a tool's schema in a dialect.
type lowered struct {
	schema json.RawMessage
	empty  bool     // no parameters
	notes  []string // for the tool's description
	losses []loss
}

var errNoObject = errors.New("its input schema does not describe an object")

// lower converts the input schema of a tool into a dialect. The root is always
// an object with properties and without combinations, because no provider
// accepts others.
func lower(schema json.RawMessage, d *dialect, concise bool) (lowered, error) {
	v, err := parseJSON(schema)
	if err != nil {
		return lowered{}, fmt.Errorf("its input schema is not JSON: %w", err)
	}
	raw, ok := v.(*object)
	if !ok {
		return lowered{}, errNoObject
	}
	l := &lowering{doc: compile(raw), d: d, concise: concise, stack: map[*node]int{}, seen: map[loss]bool{}}
	root, notes, err := l.foldRoot()
	if err != nil {
		return lowered{}, err
	}
	w := &schemaWriter{lowering: l, n: root, out: newObject()}
	l.stack[l.doc.root]++
	w.write()
	out := newObject()
	for _, k := range w.out.keys {
		if k != "description" && k != "default" && k != "examples" { // the tool's own description says it
			out.set(k, w.out.vals[k])
		}
	}
	notes = append(notes, w.hints...)
	props, _ := out.get("properties")
	return lowered{schema: encode(out), empty: len(props.(*object).keys) == 0, notes: notes, losses: l.losses}, nil
}

// foldRoot converts the root into a plain object: its choices become optional
// properties and a note.
func (l *lowering) foldRoot() (*node, []string, error) {
	flat := l.doc.flatten(l.doc.root)
	if flat.never || flat.types != 0 && !flat.types.has(tObject) {
		return nil, nil, errNoObject
	}
	if flat.cut {
		l.lose("", "the schema is too large; the rest of it is left out")
	}
	if flat.missing != "" {
		l.lose("", "%s cannot be resolved; its parameters are not declared", flat.missing)
	}
	root, notes := l.fold(flat, 0)
	if root.hasEnum {
		l.lose("", "enum at the root cannot be declared; left out")
		root.enum, root.hasEnum = nil, false
	}
	root.types = tObject
	return root, notes, nil
}

// maxFold bounds nested choices.
const maxFold = 4

// fold returns n with its choices merged into its properties.
func (l *lowering) fold(n *node, depth int) (*node, []string) {
	folded := *n
	folded.alts, folded.flat = nil, nil
	folded.props = slices.Clone(n.props)
	var notes []string
	for _, alt := range n.alts {
		var branches []*node
		for _, b := range alt.nodes {
			f := l.doc.flatten(b)
			if f.never || f.types != 0 && !f.types.has(tObject) {
				continue
			}
			if depth < maxFold {
				var inner []string
				f, inner = l.fold(f, depth+1)
				notes = append(notes, inner...)
			}
			branches = append(branches, f)
		}
		if len(branches) == 0 {
			l.lose("", "a choice at the root has no branch that is an object; left out")
			continue
		}
		if len(branches) == 1 {
			folded = *merge(&folded, branches[0])
			continue
		}
		notes = append(notes, l.foldChoice(&folded, alt.exclusive, branches)...)
	}
	return &folded, notes
}

func (l *lowering) foldChoice(into *node, exclusive bool, branches []*node) []string {
	var keys []string
	variants := map[string][]*node{}
	required := slices.Clone(branches[0].required)
	var text []string
	for _, b := range branches {
		for _, p := range b.props {
			if variants[p.key] == nil {
				keys = append(keys, p.key)
			}
			variants[p.key] = append(variants[p.key], p.node)
		}
		required = slices.DeleteFunc(required, func(k string) bool { return !slices.Contains(b.required, k) })
		text = append(text, describeBranch(l.doc, b))
	}
	for _, k := range keys {
		v := l.joinVariants(variants[k])
		if i := slices.IndexFunc(into.props, func(p property) bool { return p.key == k }); i >= 0 {
			into.props[i].node = both(into.props[i].node, v)
		} else {
			into.props = append(into.props, property{key: k, node: both(v, into.unnamedSchema(k))})
		}
	}
	into.required = union(into.required, required)
	text = slices.DeleteFunc(text, func(s string) bool { return s == "" })
	if len(text) == 0 {
		return nil
	}
	how := "at least one"
	if exclusive {
		how = "exactly one"
	}
	l.lose("", "a choice between parameter sets at the root cannot be declared; moved to the description")
	return []string{fmt.Sprintf("Parameters must fit %s of: %s", how, strings.Join(slices.Compact(text), " | "))}
}

// unnamedSchema is like unnamed, but ignores false: a root that forbids
// additional properties and declares its properties only in branches is a
// common mistake.
func (n *node) unnamedSchema(key string) *node {
	if s := n.unnamed(key); s != nil && !s.never {
		return s
	}
	return nil
}

// describeBranch describes one parameter set.
func describeBranch(d *document, b *node) string {
	var parts []string
	for _, p := range b.props {
		f := d.flatten(p.node)
		switch {
		case len(f.enum) == 1:
			parts = append(parts, p.key+"="+tool.Shorten(string(encode(f.enum[0])), 40))
		case b.requires(p.key):
			parts = append(parts, p.key)
		default:
			parts = append(parts, p.key+"?")
		}
	}
	for _, k := range b.required {
		if b.prop(k) == nil {
			parts = append(parts, k)
		}
	}
	return tool.Shorten(strings.Join(parts, ", "), 200)
}

// joinVariants merges the schemas of a property that several branches declare
// differently.
func (l *lowering) joinVariants(variants []*node) *node {
	var distinct []*node
	var shapes []any
	joined := &node{hasEnum: true}
	for _, v := range variants {
		if slices.Contains(distinct, v) {
			continue
		}
		f := l.doc.flatten(v)
		if f.never {
			continue
		}
		shape := shapeOf(l.doc, v)
		if shape != nil && containsValue(shapes, shape) {
			continue
		}
		shapes = append(shapes, shape)
		distinct = append(distinct, v)
		if joined.hasEnum = joined.hasEnum && f.hasEnum && len(f.alts) == 0; joined.hasEnum {
			joined.enum = append(joined.enum, f.enum...)
			joined.description = cmp.Or(joined.description, f.description)
		}
	}
	switch {
	case len(distinct) == 1:
		return distinct[0]
	case len(distinct) == 0:
		return &node{never: true}
	case joined.hasEnum: // the discriminator of a tagged union
		joined.resolveEnum()
		return joined
	}
	return &node{alts: []alternative{{nodes: distinct}}}
}

// shapeOf returns a schema in a form that can be compared.
func shapeOf(d *document, n *node) any {
	l := &lowering{doc: d, d: everything, testing: true, stack: map[*node]int{}, seen: map[loss]bool{}}
	if o := l.schema(n, "?", 0); o != nil {
		return o
	}
	return nil
}

// summary returns the part of a parameter's description that a concise listing
// shows.
func summary(description string) string {
	return tool.Definition{Description: description}.Summary(300)
}
