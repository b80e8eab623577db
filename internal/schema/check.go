package schema

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ErrTooCostly is the error of a check that exceeded its number of steps,
// because the schema multiplies alternatives or refers to itself endlessly.
var ErrTooCostly = errors.New("checking the value against the schema takes too many steps")

// A check may take baseSteps plus stepsPerByte for each byte of the value. A
// step is about the work of applying one schema object to one value, some tens
// of nanoseconds.
const (
	baseSteps        = 1_000_000
	stepsPerByte     = 4
	maxNesting       = 4_000 // of schema applications, which are stack frames
	stepsPerCtxCheck = 4_096 // steps between two checks of the context
)

// wordSteps is the number of steps that the message of a violation costs.
const wordSteps = 100

// maxMessage bounds the message of one violation.
const maxMessage = 500

// token is one step into a value: a key, or an index where key is unset.
type token struct {
	key     string
	index   int
	isIndex bool
}

// checker applies a schema to one value. To abort, it panics with a stop, which
// check recovers.
type checker struct {
	ctx   context.Context
	steps int // the remaining steps
	next  int // ctx is checked when steps falls below it
	depth int
	path  []token
}

type stop struct{ err error }

// check returns the violations. An error means that the check was aborted.
func check(ctx context.Context, s *jsonschema.Schema, v any, size int) (found []Violation, err error) {
	c := checker{ctx: ctx, steps: baseSteps + stepsPerByte*size}
	c.next = c.steps - stepsPerCtxCheck
	defer func() {
		switch p := recover().(type) {
		case nil:
		case stop:
			found, err = nil, p.err
		default:
			panic(p)
		}
	}()
	out := &report{max: maxViolations}
	c.eval(s, v, out, nil)
	return out.list, nil
}

// spend counts steps. It is called before the work is done.
func (c *checker) spend(n int) {
	if n < 0 || n > c.steps {
		panic(stop{ErrTooCostly})
	}
	if c.steps -= n; c.steps < c.next {
		c.next = c.steps - stepsPerCtxCheck
		if err := c.ctx.Err(); err != nil {
			panic(stop{err})
		}
	}
}

// report collects violations up to a limit. A nil report collects none, if only
// the validity of the value is needed.
type report struct {
	list []Violation
	max  int
}

func (r *report) hasRoom() bool { return r != nil && len(r.list) < r.max }

// fail adds a violation to out if there is room; words is called only then. It
// returns false, the result of the check.
func (c *checker) fail(out *report, s *jsonschema.Schema, words func() jsonschema.ErrorKind) bool {
	if !out.hasRoom() {
		return false
	}
	k := words()
	c.add(out, s, k.KeywordPath(), k.LocalizedString(english))
	return false
}

func (c *checker) add(out *report, s *jsonschema.Schema, keyword []string, message string) {
	at := s.Location[strings.IndexByte(s.Location, '#')+1:]
	c.spend(wordSteps + 8*len(c.path) + len(at)/16)
	out.list = append(out.list, Violation{Path: c.pointer(), Schema: at + pointer(keyword), Message: cut(message)})
}

func (c *checker) pointer() string {
	parts := make([]string, len(c.path))
	for i, t := range c.path {
		parts[i] = cut(t.key)
		if t.isIndex {
			parts[i] = strconv.Itoa(t.index)
		}
	}
	return pointer(parts)
}

// marks are the evaluated members and items of one value, for
// unevaluatedProperties and unevaluatedItems. Nil marks record nothing.
type marks struct {
	props map[string]bool
	items map[int]bool
}

func (m *marks) prop(name string) {
	if m != nil {
		if m.props == nil {
			m.props = map[string]bool{}
		}
		m.props[name] = true
	}
}

func (m *marks) item(i int) {
	if m != nil {
		if m.items == nil {
			m.items = map[int]bool{}
		}
		m.items[i] = true
	}
}

func (m *marks) merge(other *marks) {
	if m == nil || other == nil {
		return
	}
	for name := range other.props {
		m.prop(name)
	}
	for i := range other.items {
		m.item(i)
	}
}

// inPlace applies a schema to the same value. What it evaluated is added to ev
// only if the value is valid.
func (c *checker) inPlace(s *jsonschema.Schema, v any, out *report, ev *marks) bool {
	if ev == nil {
		return c.eval(s, v, out, nil)
	}
	var own marks
	if !c.eval(s, v, out, &own) {
		return false
	}
	c.spend(len(own.props) + len(own.items))
	ev.merge(&own)
	return true
}

// below applies a schema to a part of the value.
func (c *checker) below(s *jsonschema.Schema, v any, at token, out *report) bool {
	c.path = append(c.path, at)
	ok := c.eval(s, v, out, nil)
	c.path = c.path[:len(c.path)-1]
	return ok
}

// typeBit returns the type of a value as one of the library's bits.
func typeBit(v any) (jsonschema.Types, string) {
	switch v.(type) {
	case nil:
		return typeNull, "null"
	case bool:
		return typeBoolean, "boolean"
	case json.Number:
		return typeNumber, "number"
	case string:
		return typeString, "string"
	case []any:
		return typeArray, "array"
	default:
		return typeObject, "object"
	}
}

var (
	typeNull    = typeOf("null")
	typeBoolean = typeOf("boolean")
	typeNumber  = typeOf("number")
	typeInteger = typeOf("integer")
	typeString  = typeOf("string")
	typeArray   = typeOf("array")
	typeObject  = typeOf("object")
)

func typeOf(name string) (t jsonschema.Types) {
	t.Add(name)
	return t
}
