package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
)

const calculateDefinition = `{"name":"calculate","title":"Calculate","description":"Evaluate an arithmetic expression exactly: + - * / % ^, parentheses, and sqrt, abs, round, floor, ceil, min, max, ln, log10, log2, exp, sin, cos, tan, pi, e. Whole numbers and decimals are exact, however large.","inputSchema":{"type":"object","properties":{"expression":{"type":"string","description":"such as (2.5 + 3) * 12 ^ 2 or sqrt(2) / 3","maxLength":2000}},"required":["expression"],"additionalProperties":false},"outputSchema":{"type":"object","properties":{"result":{"type":"string"},"exact":{"type":"boolean"}},"required":["result","exact"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`

// Limits that bound the cost of one calculation.
const (
	maxExpression = 2000
	maxDepth      = 100
	maxBits       = 1 << 16 // of a numerator or denominator
	shownDigits   = 50      // of a fraction without a finite decimal form
)

// calculated is the result of the calculate tool.
type calculated struct {
	Result string `json:"result"`
	Exact  bool   `json:"exact"`
}

func calculate(arguments json.RawMessage) (answer, error) {
	var a struct {
		Expression string `json:"expression"`
	}
	if err := json.Unmarshal(arguments, &a); err != nil {
		return answer{}, fmt.Errorf("arguments: %w", err)
	}
	if len(a.Expression) > maxExpression {
		return answer{}, fmt.Errorf("the expression has %d characters; %d are allowed", len(a.Expression), maxExpression)
	}
	p := &expression{rest: a.Expression, exact: true}
	v, err := p.sum(0)
	if err == nil && p.peek() != 0 {
		err = p.unexpected()
	}
	if err != nil {
		return answer{}, err
	}
	text, whole := show(v)
	c := calculated{text, p.exact && whole}
	if !c.Exact {
		text = "≈ " + text
	}
	return answer{text, c}, nil
}

// show returns the number in decimal notation, and reports whether it is exact.
func show(v *big.Rat) (string, bool) {
	if v.IsInt() {
		return v.Num().String(), true
	}
	digits, finite := v.FloatPrec()
	if finite && digits <= shownDigits {
		return v.FloatString(digits), true
	}
	text := v.FloatString(shownDigits)
	f, _ := v.Float64()
	if math.Abs(f) > 1e15 || math.Abs(f) < 1e-15 {
		return text, false
	}
	return fmt.Sprintf("%.15g", f), false
}

// expression parses and evaluates an expression from left to right.
type expression struct {
	rest  string
	exact bool // no function with an irrational value was used
}

// peek returns the next character that is not white space, or 0 at the end.
func (p *expression) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " \t\n\r")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *expression) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *expression) unexpected() error {
	if p.peek() == 0 {
		return errors.New("the expression ends where a number is expected")
	}
	return fmt.Errorf("unexpected %q", firstRunes(p.rest, 12))
}

func firstRunes(s string, n int) string {
	r := []rune(s)
	return string(r[:min(len(r), n)])
}

func (p *expression) sum(depth int) (*big.Rat, error) {
	v, err := p.product(depth)
	for err == nil {
		op := p.peek()
		if op != '+' && op != '-' {
			return v, nil
		}
		p.rest = p.rest[1:]
		var w *big.Rat
		if w, err = p.product(depth); err != nil {
			break
		}
		if op == '+' {
			v, err = bounded(new(big.Rat).Add(v, w))
		} else {
			v, err = bounded(new(big.Rat).Sub(v, w))
		}
	}
	return nil, err
}

func (p *expression) product(depth int) (*big.Rat, error) {
	v, err := p.unary(depth)
	for err == nil {
		op := p.peek()
		if op != '*' && op != '/' && op != '%' {
			return v, nil
		}
		p.rest = p.rest[1:]
		if op == '*' && p.take('*') {
			return nil, errors.New("write ^ for powers")
		}
		var w *big.Rat
		if w, err = p.unary(depth); err != nil {
			break
		}
		if op == '*' {
			v, err = bounded(new(big.Rat).Mul(v, w))
			continue
		}
		if w.Sign() == 0 {
			return nil, errors.New("division by zero")
		}
		if op == '/' {
			v, err = bounded(new(big.Rat).Quo(v, w))
			continue
		}
		whole := new(big.Rat).SetInt(floor(new(big.Rat).Quo(v, w)))
		v, err = bounded(new(big.Rat).Sub(v, whole.Mul(whole, w)))
	}
	return nil, err
}

func (p *expression) unary(depth int) (*big.Rat, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the expression is nested deeper than %d", maxDepth)
	}
	switch {
	case p.take('-'):
		v, err := p.unary(depth + 1)
		if err != nil {
			return nil, err
		}
		return new(big.Rat).Neg(v), nil
	case p.take('+'):
		return p.unary(depth + 1)
	}
	v, err := p.atom(depth)
	if err != nil || !p.take('^') {
		return v, err
	}
	w, err := p.unary(depth + 1) // powers are right-associative: 2^3^2 is 2^9
	if err != nil {
		return nil, err
	}
	return p.power(v, w)
}

func (p *expression) power(v, w *big.Rat) (*big.Rat, error) {
	if !w.IsInt() || !w.Num().IsInt64() {
		return p.inexact(func(x ...float64) float64 { return math.Pow(x[0], x[1]) }, v, w)
	}
	n := w.Num().Int64()
	if v.Sign() == 0 && n < 0 {
		return nil, errors.New("division by zero")
	}
	times := n
	if n < 0 {
		times = -n
	}
	bits := int64(max(v.Num().BitLen(), v.Denom().BitLen()))
	if bits > 1 && (times > maxBits || times*bits > maxBits) {
		return nil, errors.New("the result is too large")
	}
	e := big.NewInt(times)
	out := new(big.Rat).SetFrac(new(big.Int).Exp(v.Num(), e, nil), new(big.Int).Exp(v.Denom(), e, nil))
	if n < 0 {
		out.Inv(out)
	}
	return bounded(out)
}

func (p *expression) atom(depth int) (*big.Rat, error) {
	c := p.peek()
	switch {
	case c == '(':
		p.rest = p.rest[1:]
		v, err := p.sum(depth + 1)
		if err == nil && !p.take(')') {
			err = errors.New("a parenthesis is not closed")
		}
		return v, err
	case '0' <= c && c <= '9' || c == '.':
		return p.number()
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		return p.named(depth)
	}
	return nil, p.unexpected()
}

func (p *expression) number() (*big.Rat, error) {
	end := 0
	for end < len(p.rest) && strings.IndexByte("0123456789._", p.rest[end]) >= 0 {
		end++
	}
	if end+1 < len(p.rest) && (p.rest[end] == 'e' || p.rest[end] == 'E') {
		e := end + 1
		if p.rest[e] == '+' || p.rest[e] == '-' {
			e++
		}
		digits := e
		for digits < len(p.rest) && '0' <= p.rest[digits] && p.rest[digits] <= '9' {
			digits++
		}
		if digits > e+4 {
			return nil, errors.New("the exponent is too large")
		}
		if digits > e {
			end = digits
		}
	}
	text := p.rest[:end]
	v, ok := new(big.Rat).SetString(strings.ReplaceAll(text, "_", ""))
	if !ok {
		return nil, fmt.Errorf("%q is not a number", firstRunes(text, 30))
	}
	p.rest = p.rest[end:]
	return bounded(v)
}

// bounded returns an error for numbers that would make the next step expensive.
func bounded(v *big.Rat) (*big.Rat, error) {
	if v.Num().BitLen() > maxBits || v.Denom().BitLen() > maxBits {
		return nil, errors.New("the result is too large")
	}
	return v, nil
}

func floor(v *big.Rat) *big.Int { // Div rounds down, as the denominator is positive
	return new(big.Int).Div(v.Num(), v.Denom())
}
