package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// functions are the functions that an expression may call. Their output and
// time grow no faster than their input, which is bounded.
var functions = strings.Fields(`
	length utf8bytelength not keys keys_unsorted values nulls booleans numbers strings arrays objects iterables scalars
	has in map map_values to_entries from_entries with_entries select empty error add any all flatten range
	floor ceil round trunc sqrt fabs abs significand exp log log2 log10 infinite nan isinfinite isnan isnormal
	tostring tonumber toboolean tojson fromjson type sort sort_by group_by min max min_by max_by unique unique_by reverse
	startswith endswith ltrimstr rtrimstr trimstr trim ltrim rtrim split ascii_downcase ascii_upcase
	recurse first last nth limit skip isempty isvalid test match capture scan splits
	todate fromdate now dateadd datesub date strftime strptime mktime gmtime todateiso8601 fromdateiso8601
	paths leaf_paths getpath path del delpaths tostream true false null contains join`)

// replaced are functions of jq that are replaced by our own.
var replaced = map[string]string{"contains": "junctor_contains", "join": "junctor_join"}

// compile parses and restricts an expression. Every value that the expression
// creates is checked, so that none grows beyond maxInput.
func compile(expression string) (*gojq.Code, error) {
	if len(expression) > maxExpression {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(expression), maxExpression)
	}
	query, err := gojq.Parse(expression)
	if err != nil {
		return nil, err
	}
	if err := restrict(reflect.ValueOf(query)); err != nil {
		return nil, err
	}
	return gojq.Compile(query,
		gojq.WithFunction("junctor_check", 0, 0, func(v any, _ []any) any { return checked(v) }),
		gojq.WithFunction("junctor_multiply", 2, 2, func(_ any, args []any) any { return multiply(args[0], args[1]) }),
		gojq.WithFunction("junctor_contains", 1, 1, func(v any, args []any) any { return contains(v, args[0]) }),
		gojq.WithFunction("junctor_join", 1, 1, func(v any, args []any) any { return join(v, args[0]) }))
}

// restrict walks a syntax tree, returns an error for what cannot be bounded,
// and inserts the checks.
func restrict(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if err := restrict(v.Elem()); err != nil {
			return err
		}
		switch node := v.Interface().(type) {
		case *gojq.Query:
			return restrictQuery(node)
		case *gojq.Term:
			return restrictTerm(node)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := restrict(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := restrict(v.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func restrictQuery(q *gojq.Query) error {
	switch {
	case len(q.FuncDefs) > 0 || len(q.Imports) > 0 || q.Meta != nil:
		return errors.New("select cannot define functions or import modules")
	case q.Op >= gojq.OpAssign:
		return errors.New("select is read-only: it does not support assignments")
	case q.Op == gojq.OpMul:
		*q = gojq.Query{Term: call("junctor_multiply", q.Left, q.Right)}
	case q.Op == gojq.OpAdd:
		made := *q
		*q = gojq.Query{Op: gojq.OpPipe, Left: &made, Right: &gojq.Query{Term: call("junctor_check")}}
	}
	return nil
}

func restrictTerm(t *gojq.Term) error {
	switch t.Type {
	case gojq.TermTypeFunc:
		name := t.Func.Name
		if strings.HasPrefix(name, "$") && name != "$ENV" && name != "$__prog_args" {
			return nil
		}
		if !slices.Contains(functions, name) {
			return fmt.Errorf("select does not support the function %s/%d", name, len(t.Func.Args))
		}
		if ours, ok := replaced[name]; ok {
			t.Func.Name = ours
		}
		if name == "recurse" && len(t.Func.Args) > 0 {
			return errors.New("select supports recurse only without arguments")
		}
		if name == "path" || name == "getpath" || name == "recurse" || name == "first" || name == "last" || name == "select" || name == "empty" || name == "error" {
			return nil // parts of paths and their arguments
		}
	case gojq.TermTypeArray, gojq.TermTypeObject, gojq.TermTypeFormat:
	case gojq.TermTypeString:
		if len(t.Str.Queries) > 16 {
			return errors.New("a string has more than 16 parts")
		}
	case gojq.TermTypeLabel, gojq.TermTypeBreak:
		return errors.New("select does not support labels")
	default:
		return nil
	}
	made := *t
	made.SuffixList = nil
	*t = gojq.Term{Type: gojq.TermTypeQuery, SuffixList: t.SuffixList, Query: &gojq.Query{
		Op: gojq.OpPipe, Left: &gojq.Query{Term: &made}, Right: &gojq.Query{Term: call("junctor_check")},
	}}
	return nil
}

func call(name string, args ...*gojq.Query) *gojq.Term {
	return &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}
}

var errTooLarge = fmt.Errorf("it creates a value of more than %d MB", maxInput>>20)

func checked(v any) any {
	if err := bounded(v); err != nil {
		return err
	}
	return v
}

// bounded returns an error if a value would be too large when encoded. Parts
// that it contains several times count each time.
func bounded(v any) error {
	if left := spend(v, maxInput); left < 0 {
		return errTooLarge
	}
	return nil
}

func spend(v any, left int) int {
	left -= 8
	switch v := v.(type) {
	case string:
		return left - len(v)
	case json.Number:
		return left - len(v)
	case *big.Int:
		return left - v.BitLen()/3
	case []any:
		for _, e := range v {
			if left = spend(e, left); left < 0 {
				return left
			}
		}
	case map[string]any:
		for k, e := range v {
			if left = spend(e, left-len(k)); left < 0 {
				return left
			}
		}
	}
	return left
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return f, true
	}
	return 0, false
}

func multiply(a, b any) any {
	x, ok := number(a)
	y, also := number(b)
	if !ok || !also {
		return errors.New("select can only multiply numbers")
	}
	return x * y
}

// maxCompared bounds the product of the lengths of two lists that are compared.
const maxCompared = 1_000_000

func contains(v, part any) any {
	switch v := v.(type) {
	case string:
		if p, ok := part.(string); ok {
			return strings.Contains(v, p)
		}
	case []any:
		p, ok := part.([]any)
		if !ok {
			break
		}
		if len(v)*len(p) > maxCompared {
			return errors.New("contains compares too many values")
		}
		for _, e := range p {
			if !slices.ContainsFunc(v, func(have any) bool { return holds(have, e) }) {
				return false
			}
		}
		return true
	}
	return errors.New("contains compares two strings, or two lists of strings and numbers")
}

func holds(have, part any) bool {
	s, ok := have.(string)
	p, also := part.(string)
	if ok && also {
		return strings.Contains(s, p)
	}
	x, ok := number(have)
	y, also := number(part)
	return ok && also && x == y
}

func join(v, separator any) any {
	list, ok := v.([]any)
	sep, also := separator.(string)
	if !ok || !also || len(sep)*len(list) > maxInput {
		return errors.New("join takes a list and a short string")
	}
	parts := make([]string, len(list))
	for i, e := range list {
		switch e := e.(type) {
		case string:
			parts[i] = e
		case nil:
		case []any, map[string]any:
			return errors.New("join takes a list of strings, numbers and booleans")
		default:
			parts[i] = fmt.Sprint(e)
		}
	}
	return strings.Join(parts, sep)
}
