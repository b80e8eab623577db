package provider

import (
	"fmt"
	"slices"
	"strings"
)

// object writes what concerns objects.
func (w *writing) object() {
	n := w.n
	props := newObject()
	var required []string
	back := map[string]string{}
	put := func(key string, schema *object) {
		legal := w.legalKey(key)
		if other, taken := back[legal]; taken && other != key {
			w.lose(join(w.path, key), "the key collides with %q once made legal; left out", other)
			return
		}
		back[legal] = key
		if legal != key {
			w.remark(schema, "called "+key+" in the tool's own schema")
		}
		must := n.requires(key)
		if w.d.strict && !must {
			schema = orNull(schema)
			must = true
		}
		props.set(legal, schema)
		if must {
			required = append(required, legal)
		}
	}
	for _, p := range n.props {
		schema := w.schema(p.node, join(w.path, p.key), w.depth+1)
		if schema == nil { // forbidden
			if n.requires(p.key) {
				w.lose(join(w.path, p.key), "the property is both required and forbidden; left out")
			}
			continue
		}
		put(p.key, schema)
	}
	for _, key := range n.required { // providers refuse to require what is not declared
		if w.testing && n.prop(key) == nil {
			required = append(required, w.legalKey(key))
		} else if n.prop(key) == nil {
			free := n.unnamed(key)
			if free == nil {
				free = &node{}
			}
			if schema := w.schema(free, join(w.path, key), w.depth+1); schema != nil {
				put(key, schema)
			}
		}
	}
	if len(props.keys) > 0 || !w.testing {
		w.out.set("properties", props)
	}
	if w.d.ordering && len(props.keys) > 1 {
		w.out.set("propertyOrdering", slices.Clone(props.keys))
	}
	if len(required) > 0 {
		w.out.set("required", required)
		if w.d.tellRequired && w.path != "" && !w.testing {
			w.hint("required: %s", strings.Join(required, ", "))
		}
	}
	w.additional(props)
	w.bound("minProperties", n.minProps, "at least %s keys")
	w.bound("maxProperties", n.maxProps, "at most %s keys")
	if n.propertyNames != nil {
		w.sub("propertyNames", n.propertyNames, "keys")
	}
	for _, dep := range n.dependencies {
		w.dependency(dep)
	}
}

// remark adds a note to a schema's description, or to its first branch's
// where nothing may stand beside a choice.
func (w *writing) remark(schema *object, note string) {
	if list, ok := schema.vals["anyOf"].([]any); ok && w.d.lonelyAnyOf {
		schema = list[0].(*object)
	}
	schema.set("description", strings.TrimSpace(schema.text("description")+" ("+note+")"))
}

func (w *writing) legalKey(key string) string {
	if w.d.key == nil {
		return key
	}
	return w.d.key(key)
}

// additional writes what is allowed beside the declared properties.
func (w *writing) additional(props *object) {
	n := w.n
	if w.d.strict {
		w.out.set("additionalProperties", false)
		return
	}
	free := n.additional
	if len(n.patternProps) > 0 {
		if w.takes("patternProperties") {
			patterns := newObject()
			for _, p := range n.patternProps {
				if schema := w.schema(p.node, join(w.path, p.key), w.depth+1); schema != nil {
					patterns.set(p.key, schema)
				}
			}
			w.out.set("patternProperties", patterns)
		} else {
			choice := alternative{}
			for _, p := range n.patternProps {
				w.missing("patternProperties", "keys matching %s", p.key)
				choice.nodes = append(choice.nodes, p.node)
			}
			if free != nil && !w.doc.flatten(free).never {
				choice.nodes = append(choice.nodes, free)
			}
			if free != nil {
				free = &node{alts: []alternative{choice}}
				if len(choice.nodes) == 1 {
					free = choice.nodes[0]
				}
			}
		}
	}
	if n.unevaluated != nil && free == nil && w.doc.flatten(n.unevaluated).never {
		w.hint("no other keys")
	}
	switch {
	case free == nil:
	case !w.takes("additionalProperties"):
		if len(props.keys) == 0 && !w.doc.flatten(free).never {
			w.missing("additionalProperties", "%s", "a map from any key to "+describe(w.doc, free))
		}
	case w.doc.flatten(free).never:
		w.out.set("additionalProperties", false)
	default:
		if schema := w.schema(free, join(w.path, "*"), w.depth+1); schema != nil && len(schema.keys) > 0 {
			w.out.set("additionalProperties", schema)
		}
	}
}

// describe names a schema in a few words.
func describe(d *document, n *node) string {
	if names := d.flatten(n).types.names(); len(names) > 0 {
		return strings.Join(names, " or ")
	}
	return "any value"
}

func (w *writing) dependency(dep property) {
	f := w.doc.flatten(dep.node)
	if w.takes("dependentSchemas") && (w.path != "" || w.d.rootConditions) {
		deps, _ := w.out.get("dependentSchemas")
		o, _ := deps.(*object)
		if o == nil {
			o = newObject()
			w.out.set("dependentSchemas", o)
		}
		if schema := w.condition(dep.node); schema != nil {
			o.set(dep.key, schema)
		}
		return
	}
	if len(f.required) > 0 {
		w.missing("dependentRequired", "%s needs %s", dep.key, strings.Join(f.required, ", "))
		return
	}
	w.missing("dependentSchemas", "%s narrows the other parameters", dep.key)
}

// sub writes a schema under a keyword, or tells of it.
func (w *writing) sub(keyword string, n *node, what string) {
	if w.takes(keyword) && (w.path != "" || w.d.rootConditions || keyword == "propertyNames") {
		if schema := w.condition(n); schema != nil {
			w.out.set(keyword, schema)
			return
		}
	}
	w.missing(keyword, "%s", what+" "+w.told(n))
}

// condition writes a schema that tests rather than declares: without the
// additions that declarations need.
func (w *writing) condition(n *node) *object {
	inner := *w.lowering
	bare := *w.d
	bare.strict, bare.ordering, bare.rootConditions = false, false, true
	inner.d, inner.testing = &bare, true
	schema := inner.schema(n, w.path+"?", w.depth+1)
	w.losses, w.written = inner.losses, inner.written
	return schema
}

// told puts a small schema into words: its JSON, cut short.
func (w *writing) told(n *node) string {
	all := *w.lowering
	all.d, all.testing = everything, true
	all.losses, all.seen = nil, map[loss]bool{}
	schema := all.schema(n, w.path+"?", w.depth+1)
	w.written = all.written
	if schema == nil {
		return "none"
	}
	return shorten(string(encode(schema)), 160)
}

// array writes what concerns arrays. Every array says what its items are.
func (w *writing) array() {
	n := w.n
	items := n.items
	if len(n.prefix) > 0 {
		if w.takes("prefixItems") {
			var list []any
			for i, p := range n.prefix {
				schema := w.schema(p, fmt.Sprintf("%s[%d]", w.path, i), w.depth+1)
				if schema == nil {
					schema = newObject()
				}
				list = append(list, schema)
			}
			w.out.set("prefixItems", list)
		} else {
			choice := alternative{nodes: slices.Clone(n.prefix)}
			var told []string
			for _, p := range n.prefix {
				told = append(told, describe(w.doc, p))
			}
			if items != nil {
				choice.nodes = append(choice.nodes, items)
			}
			closed := n.maxItems == "" && items == nil
			if closed {
				items = nil // anything may follow, so anything is declared
			} else {
				items = &node{alts: []alternative{choice}}
				if len(choice.nodes) == 1 {
					items = choice.nodes[0]
				}
			}
			w.missing("prefixItems", "in this order: %s", strings.Join(told, ", "))
		}
	}
	schema := newObject()
	if items == nil {
		items = &node{}
	}
	if w.testing && n.items == nil {
	} else if !w.d.oneType && len(n.prefix) > 0 && n.items == nil && w.takes("prefixItems") {
		w.out.set("items", schema)
	} else if s := w.schema(items, w.path+"[]", w.depth+1); s != nil {
		w.out.set("items", s)
	} else { // no item is possible: an empty array
		w.out.set("items", schema)
		n = &node{maxItems: "0"}
		if w.d.oneType {
			schema.set("type", "STRING")
		}
	}
	w.bound("minItems", n.minItems, "at least %s items")
	w.bound("maxItems", n.maxItems, "at most %s items")
	if n.unique {
		if w.takes("uniqueItems") {
			w.out.set("uniqueItems", true)
		} else {
			w.missing("uniqueItems", "no item twice")
		}
	}
	for i, c := range n.contains {
		if i == 0 {
			w.sub("contains", c, "one of the items is")
		} else {
			w.missing("contains", "one of the items is %s", w.told(c))
		}
	}
}

// combinations writes choices and conditions beside the plain keywords.
func (w *writing) combinations() {
	n := w.n
	var extra []any
	for i, alt := range n.alts {
		keyword := "anyOf"
		if alt.exclusive && w.takes("oneOf") {
			keyword = "oneOf"
		}
		var list []any
		for _, b := range alt.nodes {
			if w.d.dropNull && len(alt.nodes) > 1 && w.doc.flatten(b).types == tNull {
				continue
			}
			if schema := w.schema(b, w.path, w.depth+1); schema != nil && (keyword == "oneOf" || !containsValue(list, schema)) {
				list = append(list, schema)
			}
		}
		if len(list) == 0 {
			w.lose(w.path, "a choice without a possible branch is left out")
			continue
		}
		if len(list) == 1 && len(w.out.keys) == 0 && i == 0 {
			*w.out = *list[0].(*object)
			continue
		}
		if i == 0 {
			w.out.set(keyword, list)
			continue
		}
		o := newObject()
		o.set(keyword, list)
		extra = append(extra, o)
	}
	if len(extra) > 0 {
		w.out.set("allOf", extra)
	}
	for i, c := range n.nots {
		if i == 0 {
			w.sub("not", c, "not")
		} else {
			w.missing("not", "not %s", w.told(c))
		}
	}
	for i, c := range n.conds {
		if i > 0 || !w.takes("if") || w.path == "" && !w.d.rootConditions {
			w.missing("if", "if %s", w.toldCondition(c))
			continue
		}
		w.out.set("if", w.orNever(c.when))
		if c.then != nil {
			w.out.set("then", w.orNever(c.then))
		}
		if c.otherwise != nil {
			w.out.set("else", w.orNever(c.otherwise))
		}
	}
}

func (w *writing) orNever(n *node) any {
	if schema := w.condition(n); schema != nil {
		return schema
	}
	return false
}

func (w *writing) toldCondition(c condition) string {
	told := w.told(c.when)
	if c.then != nil {
		told += " then " + w.told(c.then)
	}
	if c.otherwise != nil {
		told += " else " + w.told(c.otherwise)
	}
	return told
}

// remarks writes title, description, default and examples.
func (w *writing) remarks() {
	n := w.n
	if n.title != "" && w.takes("title") && !w.concise && w.path != "" {
		w.out.set("title", shorten(n.title, maxRemark))
	}
	if n.hasDefault {
		if w.takes("default") && defaultFits(w.out, n.def) {
			w.out.set("default", n.def)
		} else if text := string(encode(n.def)); len(text) <= 80 {
			w.hint("default: %s", text)
		}
	}
	if len(n.examples) > 0 && !w.concise {
		if w.takes("examples") {
			w.out.set("examples", n.examples)
		} else if text := string(encode(n.examples[0])); len(text) <= 80 {
			w.hint("example: %s", text)
		}
	}
	for _, m := range n.marks {
		if w.takes(m) {
			w.out.set(m, true)
		} else {
			w.hint("%s", m)
		}
	}
	description := n.description
	if description == "" && !w.takes("title") && w.path != "" && !w.concise {
		description = n.title
	}
	if w.concise {
		description = firstSentence(description)
	}
	if len(w.hints) > 0 {
		description = strings.TrimSpace(description + " (" + strings.Join(w.hints, "; ") + ")")
	}
	if description = shorten(description, maxRemark); description != "" {
		w.out.set("description", description)
	}
}

// defaultFits drops defaults that contradict the type that was written, as
// null for what is no longer nullable.
func defaultFits(out *object, v any) bool {
	t, _ := out.get("type")
	if nullable, _ := out.get("nullable"); v == nil && nullable == true {
		return true
	}
	switch t := t.(type) {
	case string:
		return typeOf(t).accepts(v)
	case []string:
		var all types
		for _, name := range t {
			all |= typeOf(name)
		}
		return all.accepts(v)
	}
	return true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
