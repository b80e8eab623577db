package provider

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/tool"
)

// maxRepairDepth bounds the depth of values that are repaired; deeper ones are
// unchanged.
const maxRepairDepth = 48

// maxRepairSteps bounds the number of values visited, including those of the
// branches that are tried.
const maxRepairSteps = 50_000

// Repair converts the arguments of a model's call to what the tool's schema
// requires, where that is unambiguous: JSON inside a string, numbers and
// booleans written as strings and vice versa, values of an enum sent as text,
// legalised property keys, and null for optional values. Arguments that need no
// repair are returned byte for byte. Repair does not validate; it fails only if
// the arguments are not an object.
func Repair(def tool.Definition, arguments json.RawMessage) (json.RawMessage, error) {
	o, same, err := readArguments(arguments)
	if err != nil {
		return nil, err
	}
	schema, err := parseJSON(def.InputSchema)
	raw, ok := schema.(*object)
	if err == nil && ok {
		doc := compile(raw)
		m := &repairer{doc: doc}
		repaired := m.value(o, doc.root, 0)
		if changed, ok := repaired.(*object); ok && m.changed {
			o, same = changed, false
		}
	}
	if same {
		return arguments, nil
	}
	return encode(o), nil
}

// readArguments accepts an object, an object encoded in a string (also twice),
// and nothing.
func readArguments(arguments json.RawMessage) (o *object, same bool, err error) {
	data := bytes.TrimSpace(arguments)
	same = true
	for range 4 {
		if len(data) == 0 || string(data) == "null" {
			return newObject(), false, nil
		}
		v, err := parseJSON(data)
		if err != nil {
			return nil, false, &tool.Error{Kind: tool.InvalidArguments, Msg: "the arguments are not valid JSON: " + err.Error()}
		}
		switch v := v.(type) {
		case *object:
			return v, same, nil
		case string:
			data, same = bytes.TrimSpace([]byte(v)), false
			continue
		}
		break
	}
	return nil, false, &tool.Error{Kind: tool.InvalidArguments, Msg: "the arguments are not a JSON object; send an object with the tool's parameters"}
}

type repairer struct {
	doc     *document
	steps   int
	changed bool
	renamed map[*node]map[string]string // legal keys, by object
}

// value returns v converted to the type of n, or v itself.
func (m *repairer) value(v any, n *node, depth int) any {
	if m.steps++; depth > maxRepairDepth || m.steps > maxRepairSteps {
		return v
	}
	f := m.doc.flatten(n)
	switch c := v.(type) {
	case *object:
		if f.types == 0 || f.types.has(tObject) {
			v = m.object(c, f, depth)
		} else if f.types == tString { // structured data where text is expected
			return m.change(string(encode(c)))
		}
	case []any:
		if f.types == 0 || f.types.has(tArray) {
			v = m.array(c, f, depth)
		} else if f.types == tString {
			return m.change(string(encode(c)))
		}
	default:
		v = m.scalar(v, f, depth)
	}
	for _, alt := range f.alts {
		v = m.choose(v, alt, depth)
	}
	return v
}

func (m *repairer) change(v any) any {
	m.changed = true
	return v
}

func (m *repairer) object(o *object, f *node, depth int) any {
	out := newObject()
	for _, key := range o.keys {
		v := o.vals[key]
		name := m.ownKey(key, o, f)
		child := f.prop(name)
		if child != nil && v == nil && !f.requires(name) && !m.fits(nil, child, depth+1) {
			m.changed = true // null means absent
			continue
		}
		if child == nil {
			child = f.unnamed(name)
		}
		if child != nil {
			v = m.value(v, child, depth+1)
		}
		m.changed = m.changed || name != key
		out.set(name, v)
	}
	return out
}

// ownKey returns the original key of a legal one.
func (m *repairer) ownKey(key string, o *object, f *node) string {
	if f.prop(key) != nil {
		return key
	}
	renamed, ok := m.renamed[f]
	if !ok {
		renamed = renamedKeys(f)
		if m.renamed == nil {
			m.renamed = map[*node]map[string]string{}
		}
		m.renamed[f] = renamed
	}
	own, ok := renamed[key]
	if _, present := o.get(own); !ok || present {
		return key
	}
	return own
}

// renamedKeys maps the legal keys of all providers to the keys of n.
func renamedKeys(n *node) map[string]string {
	table := map[string]string{}
	add := func(own string) {
		for _, rule := range keyRules {
			if legal := rule(own); legal != own && n.prop(legal) == nil {
				table[legal] = own
			}
		}
	}
	for _, p := range n.props {
		add(p.key)
	}
	for _, r := range n.required {
		add(r)
	}
	return table
}

func (m *repairer) array(list []any, f *node, depth int) any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
		if child := f.item(i); child != nil {
			out[i] = m.value(v, child, depth+1)
		}
	}
	return out
}

// scalar repairs a string, number, boolean or null of the wrong type.
func (m *repairer) scalar(v any, f *node, depth int) any {
	if f.hasEnum {
		if containsValue(f.enum, v) {
			return v
		}
		text := enumText(v)
		for _, e := range f.enum {
			if enumText(e) == text || strings.TrimSpace(text) == enumText(e) {
				return m.change(e)
			}
		}
		return v
	}
	if n, ok := v.(json.Number); ok && f.types.has(tInteger) && !f.types.has(tNumber) && !integerText(n) {
		if x, err := n.Float64(); err == nil && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return m.change(json.Number(strconv.FormatInt(int64(x), 10)))
		}
	}
	if f.types.accepts(v) {
		return v
	}
	switch v := v.(type) {
	case string:
		return m.fromText(v, f, depth)
	case json.Number:
		if f.types&^tNull == tString {
			return m.change(v.String())
		}
		if f.types&^tNull == tBoolean && (v == "0" || v == "1") {
			return m.change(v == "1")
		}
	case bool:
		if f.types&^tNull == tString {
			return m.change(strconv.FormatBool(v))
		}
	}
	return v
}

// fromText parses a value of the expected type from a string.
func (m *repairer) fromText(s string, f *node, depth int) any {
	text := strings.TrimSpace(s)
	if f.types.has(tBoolean) {
		switch strings.ToLower(text) {
		case "true":
			return m.change(true)
		case "false":
			return m.change(false)
		}
	}
	if v, err := parseJSON([]byte(text)); err == nil && f.types.accepts(v) {
		switch v.(type) {
		case bool, string: // handled above
		default:
			m.changed = true
			return m.value(v, f, depth+1)
		}
	}
	if f.types.has(tNull) && (text == "" || strings.EqualFold(text, "null") || strings.EqualFold(text, "none")) {
		return m.change(nil)
	}
	return s
}

// choose repairs v with the branch of a choice that it belongs to: the first
// that it matches unchanged, otherwise the first that it matches after repair.
func (m *repairer) choose(v any, alt alternative, depth int) any {
	for _, b := range alt.nodes {
		if m.fits(v, b, depth+1) {
			return m.value(v, b, depth+1)
		}
	}
	for _, b := range alt.nodes {
		try := &repairer{doc: m.doc, steps: m.steps, renamed: m.renamed}
		w := try.value(v, b, depth+1)
		m.steps = try.steps
		if try.changed && m.fits(w, b, depth+1) {
			m.changed = true
			return w
		}
	}
	return v
}

// fits reports whether v matches n by types, enums, keys and simple bounds,
// which is enough to distinguish the branches of a choice.
func (m *repairer) fits(v any, n *node, depth int) bool {
	if m.steps++; depth > maxRepairDepth || m.steps > maxRepairSteps {
		return true
	}
	f := m.doc.flatten(n)
	if f.never || !f.types.accepts(v) || f.hasEnum && !containsValue(f.enum, v) {
		return false
	}
	switch v := v.(type) {
	case *object:
		for _, r := range f.required {
			if _, ok := v.get(r); !ok {
				return false
			}
		}
		for _, k := range v.keys {
			child := f.prop(k)
			if child == nil {
				child = f.unnamed(k)
			}
			if child != nil && !m.fits(v.vals[k], child, depth+1) {
				return false
			}
		}
	case []any:
		if outside(json.Number(strconv.Itoa(len(v))), f.minItems, f.maxItems) {
			return false
		}
		for i, e := range v {
			if child := f.item(i); child != nil && !m.fits(e, child, depth+1) {
				return false
			}
		}
	case json.Number:
		if outside(v, f.min, f.max) {
			return false
		}
	}
	for _, alt := range f.alts {
		if !slices.ContainsFunc(alt.nodes, func(b *node) bool { return m.fits(v, b, depth+1) }) {
			return false
		}
	}
	return true
}

func outside(v, low, high json.Number) bool {
	x, err := v.Float64()
	if err != nil {
		return false
	}
	l, errL := low.Float64()
	h, errH := high.Float64()
	return errL == nil && x < l || errH == nil && x > h
}
