package provider

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/rawjson"
)

// read parses the schema o into n. Keywords that do not constrain values are
// ignored, as in the validation of calls. OpenAPI's nullable is ignored too,
// because a null in place of an optional value is treated as absent anyway.
func (d *document) read(n *node, o *object) {
	for _, key := range o.keys {
		v := o.vals[key]
		switch key {
		case "type":
			n.types = typeOf(v)
			if subs, ok := v.([]any); ok && slices.ContainsFunc(subs, isSchema) { // draft 3 unions
				n.types = 0
			}
		case "title":
			n.title, _ = v.(string)
		case "description":
			n.description, _ = v.(string)
		case "enum":
			if list, ok := v.([]any); ok {
				n.restrict(list)
			}
		case "const":
			n.restrict([]any{v})
		case "default":
			n.def, n.hasDefault = v, true
		case "examples":
			if list, ok := v.([]any); ok {
				n.examples = append(n.examples, list...)
			}
		case "example":
			n.examples = append(n.examples, v)
		case "deprecated", "readOnly", "writeOnly":
			if v == true {
				n.marks = append(n.marks, key)
			}
		case "properties":
			n.props = d.properties(v)
		case "required":
			n.required = union(n.required, stringsIn(v))
		case "additionalProperties":
			if v != true {
				n.additional = d.sub(v)
			}
		case "unevaluatedProperties":
			if v != true {
				n.unevaluated = d.sub(v)
			}
		case "patternProperties":
			n.patternProps = d.properties(v)
		case "propertyNames":
			n.propertyNames = d.sub(v)
		case "minProperties":
			n.minProps = count(v)
		case "maxProperties":
			n.maxProps = count(v)
		case "dependentRequired", "dependentSchemas", "dependencies":
			n.dependencies = append(n.dependencies, d.dependencies(v)...)
		case "minItems":
			n.minItems = count(v)
		case "maxItems":
			n.maxItems = count(v)
		case "uniqueItems":
			n.unique = v == true
		case "contains":
			n.contains = d.list([]any{v})
		case "minLength":
			n.minLength = count(v)
		case "maxLength":
			n.maxLength = count(v)
		case "pattern":
			if s, ok := v.(string); ok {
				n.patterns = []string{s}
			}
		case "format":
			if s, ok := v.(string); ok && s != "" {
				n.formats = []string{s}
			}
		case "contentEncoding", "contentMediaType":
			if s, ok := v.(string); ok {
				n.content = append(n.content, property{key: key, text: s})
			}
		case "minimum":
			n.min = number(v)
		case "maximum":
			n.max = number(v)
		case "multipleOf":
			if m := number(v); m != "" {
				n.multiples = []json.Number{m}
			}
		case "anyOf", "oneOf":
			if nodes := d.list(v); len(nodes) > 0 {
				n.alts = append(n.alts, alternative{nodes: nodes, exclusive: key == "oneOf"})
			}
		case "allOf":
			n.parts = append(n.parts, d.list(v)...)
		case "not":
			n.nots = d.list([]any{v})
		case "if":
			if c := (condition{d.sub(v), d.sub(o.vals["then"]), d.sub(o.vals["else"])}); c.when != nil && (c.then != nil || c.otherwise != nil) {
				n.conds = append(n.conds, c)
			}
		case "$ref", "$dynamicRef", "$recursiveRef":
			if ref, ok := v.(string); ok {
				d.reference(n, ref)
			}
		}
	}
	d.readItems(n, o)
	readExclusive(n, o)
	d.readRequiredMarks(n, o)
	n.resolveEnum()
}

// restrict restricts the allowed values to list.
func (n *node) restrict(list []any) {
	if !n.hasEnum {
		n.enum, n.hasEnum = list, true
		return
	}
	n.enum = slices.DeleteFunc(slices.Clone(n.enum), func(v any) bool { return !containsValue(list, v) })
}

// resolveEnum removes duplicates and values that the type forbids. If none is
// left, no value satisfies the schema.
func (n *node) resolveEnum() {
	if !n.hasEnum {
		return
	}
	var kept []any
	for _, v := range n.enum {
		if n.types.accepts(v) && !containsValue(kept, v) {
			kept = append(kept, v)
		}
	}
	n.enum = kept
	n.never = n.never || len(kept) == 0
}

func containsValue(list []any, v any) bool {
	return slices.ContainsFunc(list, func(e any) bool { return equalJSON(e, v) })
}

// readItems parses the three notations of a tuple.
func (d *document) readItems(n *node, o *object) {
	items, _ := o.get("items")
	rest, hasRest := items, isSchema(items)
	if prefix, ok := o.get("prefixItems"); ok {
		n.prefix = d.list(prefix)
	} else if list, ok := items.([]any); ok { // up to draft 2019-09
		n.prefix = d.list(list)
		rest, _ = o.get("additionalItems")
		hasRest = isSchema(rest)
	}
	if !hasRest || rest == true {
		return
	}
	if rest == false {
		n.maxItems = minNumber(n.maxItems, json.Number(strconv.Itoa(len(n.prefix))))
		return
	}
	n.items = d.node(rest)
}

// readExclusive parses exclusive bounds as numbers, and as in draft 4 as flags
// of minimum and maximum.
func readExclusive(n *node, o *object) {
	for _, b := range []struct {
		key       string
		plain, ex *json.Number
	}{{"exclusiveMinimum", &n.min, &n.exMin}, {"exclusiveMaximum", &n.max, &n.exMax}} {
		switch v, _ := o.get(b.key); v {
		case true:
			*b.ex, *b.plain = *b.plain, ""
		default:
			*b.ex = number(v)
		}
	}
}

// readRequiredMarks parses required: true on a property, as in draft 3 and as
// still common.
func (d *document) readRequiredMarks(n *node, o *object) {
	props, _ := o.get("properties")
	po, _ := props.(*object)
	if po == nil {
		return
	}
	for _, k := range po.keys {
		sub, _ := po.vals[k].(*object)
		if v, _ := sub.get("required"); v == true && !n.requires(k) {
			n.required = append(n.required, k)
		}
	}
}

// dependencies parses both kinds of dependencies on a key: other keys, and a
// schema.
func (d *document) dependencies(v any) []property {
	o, _ := v.(*object)
	if o == nil {
		return nil
	}
	var deps []property
	for _, k := range o.keys {
		if list, ok := o.vals[k].([]any); ok {
			deps = append(deps, property{key: k, node: &node{required: union(nil, stringsIn(list))}})
		} else if isSchema(o.vals[k]) {
			deps = append(deps, property{key: k, node: d.node(o.vals[k])})
		}
	}
	return deps
}

// reference adds the target of ref, inside this document, to n.
func (d *document) reference(n *node, ref string) {
	target, ok := d.find(ref)
	if !ok || !isSchema(target) {
		n.missing = ref
		return
	}
	part := d.node(target)
	if name := ref[strings.LastIndexAny(ref, "/#")+1:]; name != "" && part.label == "" {
		part.label = rawjson.UnescapePointer(name)
	}
	n.parts = append(n.parts, part)
}

func (d *document) find(ref string) (any, bool) {
	base, fragment, _ := strings.Cut(ref, "#")
	from := d.raw
	if base != "" && base != d.raw.text("$id") && base != d.raw.text("id") {
		if from = d.anchored(base); from == nil {
			return nil, false
		}
	}
	if fragment == "" {
		return from, true
	}
	if !strings.HasPrefix(fragment, "/") {
		o := d.anchored("#" + fragment)
		return o, o != nil
	}
	var v any = from
	for _, token := range strings.Split(fragment[1:], "/") {
		token = rawjson.UnescapePointer(token)
		switch c := v.(type) {
		case *object:
			next, ok := c.get(token)
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// anchored returns the schema with an $id or, with a leading #, an anchor.
func (d *document) anchored(name string) *object {
	if d.anchors == nil {
		d.anchors = map[string]*object{}
		d.collectAnchors(d.raw)
	}
	return d.anchors[name]
}

func (d *document) collectAnchors(v any) {
	switch v := v.(type) {
	case *object:
		for _, key := range []string{"$id", "id"} {
			if id := v.text(key); id != "" && d.anchors[id] == nil {
				d.anchors[id] = v
			}
		}
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if a := v.text(key); a != "" && d.anchors["#"+a] == nil {
				d.anchors["#"+a] = v
			}
		}
		for _, k := range v.keys {
			switch k {
			case "enum", "const", "default", "examples", "example":
			default:
				d.collectAnchors(v.vals[k])
			}
		}
	case []any:
		for _, e := range v {
			d.collectAnchors(e)
		}
	}
}
