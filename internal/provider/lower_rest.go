package provider

import (
	"fmt"
	"slices"
	"strings"

	"junctor/internal/tool"
)

// sub writes a schema under a keyword, or adds a note about it.
func (w *schemaWriter) sub(keyword string, n *node, what string) {
	if w.takes(keyword) && (w.path != "" || w.d.rootConditions || keyword == "propertyNames") {
		if schema := w.condition(n); schema != nil {
			w.out.set(keyword, schema)
			return
		}
	}
	w.missing(keyword, "%s", what+" "+w.describe(n))
}

// condition converts a schema that tests values, without the additions that
// declarations need.
func (w *schemaWriter) condition(n *node) *object {
	inner := *w.lowering
	bare := *w.d
	bare.strict, bare.ordering, bare.rootConditions = false, false, true
	inner.d, inner.testing = &bare, true
	schema := inner.schema(n, w.path+"?", w.depth+1)
	w.losses, w.written = inner.losses, inner.written
	return schema
}

// describe returns a small schema as text: its JSON, truncated.
func (w *schemaWriter) describe(n *node) string {
	all := *w.lowering
	all.d, all.testing = everything, true
	all.losses, all.seen = nil, map[loss]bool{}
	schema := all.schema(n, w.path+"?", w.depth+1)
	w.written = all.written
	if schema == nil {
		return "none"
	}
	return tool.Shorten(string(encode(schema)), 160)
}

// array writes the keywords of arrays. Every array gets items.
func (w *schemaWriter) array() {
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
			var descriptions []string
			for _, p := range n.prefix {
				descriptions = append(descriptions, describe(w.doc, p))
			}
			if items != nil {
				choice.nodes = append(choice.nodes, items)
			}
			if n.maxItems != "" || items != nil { // else any further items are allowed
				items = &node{alts: []alternative{choice}}
				if len(choice.nodes) == 1 {
					items = choice.nodes[0]
				}
			}
			w.missing("prefixItems", "in this order: %s", strings.Join(descriptions, ", "))
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
	} else { // no item is possible: the array is empty
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
			w.missing("contains", "one of the items is %s", w.describe(c))
		}
	}
}

// remarks writes title, description, default and examples.
func (w *schemaWriter) remarks() {
	n := w.n
	if n.title != "" && w.takes("title") && !w.concise && w.path != "" {
		w.out.set("title", tool.Shorten(n.title, maxRemark))
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
		description = summary(description)
	}
	if len(w.hints) > 0 {
		description = strings.TrimSpace(description + " (" + strings.Join(w.hints, "; ") + ")")
	}
	if description = tool.Shorten(description, maxRemark); description != "" {
		w.out.set("description", description)
	}
}

// defaultFits reports whether a default matches the written type; null does not
// if the type is no longer nullable.
func defaultFits(out *object, v any) bool {
	nullable, _ := out.get("nullable")
	return v == nil && nullable == true || typeOf(out.vals["type"]).accepts(v)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
