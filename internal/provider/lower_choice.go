package provider

import (
	"slices"
)

// splitTypes writes a schema with several types as anyOf.
func (w *schemaWriter) splitTypes(t types) {
	choice := alternative{}
	for _, name := range typeNames {
		if t.has(name.t) {
			choice.nodes = append(choice.nodes, &node{types: name.t})
		}
	}
	rest := *w.n
	rest.types = t
	rest.alts = append(slices.Clip(rest.alts), choice)
	if nullable, _ := w.out.get("nullable"); nullable == true {
		rest.types |= tNull
		choice.nodes[0].types |= tNull
	}
	w.n, w.out = &rest, newObject()
	w.distribute()
}

// maxBranches bounds the branches of an expanded anyOf.
const maxBranches = 16

// distribute writes a choice as anyOf without other keywords: they are repeated
// in each branch.
func (w *schemaWriter) distribute() {
	base := *w.n
	base.alts, base.flat, base.parts = nil, nil, nil
	branches := []*node{&base}
	for _, alt := range w.n.alts {
		if len(branches)*len(alt.nodes) > maxBranches && len(branches) > 1 {
			w.lose(w.path, "a choice is left out: there are too many combinations")
			continue
		}
		var next []*node
		for _, b := range branches {
			for _, choice := range alt.nodes {
				next = append(next, &node{parts: []*node{choice, b}})
			}
		}
		branches = next
	}
	nullable := false
	var out []any
	for _, b := range branches {
		f := w.doc.flatten(b)
		switch {
		case f.never:
			continue
		case f.types == tNull:
			nullable = true
			continue
		}
		o := w.schema(b, w.path, w.depth+1)
		if o == nil {
			continue
		}
		inner, nested := o.vals["anyOf"].([]any) // a nested choice is flattened
		if !nested || len(o.keys) > 1 {
			inner = []any{o}
		}
		for _, o := range inner {
			if !containsValue(out, o) {
				out = append(out, o)
			}
		}
	}
	switch {
	case len(out) == 0: // only null, or no value at all
		w.n = &node{types: tString, description: w.n.description}
		w.out = newObject()
		w.lose(w.path, "no value that can be declared satisfies the schema")
		w.write()
	case len(out) == 1:
		w.out = out[0].(*object)
		w.allowNull(nullable)
	default:
		if nullable && w.d.oneType {
			setNullable(out[0].(*object))
		} else if nullable {
			out = append(out, obj("type", "null"))
		}
		w.out.set("anyOf", out)
		if !w.d.anyOfAlone {
			w.remarks()
		}
	}
}

// setNullable marks a schema, or the first branch of a choice, as nullable.
func setNullable(o *object) {
	if list, ok := o.vals["anyOf"].([]any); ok {
		o = list[0].(*object)
	}
	o.set("nullable", true)
}

// allowNull adds null to the types of w.out.
func (w *schemaWriter) allowNull(yes bool) {
	switch {
	case !yes || w.d.dropNull:
	case w.d.oneType:
		setNullable(w.out)
	default:
		w.out = orNull(w.out)
	}
}

// orNull returns a schema that also allows null.
func orNull(o *object) *object {
	t, hasType := o.get("type")
	alts, hasAlts := o.vals["anyOf"].([]any)
	switch names, several := t.([]any); {
	case hasAlts && !hasType:
		if !containsValue(alts, obj("type", "null")) {
			o.set("anyOf", append(slices.Clip(alts), obj("type", "null")))
		}
		return o
	case hasAlts:
	case several && !slices.Contains(names, any("null")):
		o.set("type", append(slices.Clip(names), "null"))
	case hasType && !several && t != "null":
		o.set("type", []any{t, "null"})
	}
	if enum, ok := o.vals["enum"].([]any); ok && !containsValue(enum, nil) {
		o.set("enum", append(slices.Clip(enum), nil))
	}
	return o
}

// combinations writes choices and conditions next to the plain keywords.
func (w *schemaWriter) combinations() {
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
			w.missing("not", "not %s", w.describe(c))
		}
	}
	for i, c := range n.conds {
		if i > 0 || !w.takes("if") || w.path == "" && !w.d.rootConditions {
			w.missing("if", "if %s", w.describeCondition(c))
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

func (w *schemaWriter) orNever(n *node) any {
	if schema := w.condition(n); schema != nil {
		return schema
	}
	return false
}

func (w *schemaWriter) describeCondition(c condition) string {
	text := w.describe(c.when)
	if c.then != nil {
		text += " then " + w.describe(c.then)
	}
	if c.otherwise != nil {
		text += " else " + w.describe(c.otherwise)
	}
	return text
}
