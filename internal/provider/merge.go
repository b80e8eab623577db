package provider

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
)

// maxWork bounds the cost of merging, because a small schema may expand to a
// very large one.
const maxWork = 200_000

// flatten merges the references and the allOf of n into one node. It merges on
// demand, because a recursive schema cannot be expanded completely.
func (d *document) flatten(n *node) *node {
	if len(n.parts) == 0 {
		n.closeUnevaluated()
		return n
	}
	if n.flat != nil {
		return n.flat
	}
	if n.flattening {
		return &node{missing: "a reference to itself"}
	}
	n.flattening = true
	self := *n
	self.parts, self.flat = nil, nil
	merged := &self
	for _, part := range n.parts {
		flat := d.flatten(part)
		if d.work += 1 + len(merged.props) + len(flat.props) + len(flat.enum) + len(flat.alts); d.work > maxWork {
			merged.cut = true
			break
		}
		merged = merge(merged, flat)
	}
	merged.closeUnevaluated()
	n.flattening = false
	n.flat = merged
	return merged
}

// closeUnevaluated turns unevaluatedProperties into additionalProperties
// where both mean the same.
func (n *node) closeUnevaluated() {
	if n.unevaluated != nil && n.additional == nil && len(n.alts) == 0 && len(n.conds) == 0 && len(n.dependencies) == 0 {
		n.additional, n.unevaluated = n.unevaluated, nil
	}
}

// both returns a schema that requires both a and b.
func both(a, b *node) *node {
	switch {
	case a == nil || a == b:
		return b
	case b == nil:
		return a
	}
	return &node{parts: []*node{a, b}}
}

// merge returns the conjunction of a and b. Neither may have parts. Annotations
// of a take precedence over those of b.
func merge(a, b *node) *node {
	m := *a
	m.flat = nil
	m.never = a.never || b.never
	m.cut = a.cut || b.cut
	var possible bool
	if m.types, possible = a.types.and(b.types); !possible {
		m.never = true
	}
	m.title = cmp.Or(a.title, b.title)
	m.description = cmp.Or(a.description, b.description)
	m.label = cmp.Or(a.label, b.label)
	m.missing = cmp.Or(a.missing, b.missing)
	if !a.hasDefault {
		m.def, m.hasDefault = b.def, b.hasDefault
	}
	if len(a.examples) == 0 {
		m.examples = b.examples
	}
	m.marks = union(a.marks, b.marks)

	if b.hasEnum {
		m.restrict(b.enum)
	}
	m.resolveEnum()

	m.props, m.additional = mergeProps(a, b)
	m.patternProps = mergePatterns(a.patternProps, b.patternProps)
	m.unevaluated = both(a.unevaluated, b.unevaluated)
	m.required = union(a.required, b.required)
	m.propertyNames = both(a.propertyNames, b.propertyNames)
	m.minProps, m.maxProps = maxNumber(a.minProps, b.minProps), minNumber(a.maxProps, b.maxProps)
	m.dependencies = slices.Concat(a.dependencies, b.dependencies)

	m.prefix, m.items = mergeItems(a, b)
	m.minItems, m.maxItems = maxNumber(a.minItems, b.minItems), minNumber(a.maxItems, b.maxItems)
	m.unique = a.unique || b.unique
	m.contains = slices.Concat(a.contains, b.contains)

	m.minLength, m.maxLength = maxNumber(a.minLength, b.minLength), minNumber(a.maxLength, b.maxLength)
	m.patterns = union(a.patterns, b.patterns)
	m.formats = union(a.formats, b.formats)
	m.content = slices.Concat(a.content, b.content)

	m.min, m.max = maxNumber(a.min, b.min), minNumber(a.max, b.max)
	m.exMin, m.exMax = maxNumber(a.exMin, b.exMin), minNumber(a.exMax, b.exMax)
	m.multiples = union(a.multiples, b.multiples)

	m.alts = slices.Concat(a.alts, b.alts)
	m.nots = slices.Concat(a.nots, b.nots)
	m.conds = slices.Concat(a.conds, b.conds)
	return &m
}

// mergeProps merges properties and additionalProperties. additionalProperties
// applies to the keys that its own schema does not name, so a key that only b
// names must also satisfy that of a, and vice versa.
func mergeProps(a, b *node) ([]property, *node) {
	var props []property
	for _, p := range a.props {
		switch other := b.prop(p.key); {
		case other != nil:
			p.node = both(p.node, other)
		default:
			p.node = both(p.node, b.unnamed(p.key))
		}
		props = append(props, p)
	}
	for _, p := range b.props {
		if a.prop(p.key) == nil {
			p.node = both(p.node, a.unnamed(p.key))
			props = append(props, p)
		}
	}
	return props, both(a.additional, b.additional)
}

func mergePatterns(a, b []property) []property {
	merged := slices.Clone(a)
	for _, p := range b {
		if i := slices.IndexFunc(merged, func(q property) bool { return q.key == p.key }); i >= 0 {
			merged[i].node = both(merged[i].node, p.node)
		} else {
			merged = append(merged, p)
		}
	}
	return merged
}

// unnamed returns the schema for a key that is not among the properties of n,
// or nil if any value is allowed.
func (n *node) unnamed(key string) *node {
	var found *node
	for _, p := range n.patternProps {
		if re, err := regexp.Compile(p.key); err == nil && re.MatchString(key) {
			found = both(found, p.node)
		}
	}
	if found == nil {
		return n.additional
	}
	return found
}

func mergeItems(a, b *node) ([]*node, *node) {
	var prefix []*node
	for i := range max(len(a.prefix), len(b.prefix)) {
		prefix = append(prefix, both(a.item(i), b.item(i)))
	}
	return prefix, both(a.items, b.items)
}

// item returns the schema for the element at i, or nil if any value is allowed.
func (n *node) item(i int) *node {
	if i < len(n.prefix) {
		return n.prefix[i]
	}
	return n.items
}

func union[T comparable](a, b []T) []T {
	all := slices.Clip(a)
	for _, v := range b {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

func minNumber(a, b json.Number) json.Number {
	return pick(a, b, func(x, y float64) bool { return x <= y })
}
func maxNumber(a, b json.Number) json.Number {
	return pick(a, b, func(x, y float64) bool { return x >= y })
}

func pick(a, b json.Number, better func(x, y float64) bool) json.Number {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	x, _ := a.Float64()
	y, _ := b.Float64()
	if better(x, y) {
		return a
	}
	return b
}
