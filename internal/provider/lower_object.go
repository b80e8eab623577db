package provider

import (
	"slices"
	"strings"
)

// mapAsText writes an object with arbitrary keys as JSON in a string.
func (w *schemaWriter) mapAsText(t types) types {
	w.hint("a JSON object written as text")
	free := *w.n
	free.types, free.title, free.description, free.examples, free.hasDefault = 0, "", "", nil, false
	if text := w.describe(&free); text != "{}" {
		w.missing("a map", "fitting %s", text)
	}
	return t&^tObject | tString
}

// hasProps reports whether there are properties to declare.
func (w *schemaWriter) hasProps() bool {
	possible := func(n *node) bool { return n == nil || !w.doc.flatten(n).never }
	return slices.ContainsFunc(w.n.props, func(p property) bool { return possible(p.node) }) ||
		slices.ContainsFunc(w.n.required, func(k string) bool { return w.n.prop(k) == nil && possible(w.n.unnamed(k)) })
}

// object writes the keywords of objects.
func (w *schemaWriter) object() {
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
	for _, key := range n.required { // providers refuse required properties that are not declared
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
		w.out.set("propertyOrdering", toAnySlice(props.keys))
	}
	if len(required) > 0 {
		w.out.set("required", toAnySlice(required))
		if w.d.describeRequired && w.path != "" && !w.testing {
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

// remark adds a note to a schema's description, or to that of its first branch
// if anyOf must be alone.
func (w *schemaWriter) remark(schema *object, note string) {
	if list, ok := schema.vals["anyOf"].([]any); ok && w.d.anyOfAlone {
		schema = list[0].(*object)
	}
	schema.set("description", strings.TrimSpace(schema.text("description")+" ("+note+")"))
}

func (w *schemaWriter) legalKey(key string) string {
	if w.d.key == nil {
		return key
	}
	return w.d.key(key)
}

// additional writes the schema of additional properties.
func (w *schemaWriter) additional(props *object) {
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

// describe returns a short description of a schema.
func describe(d *document, n *node) string {
	if names := d.flatten(n).types.names(); len(names) > 0 {
		return strings.Join(names, " or ")
	}
	return "any value"
}

func (w *schemaWriter) dependency(dep property) {
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
