package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// eval reports whether v is valid against s. It stops at the first violation
// unless out has room for more. ev receives what was evaluated; it may be nil.
func (c *checker) eval(s *jsonschema.Schema, v any, out *report, ev *marks) bool {
	c.spend(1)
	if s.Bool != nil {
		if !*s.Bool {
			return c.fail(out, s, func() jsonschema.ErrorKind { return &kind.FalseSchema{} })
		}
		return true
	}
	if c.depth++; c.depth > maxNesting {
		panic(stop{ErrTooCostly})
	}
	defer func() { c.depth-- }()

	if !c.itself(s, v, out) {
		return false // further violations would only be consequences of this one
	}
	asked := ev
	if s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil {
		ev = &marks{}
	}
	ok := true
	if s.Ref != nil {
		ok = c.inPlace(s.Ref, v, out, ev)
		if s.DraftVersion < 2019 { // older drafts ignore siblings of $ref
			return ok
		}
	}
	if !ok && !out.hasRoom() {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		ok = c.object(s, v, out, ev) && ok
	case []any:
		ok = c.array(s, v, out, ev) && ok
	case string:
		ok = c.text(s, v, out) && ok
	case json.Number:
		ok = c.number(s, v, out) && ok
	}
	if !ok && !out.hasRoom() {
		return false
	}
	// Within one document a dynamic reference is like a static one; Compile
	// returns an error for others.
	if s.RecursiveRef != nil {
		ok = c.inPlace(s.RecursiveRef, v, out, ev) && ok
	}
	if s.DynamicRef != nil {
		ok = c.inPlace(s.DynamicRef.Ref, v, out, ev) && ok
	}
	ok = c.conditions(s, v, out, ev) && ok
	if !ok && !out.hasRoom() {
		return false
	}
	ok = c.unevaluated(s, v, out, ev) && ok
	if ok && ev != asked {
		asked.merge(ev)
	}
	return ok
}

// itself checks the keywords for values of any type: type, const, enum, format.
func (c *checker) itself(s *jsonschema.Schema, v any, out *report) bool {
	bit, name := typeBit(v)
	if s.Types != nil && !s.Types.IsEmpty() && *s.Types&bit == 0 {
		n, number := v.(json.Number)
		if !number || *s.Types&typeInteger == 0 || !isInteger(n) {
			return c.fail(out, s, func() jsonschema.ErrorKind { return &kind.Type{Got: name, Want: s.Types.ToStrings()} })
		}
	}
	if s.Const != nil && !c.equal(v, *s.Const) {
		return c.fail(out, s, func() jsonschema.ErrorKind { return &kind.Const{Want: *s.Const} })
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum.Values, func(item any) bool { return c.equal(v, item) }) {
		return c.fail(out, s, func() jsonschema.ErrorKind { return c.enum(s.Enum.Values) })
	}
	if s.Format != nil {
		if text, ok := v.(string); ok {
			if err := c.format(s.Format, text); err != nil {
				return c.fail(out, s, func() jsonschema.ErrorKind { return &kind.Format{Got: cut(text), Want: s.Format.Name, Err: err} })
			}
		}
	}
	return true
}

// enum returns a violation with the allowed values, of which it names at most
// maxViolations.
func (c *checker) enum(values []any) jsonschema.ErrorKind {
	values = values[:min(len(values), maxViolations)]
	for _, v := range values {
		if text, ok := v.(string); ok {
			c.spend(len(text) / 16)
		}
	}
	return &kind.Enum{Want: values}
}

func (c *checker) format(f *jsonschema.Format, text string) error {
	c.spend(len(text) / 16)
	if f.Name == "regex" {
		return c.validRegex(text)
	}
	return f.Validate(text)
}

// cut truncates a text for a message.
func cut(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}

// conditions checks the keywords that apply schemas to the same value.
func (c *checker) conditions(s *jsonschema.Schema, v any, out *report, ev *marks) bool {
	ok := true
	if s.Not != nil && c.eval(s.Not, v, nil, nil) {
		ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.Not{} })
	}
	for _, sub := range s.AllOf {
		if !ok && !out.hasRoom() {
			return false
		}
		ok = c.inPlace(sub, v, out, ev) && ok
	}
	if len(s.AnyOf) > 0 && !c.anyOf(s, v, out, ev) {
		ok = false
	}
	if len(s.OneOf) > 0 && !c.oneOf(s, v, out, ev) {
		ok = false
	}
	if s.If != nil {
		branch := s.Else
		if c.inPlace(s.If, v, nil, ev) {
			branch = s.Then
		}
		if branch != nil {
			ok = c.inPlace(branch, v, out, ev) && ok
		}
	}
	return ok
}

func (c *checker) anyOf(s *jsonschema.Schema, v any, out *report, ev *marks) bool {
	matched := false
	for _, sub := range s.AnyOf {
		if c.inPlace(sub, v, nil, ev) {
			if matched = true; ev == nil { // otherwise all matching alternatives add what they evaluated
				return true
			}
		}
	}
	return matched || c.none(s, "anyOf", s.AnyOf, v, out)
}

func (c *checker) oneOf(s *jsonschema.Schema, v any, out *report, ev *marks) bool {
	matched := -1
	for i, sub := range s.OneOf {
		if !c.inPlace(sub, v, nil, ev) {
			continue
		}
		if matched >= 0 {
			return c.fail(out, s, func() jsonschema.ErrorKind { return &kind.OneOf{Subschemas: []int{matched, i}} })
		}
		matched = i
	}
	return matched >= 0 || c.none(s, "oneOf", s.OneOf, v, out)
}

// maxReasons bounds the violations that explain why no alternative matches.
const maxReasons = 8

// none reports that no alternative matches, with the reasons in one line. The
// reasons require a second evaluation, which is done only here because usually
// a later alternative matches.
func (c *checker) none(s *jsonschema.Schema, keyword string, subs []*jsonschema.Schema, v any, out *report) bool {
	if !out.hasRoom() {
		return false
	}
	why := &report{max: maxReasons}
	for _, sub := range subs {
		if !why.hasRoom() {
			break
		}
		c.eval(sub, v, why, nil)
	}
	texts := make([]string, len(why.list))
	for i, v := range why.list {
		texts[i] = v.where() + v.Message
	}
	c.add(out, s, []string{keyword}, "fits none of the alternatives: "+strings.Join(texts, "; "))
	return false
}

func (c *checker) unevaluated(s *jsonschema.Schema, v any, out *report, ev *marks) bool {
	ok := true
	switch v := v.(type) {
	case map[string]any:
		if s.UnevaluatedProperties == nil {
			return true
		}
		c.spend(len(v))
		for name, value := range v {
			if !ev.props[name] {
				ok = c.below(s.UnevaluatedProperties, value, token{key: name}, out) && ok
				ev.prop(name)
			}
		}
	case []any:
		if s.UnevaluatedItems == nil {
			return true
		}
		c.spend(len(v))
		for i, value := range v {
			if !ev.items[i] {
				ok = c.below(s.UnevaluatedItems, value, token{index: i, isIndex: true}, out) && ok
				ev.item(i)
			}
		}
	}
	return ok
}
