package provider

import (
	"encoding/json"
	"math"
	"slices"
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

// typeNames are in output order: the types that a model should prefer come
// first.
var typeNames = []struct {
	t    types
	name string
}{
	{tString, "string"}, {tInteger, "integer"}, {tNumber, "number"}, {tBoolean, "boolean"},
	{tObject, "object"}, {tArray, "array"}, {tNull, "null"},
}

// typeWords are the names of types that schemas use in practice: those of JSON
// Schema, OpenAPI's in upper case, and those of programming languages.
var typeWords = map[string]types{
	"null": tNull, "none": tNull, "boolean": tBoolean, "bool": tBoolean,
	"integer": tInteger, "int": tInteger, "int32": tInteger, "int64": tInteger, "long": tInteger,
	"number": tNumber, "float": tNumber, "double": tNumber, "decimal": tNumber,
	"string": tString, "str": tString, "text": tString, "array": tArray, "list": tArray,
	"object": tObject, "dict": tObject, "map": tObject,
}

func (t types) has(o types) bool { return t&o != 0 }

// and returns the intersection of two sets, where the empty set means any and
// every integer is a number.
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

// typesOf returns the type of a value; 3.0 is an integer, as in JSON Schema.
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

// accepts reports whether a value of the types of v is allowed.
func (t types) accepts(v any) bool {
	o := typesOf(v)
	return t == 0 || t&o != 0 || o == tInteger && t.has(tNumber)
}

// node is a parsed JSON Schema of any draft from 4 to 2020-12. It is a
// conjunction: every field that is set must be satisfied.
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
	missing string  // a $ref without a target
	label   string  // the name of this schema in references
	cut     bool    // not parsed further: the schema is too large

	flat       *node // the result of flatten
	flattening bool
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

func (n *node) requires(key string) bool { return slices.Contains(n.required, key) }

// maxNodes bounds the work on one schema, including its references.
const maxNodes = 20_000

// document is a schema with all schemas that it references.
type document struct {
	root    *node
	raw     *object
	nodes   map[*object]*node
	anchors map[string]*object
	count   int // nodes read
	work    int // done in merging
}

// compile parses a schema. It never fails: keywords that cannot be parsed are
// ignored, as in JSON Schema.
func compile(raw *object) *document {
	d := &document{raw: raw, nodes: map[*object]*node{}}
	d.root = d.node(raw)
	return d
}

// node returns the node of a subschema, which is parsed on first use.
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

// sub is node for a value that may be no schema; nil then.
func (d *document) sub(v any) *node {
	if !isSchema(v) {
		return nil
	}
	return d.node(v)
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

// count parses a bound on a number of things; invalid ones are ignored. Bounds
// are written as plain integers, because one provider parses them into 64 bits.
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
				return 0 // an alias of any, or an unknown type
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
