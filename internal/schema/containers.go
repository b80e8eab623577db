package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// object checks the keywords of objects.
func (c *checker) object(s *jsonschema.Schema, v map[string]any, out *report, ev *marks) bool {
	ok := true
	if s.MinProperties != nil && len(v) < *s.MinProperties {
		ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.MinProperties{Got: len(v), Want: *s.MinProperties} })
	}
	if s.MaxProperties != nil && len(v) > *s.MaxProperties {
		ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.MaxProperties{Got: len(v), Want: *s.MaxProperties} })
	}
	if missing := c.missing(v, s.Required); missing != nil {
		ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.Required{Missing: missing} })
	}
	if !ok && !out.hasRoom() {
		return false
	}
	ok = c.members(s, v, out, ev) && ok
	if s.DraftVersion > 4 && s.PropertyNames != nil {
		for name := range v {
			if c.eval(s.PropertyNames, name, nil, nil) {
				continue
			}
			if ok = false; out.hasRoom() {
				why := &report{max: 1}
				c.eval(s.PropertyNames, name, why, nil)
				c.add(out, s, []string{"propertyNames"}, "the name "+cut(name)+" does not fit: "+why.list[0].Message)
			}
		}
	}
	return c.dependencies(s, v, out, ev) && ok
}

// members checks properties, patternProperties and additionalProperties.
func (c *checker) members(s *jsonschema.Schema, v map[string]any, out *report, ev *marks) bool {
	if len(s.Properties) == 0 && len(s.PatternProperties) == 0 && s.AdditionalProperties == nil {
		return true
	}
	c.spend(len(v))
	ok := true
	var additional []string
	for name, value := range v {
		if !ok && !out.hasRoom() {
			return false
		}
		evaluated := false
		if sub, found := s.Properties[name]; found {
			evaluated = true
			ok = c.below(sub, value, token{key: name}, out) && ok
		}
		for re, sub := range s.PatternProperties {
			if c.match(re, name) {
				evaluated = true
				ok = c.below(sub, value, token{key: name}, out) && ok
			}
		}
		if !evaluated && s.AdditionalProperties != nil {
			evaluated = true
			switch sub := s.AdditionalProperties.(type) {
			case bool:
				if !sub {
					additional = append(additional, cut(name))
				}
			case *jsonschema.Schema:
				ok = c.below(sub, value, token{key: name}, out) && ok
			}
		}
		if evaluated {
			ev.prop(name)
		}
	}
	if len(additional) > 0 {
		slices.Sort(additional)
		additional = additional[:min(len(additional), maxViolations)]
		return c.fail(out, s, func() jsonschema.ErrorKind { return &kind.AdditionalProperties{Properties: additional} })
	}
	return ok
}

func (c *checker) dependencies(s *jsonschema.Schema, v map[string]any, out *report, ev *marks) bool {
	ok := true
	c.spend(len(s.Dependencies) + len(s.DependentRequired) + len(s.DependentSchemas))
	for name, dep := range s.Dependencies {
		if _, there := v[name]; !there {
			continue
		}
		switch dep := dep.(type) {
		case []string:
			if missing := c.missing(v, dep); missing != nil {
				ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.Dependency{Prop: name, Missing: missing} })
			}
		case *jsonschema.Schema:
			ok = c.inPlace(dep, v, out, ev) && ok
		}
	}
	for name, required := range s.DependentRequired {
		if _, there := v[name]; !there {
			continue
		}
		if missing := c.missing(v, required); missing != nil {
			ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.DependentRequired{Prop: name, Missing: missing} })
		}
	}
	for name, sub := range s.DependentSchemas {
		if _, there := v[name]; there {
			ok = c.inPlace(sub, v, out, ev) && ok
		}
	}
	return ok
}

func (c *checker) missing(v map[string]any, required []string) (missing []string) {
	c.spend(len(required) / 4)
	for _, name := range required {
		if _, there := v[name]; !there && len(missing) < maxViolations {
			missing = append(missing, cut(name))
		}
	}
	return missing
}

// array checks the keywords of arrays.
func (c *checker) array(s *jsonschema.Schema, v []any, out *report, ev *marks) bool {
	ok := true
	if s.MinItems != nil && len(v) < *s.MinItems {
		ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.MinItems{Got: len(v), Want: *s.MinItems} })
	}
	if s.MaxItems != nil && len(v) > *s.MaxItems {
		ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.MaxItems{Got: len(v), Want: *s.MaxItems} })
	}
	if s.UniqueItems {
		if i, j := c.duplicates(v); j > 0 {
			ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.UniqueItems{Duplicates: [2]int{i, j}} })
		}
	}
	prefix, rest := s.PrefixItems, s.Items2020
	if s.DraftVersion < 2020 {
		switch items := s.Items.(type) {
		case *jsonschema.Schema:
			prefix, rest = nil, items
		case []*jsonschema.Schema:
			prefix = items
			switch additional := s.AdditionalItems.(type) {
			case bool:
				if !additional && len(v) > len(items) {
					ok = c.fail(out, s, func() jsonschema.ErrorKind { return &kind.AdditionalItems{Count: len(v) - len(items)} })
				}
			case *jsonschema.Schema:
				rest = additional
			}
		}
	}
	for i, item := range v {
		if !ok && !out.hasRoom() {
			return false
		}
		sub := rest
		if i < len(prefix) {
			sub = prefix[i]
		}
		if sub == nil {
			break
		}
		ok = c.below(sub, item, token{index: i, isIndex: true}, out) && ok
		ev.item(i)
	}
	if additional, isBool := s.AdditionalItems.(bool); isBool && additional && s.DraftVersion < 2020 {
		for i := range v {
			ev.item(i)
		}
	}
	if s.Contains != nil {
		ok = c.contains(s, v, out, ev) && ok
	}
	return ok
}

func (c *checker) contains(s *jsonschema.Schema, v []any, out *report, ev *marks) bool {
	matched := 0
	for i, item := range v {
		if c.below(s.Contains, item, token{index: i, isIndex: true}, nil) {
			matched++
			if s.DraftVersion >= 2020 {
				ev.item(i)
			}
		}
	}
	minContains := 1
	if s.MinContains != nil {
		minContains = *s.MinContains
	}
	if matched < minContains {
		return c.fail(out, s, func() jsonschema.ErrorKind {
			if s.MinContains == nil {
				return &kind.Contains{}
			}
			return &kind.MinContains{Want: minContains}
		})
	}
	if s.MaxContains != nil && matched > *s.MaxContains {
		return c.fail(out, s, func() jsonschema.ErrorKind { return &kind.MaxContains{Want: *s.MaxContains} })
	}
	return true
}
