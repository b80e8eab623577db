package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of the cost of compiling a schema. The library stores the whole path
// of each subschema and compiles each pattern, so a small document can require
// gigabytes.
const (
	maxSchemaCost = 64 << 20 // bytes of paths, each times its depth
	maxPatternOps = 100_000  // instructions of all patterns
	maxDepth      = 1_000
)

// inspection walks a document before it is compiled.
type inspection struct {
	cost    int
	dynamic bool // has a dynamic reference
	inner   bool // has a resource inside the document
	tuples  bool // has an array as items, outside of any $schema
}

func (in *inspection) walk(doc any, length, depth int, declared bool) error {
	if in.cost += (length + 64) * (depth + 1); in.cost > maxSchemaCost || depth > maxDepth {
		return errors.New("it is too large: its subschemas have very long paths")
	}
	switch v := doc.(type) {
	case json.Number:
		if d := parseDecimal(v); len(d.digits) > maxDigits || d.exponent > maxExponent || d.exponent < -maxExponent {
			return fmt.Errorf("the number %s is out of range", cut(string(v)))
		}
	case map[string]any:
		_, own := v["$schema"]
		declared = declared || own
		if _, ok := v["items"].([]any); ok && !declared {
			in.tuples = true
		}
		_, id := v["$id"]
		in.inner = in.inner || id && depth > 0
		for key, sub := range v {
			inside := declared
			switch key {
			case "$dynamicRef", "$recursiveRef":
				in.dynamic = true
			case "enum", "const", "default", "examples": // values, not schemas
				inside = true
			}
			if err := in.walk(sub, length+1+len(key), depth+1, inside); err != nil {
				return err
			}
		}
	case []any:
		for _, sub := range v {
			if err := in.walk(sub, length+7, depth+1, declared); err != nil {
				return err
			}
		}
	}
	return nil
}

// pattern is a regular expression with an estimate of its size.
type pattern struct {
	*regexp.Regexp
	ops int
}

// patterns returns an engine that compiles patterns of up to left instructions
// in total.
func patterns(left int) jsonschema.RegexpEngine {
	return func(text string) (jsonschema.Regexp, error) {
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			return nil, err
		}
		ops := instructions(parsed)
		if left -= ops; left < 0 {
			return nil, fmt.Errorf("the pattern %s is too large", cut(text))
		}
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		return &pattern{re, ops}, nil
	}
}

// instructions estimates the size of the compiled expression, for which a
// counted repetition is expanded.
func instructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// match matches text and counts the steps, at worst each instruction at each
// byte.
func (c *checker) match(re jsonschema.Regexp, text string) bool {
	ops := 16
	if p, ok := re.(*pattern); ok {
		ops = p.ops
	}
	c.spend(1 + len(text)*(ops+8)/64)
	return re.MatchString(text)
}

// validRegex checks the format "regex" of values, which must not count against
// the schema's limit of patterns.
func (c *checker) validRegex(text string) error {
	c.spend(len(text))
	_, err := syntax.Parse(text, syntax.Perl)
	return err
}

// compile compiles the document with the library, within limits.
func compile(raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return nil, fmt.Errorf("schema is not JSON: %w", err)
	}
	var in inspection
	if err := in.walk(doc, 0, 0, false); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if in.dynamic && in.inner {
		return nil, errors.New("schema: dynamic references between embedded resources are not supported")
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if in.tuples {
		c.DefaultDraft(jsonschema.Draft7)
	}
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(patterns(maxPatternOps))
	if err := c.AddResource(resource, doc); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiled, err := c.Compile(resource)
	if err != nil {
		return nil, fmt.Errorf("schema: %s", cut(err.Error()))
	}
	return compiled, nil
}
