package schema

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"
)

// decode returns a JSON value as the evaluator takes it, with numbers as they
// were written. Plain values, which almost all arguments are, are read here;
// the rest, and all errors, are encoding/json's.
func decode(raw []byte) (any, error) {
	p := parser{b: raw}
	if v, ok := p.value(); ok && p.next() == 0 && p.i == len(raw) {
		return v, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errMoreValues
	}
	return v, nil
}

// maxPlainDepth is how deep a value may be nested to be read by a parser.
const maxPlainDepth = 100

// parser reads valid JSON. Where it reports false the value is not valid, or
// too unusual to be worth a case of its own.
type parser struct {
	b     []byte
	i     int
	depth int
}

// next skips white space and returns the byte behind it, 0 at the end.
func (p *parser) next() byte {
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (p *parser) value() (any, bool) {
	switch c := p.next(); c {
	case '"':
		return p.text()
	case '{':
		return p.object()
	case '[':
		return p.array()
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	default:
		return p.number()
	}
}

func (p *parser) word(w string) bool {
	if len(p.b)-p.i < len(w) || string(p.b[p.i:p.i+len(w)]) != w {
		return false
	}
	p.i += len(w)
	return true
}

// text reads a string.
func (p *parser) text() (string, bool) {
	start := p.i + 1
	plain := true
	for i := start; i < len(p.b); i++ {
		switch c := p.b[i]; {
		case c == '"':
			p.i = i + 1
			if plain {
				return string(p.b[start:i]), true
			}
			if !utf8.Valid(p.b[start:i]) {
				return "", false
			}
			var s string
			err := json.Unmarshal(p.b[start-1:i+1], &s)
			return s, err == nil
		case c == '\\':
			plain = false
			i++ // what is escaped ends no string
		case c >= utf8.RuneSelf:
			plain = false
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

func (p *parser) object() (any, bool) {
	if p.depth++; p.depth > maxPlainDepth {
		return nil, false
	}
	m := map[string]any{}
	p.i++
	if p.next() == '}' {
		p.i++
		p.depth--
		return m, true
	}
	for {
		if p.next() != '"' {
			return nil, false
		}
		key, ok := p.text()
		if !ok || p.next() != ':' {
			return nil, false
		}
		p.i++
		v, ok := p.value()
		if !ok {
			return nil, false
		}
		m[key] = v
		switch p.next() {
		case ',':
			p.i++
		case '}':
			p.i++
			p.depth--
			return m, true
		default:
			return nil, false
		}
	}
}

func (p *parser) array() (any, bool) {
	if p.depth++; p.depth > maxPlainDepth {
		return nil, false
	}
	list := []any{}
	p.i++
	if p.next() == ']' {
		p.i++
		p.depth--
		return list, true
	}
	for {
		v, ok := p.value()
		if !ok {
			return nil, false
		}
		list = append(list, v)
		switch p.next() {
		case ',':
			p.i++
		case ']':
			p.i++
			p.depth--
			return list, true
		default:
			return nil, false
		}
	}
}

// number reads an integer of a few digits; others are rare.
func (p *parser) number() (any, bool) {
	start := p.i
	if p.i < len(p.b) && p.b[p.i] == '-' {
		p.i++
	}
	digits := p.i
	for p.i < len(p.b) && '0' <= p.b[p.i] && p.b[p.i] <= '9' {
		p.i++
	}
	if p.i == digits || p.b[digits] == '0' && p.i > digits+1 {
		return nil, false
	}
	if p.i < len(p.b) {
		switch p.b[p.i] {
		case '.', 'e', 'E':
			return nil, false
		}
	}
	return json.Number(p.b[start:p.i]), true
}
