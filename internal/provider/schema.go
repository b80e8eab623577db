package provider

import (
	"encoding/json"
	"math"
	"strings"
)

// types is a set of JSON types; none means any.
type types uint8

const (
	tNull types = 1 << iota
	tBoolean
	tInteger
	tNumber
	tString
	tArray
	tObject
)

// typeNames in the order in which they are written out: what a model should
// think of first comes first.
var typeNames = []struct {
	t    types
	name string
}{
	{tString, "string"}, {tInteger, "integer"}, {tNumber, "number"}, {tBoolean, "boolean"},
	{tObject, "object"}, {tArray, "array"}, {tNull, "null"},
}

// typeWords are the words that schemas in the wild use for types: JSON
// Schema's own, OpenAPI's in capitals, and those of the languages in which
// servers are written.
var typeWords = map[string]types{
	"null": tNull, "none": tNull, "boolean": tBoolean, "bool": tBoolean,
	"integer": tInteger, "int": tInteger, "int32": tInteger, "int64": tInteger, "long": tInteger,
	"number": tNumber, "float": tNumber, "double": tNumber, "decimal": tNumber,
	"string": tString, "str": tString, "text": tString, "array": tArray, "list": tArray,
	"object": tObject, "dict": tObject, "map": tObject,
}

func (t types) has(o types) bool { return t&o != 0 }

// and intersects two sets, where none means any and every integer is a number.
func (t types) and(o types) (both types, possible bool) {
	switch {
	case t == 0:
		return o, true
	case o == 0:
		return t, true
	}
	both = t & o
	if t.has(tInteger) && o.has(tNumber) || o.has(tInteger) && t.has(tNumber) {
		both |= tInteger
	}
	if both.has(tNumber) {
		both &^= tInteger
	}
	return both, both != 0
}

func (t types) names() []string {
	var names []string
	for _, n := range typeNames {
		if t.has(n.t) {
			names = append(names, n.name)
		}
	}
	return names
}

// typesOf returns the type of a value, counting 3.0 as an integer as JSON
// Schema does.
func typesOf(v any) types {
	switch v := v.(type) {
	case nil:
		return tNull
	case bool:
		return tBoolean
	case string:
		return tString
	case []any:
		return tArray
	case *object:
		return tObject
	case json.Number:
		if integerText(v) {
			return tInteger
		}
		if f, err := v.Float64(); err == nil && f == math.Trunc(f) {
			return tInteger
		}
	}
	return tNumber
}

// accepts reports whether a value of the types of v may stand here.
func (t types) accepts(v any) bool {
	o := typesOf(v)
	return t == 0 || t&o != 0 || o == tInteger && t.has(tNumber)
}

// node is a JSON Schema of any draft from 4 to 2020-12, read into one form.
// What it says is a conjunction: every field that is set must hold.
type node struct {
	never bool // the schema false
	types types

	title, description string
	enum               []any // allowed values, const included; see hasEnum
	hasEnum            bool
	def                any
	hasDefault         bool
	examples           []any
	marks              []string // deprecated, readOnly, writeOnly

	props         []property
	required      []string
	additional    *node // nil: anything
	unevaluated   *node
	patternProps  []property // the key is a regular expression
	propertyNames *node
	minProps      json.Number
	maxProps      json.Number
	dependencies  []property // dependentSchemas, dependentRequired included

	prefix   []*node
	items    *node
	minItems json.Number
	maxItems json.Number
	unique   bool
	contains []*node

	minLength json.Number
	maxLength json.Number
	patterns  []string
	formats   []string
	content   []property // contentEncoding, contentMediaType; no schemas

	min, max     json.Number
	exMin, exMax json.Number
	multiples    []json.Number

	alts  []alternative // anyOf and oneOf, one for each
	nots  []*node
	conds []condition

	parts   []*node // $ref and allOf, not yet merged into this node
	missing string  // a $ref that leads nowhere
	label   string  // how a reference names this schema
	cut     bool    // not read further: the schema is too large

	flat     *node // the result of flatten
	flatting bool
}

type property struct {
	key  string
	node *node
	text string
}

type alternative struct {
	nodes     []*node
	exclusive bool // oneOf
}

type condition struct{ when, then, otherwise *node }

func (n *node) prop(key string) *node {
	for _, p := range n.props {
		if p.key == key {
			return p.node
		}
	}
	return nil
}

func (n *node) requires(key string) bool {
	for _, r := range n.required {
		if r == key {
			return true
		}
	}
	return false
}

// maxNodes bounds the work on one schema, whatever it refers to.
const maxNodes = 20_000

// document is one schema with everything that its references can reach.
type document struct {
	root    *node
	raw     *object
	nodes   map[*object]*node
	anchors map[string]*object
	count   int // nodes read
	work    int // done in merging
}

// compile reads a schema. Nothing in it is an error: what cannot be
// understood says nothing, as JSON Schema has it.
func compile(raw *object) *document {
	d := &document{raw: raw, nodes: map[*object]*node{}}
	d.root = d.node(raw)
	return d
}

// node returns the node of a subschema, reading it on first sight.
func (d *document) node(v any) *node {
	o, ok := v.(*object)
	if !ok {
		return &node{never: v == false}
	}
	if n, ok := d.nodes[o]; ok {
		return n
	}
	n := &node{}
	d.nodes[o] = n
	if d.count++; d.count > maxNodes {
		n.cut = true
		return n
	}
	d.read(n, o)
	return n
}

func (d *document) list(v any) []*node {
	values, _ := v.([]any)
	var nodes []*node
	for _, v := range values {
		if isSchema(v) {
			nodes = append(nodes, d.node(v))
		}
	}
	return nodes
}

func (d *document) properties(v any) []property {
	o, _ := v.(*object)
	if o == nil {
		return nil
	}
	var props []property
	for _, k := range o.keys {
		if isSchema(o.vals[k]) {
			props = append(props, property{key: k, node: d.node(o.vals[k])})
		}
	}
	return props
}

func isSchema(v any) bool {
	switch v.(type) {
	case *object, bool:
		return true
	}
	return false
}

func stringsIn(v any) []string {
	values, _ := v.([]any)
	var list []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

func number(v any) json.Number {
	n, _ := v.(json.Number)
	if f, err := n.Float64(); err != nil || math.IsInf(f, 0) {
		return ""
	}
	return n
}

// count reads a bound on a number of things; what is not a sensible one is
// none. Bounds are written out again as plain integers, because one provider
// reads them into 64 bits.
func count(v any) json.Number {
	f, err := number(v).Float64()
	if err != nil || f < 0 || f > 1<<53 || f != math.Trunc(f) {
		return ""
	}
	return json.Number(encode(int(f)))
}

func typeOf(v any) types {
	switch v := v.(type) {
	case string:
		return typeWords[strings.ToLower(v)]
	case []any:
		var t types
		for _, e := range v {
			w := typeOf(e)
			if w == 0 {
				return 0 // a word for any type, or an unknown one
			}
			t |= w
		}
		if t.has(tNumber) {
			t &^= tInteger
		}
		return t
	}
	return 0
}
