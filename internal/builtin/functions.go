package builtin

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
)

// maxArguments bounds the arguments of one function.
const maxArguments = 100

// function is a named function. Functions with an irrational value compute it
// with expression.inexact.
type function struct {
	arguments int // the number of arguments; -1 means one or more
	run       func(p *expression, v []*big.Rat) (*big.Rat, error)
}

var constants = map[string]float64{"pi": math.Pi, "e": math.E}

var functions = map[string]function{
	"abs":   {1, func(_ *expression, v []*big.Rat) (*big.Rat, error) { return new(big.Rat).Abs(v[0]), nil }},
	"floor": {1, func(_ *expression, v []*big.Rat) (*big.Rat, error) { return new(big.Rat).SetInt(floor(v[0])), nil }},
	"ceil": {1, func(_ *expression, v []*big.Rat) (*big.Rat, error) {
		down := floor(new(big.Rat).Neg(v[0]))
		return new(big.Rat).SetInt(down.Neg(down)), nil
	}},
	"round": {1, func(_ *expression, v []*big.Rat) (*big.Rat, error) { return round(v[0]), nil }},
	"min":   {-1, extreme(-1)},
	"max":   {-1, extreme(1)},
	"sqrt":  {1, root},
	"ln":    {1, approximate(math.Log)},
	"log10": {1, approximate(math.Log10)},
	"log2":  {1, approximate(math.Log2)},
	"exp":   {1, approximate(math.Exp)},
	"sin":   {1, approximate(math.Sin)},
	"cos":   {1, approximate(math.Cos)},
	"tan":   {1, approximate(math.Tan)},
}

// named parses and evaluates a constant or a function with its arguments.
func (p *expression) named(depth int) (*big.Rat, error) {
	end := strings.IndexFunc(p.rest, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	})
	if end < 0 {
		end = len(p.rest)
	}
	name := strings.ToLower(p.rest[:end])
	p.rest = p.rest[end:]
	if c, ok := constants[name]; ok {
		p.exact = false
		return new(big.Rat).SetFloat64(c), nil
	}
	f, ok := functions[name]
	if !ok {
		return nil, fmt.Errorf("%q is neither a constant nor a function", firstRunes(name, 30))
	}
	if !p.take('(') {
		return nil, fmt.Errorf("%s needs its argument in parentheses", name)
	}
	var v []*big.Rat
	for {
		w, err := p.sum(depth + 1)
		if err != nil {
			return nil, err
		}
		v = append(v, w)
		if !p.take(',') {
			break
		}
	}
	if !p.take(')') {
		return nil, errors.New("a parenthesis is not closed")
	}
	if len(v) > maxArguments || f.arguments >= 0 && len(v) != f.arguments {
		return nil, fmt.Errorf("%s does not take %d arguments", name, len(v))
	}
	return f.run(p, v)
}

// inexact evaluates f in floating point and marks the expression as inexact.
func (p *expression) inexact(f func(...float64) float64, v ...*big.Rat) (*big.Rat, error) {
	p.exact = false
	x := make([]float64, len(v))
	for i, w := range v {
		x[i], _ = w.Float64()
	}
	out := new(big.Rat).SetFloat64(f(x...))
	if out == nil {
		return nil, errors.New("the result is not a number, or too large")
	}
	return out, nil
}

func approximate(f func(float64) float64) func(*expression, []*big.Rat) (*big.Rat, error) {
	return func(p *expression, v []*big.Rat) (*big.Rat, error) {
		return p.inexact(func(x ...float64) float64 { return f(x[0]) }, v[0])
	}
}

// root is exact if the root is rational.
func root(p *expression, v []*big.Rat) (*big.Rat, error) {
	if v[0].Sign() < 0 {
		return nil, errors.New("the square root of a negative number is not a real number")
	}
	num, den := new(big.Int).Sqrt(v[0].Num()), new(big.Int).Sqrt(v[0].Denom())
	exact := new(big.Rat).SetFrac(num, den)
	if new(big.Rat).Mul(exact, exact).Cmp(v[0]) == 0 {
		return exact, nil
	}
	return p.inexact(func(x ...float64) float64 { return math.Sqrt(x[0]) }, v[0])
}

// round rounds halves away from zero.
func round(v *big.Rat) *big.Rat {
	half := big.NewRat(1, 2)
	if v.Sign() < 0 {
		down := floor(new(big.Rat).Add(new(big.Rat).Neg(v), half))
		return new(big.Rat).SetInt(down.Neg(down))
	}
	return new(big.Rat).SetInt(floor(new(big.Rat).Add(v, half)))
}

func extreme(sign int) func(*expression, []*big.Rat) (*big.Rat, error) {
	return func(_ *expression, v []*big.Rat) (*big.Rat, error) {
		best := v[0]
		for _, w := range v[1:] {
			if w.Cmp(best) == sign {
				best = w
			}
		}
		return best, nil
	}
}
