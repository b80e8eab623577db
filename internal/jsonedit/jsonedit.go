// Package jsonedit changes single values in a JSON text and preserves everything
// else: comments, order, white space, trailing commas, line endings, byte order
// mark.
//
// The result always parses, and has the values of the old document except for
// the one that was changed. An edit that would change more is refused. The
// package works only on text and imports no other package of the project.
package jsonedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

var bom = []byte("\xef\xbb\xbf")

// maxDepth is the maximum nesting depth of documents; the parser is recursive.
const maxDepth = 200

// Set sets the value at path, which consists of the names of members and the
// indexes of elements from the root. It creates missing objects; an index equal
// to the length of its array, or "-", appends. If the value is equal already,
// its text is left unchanged. An empty document becomes an object.
func Set(doc []byte, value json.RawMessage, path ...string) ([]byte, error) {
	var want any
	if err := json.Unmarshal(value, &want); err != nil {
		return nil, fmt.Errorf("the new value is not JSON: %w", err)
	}
	parsed, err := hujson.Parse(readable(value))
	if err != nil {
		return nil, fmt.Errorf("the new value is not JSON: %w", err)
	}
	return edit(doc, func(d *document) error { return d.set(&d.root, parsed, want, path) })
}

// quote returns a name as a JSON string.
func quote(name string) hujson.Literal {
	quoted, _ := json.Marshal(name) // never fails for a string
	return readable(quoted)
}

// escape is an escape sequence in a JSON string.
var escape = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)

// readable returns a value without the HTML escapes of [json.Marshal], because
// people read and write these files.
func readable(value []byte) []byte {
	return escape.ReplaceAllFunc(value, func(e []byte) []byte {
		switch string(e) {
		case `\u0026`:
			return []byte("&")
		case `\u003c`:
			return []byte("<")
		case `\u003e`:
			return []byte(">")
		}
		return e
	})
}

// Remove removes the value at path, together with the comment directly above it
// and the one after it on the same line. It is not an error if there is no such
// value.
func Remove(doc []byte, path ...string) ([]byte, error) {
	if len(path) == 0 {
		return nil, errors.New("the document itself cannot be removed")
	}
	return edit(doc, func(d *document) error {
		parent := find(&d.root, path[:len(path)-1])
		if parent == nil {
			return nil
		}
		i := index(parent, path[len(path)-1])
		if i < 0 {
			return nil
		}
		d.remove(newList(parent), i)
		switch t := parent.Value.(type) {
		case *hujson.Object:
			t.Members = slices.Delete(t.Members, i, i+1)
		case *hujson.Array:
			t.Elements = slices.Delete(t.Elements, i, i+1)
		}
		return nil
	})
}

// Get returns the value at path as plain JSON.
func Get(doc []byte, path ...string) (json.RawMessage, bool) {
	d, err := parse(doc)
	if err != nil {
		return nil, false
	}
	v := find(&d.root, path)
	if v == nil {
		return nil, false
	}
	return plain(*v), true
}

// plain returns a value without comments and white space.
func plain(v hujson.Value) []byte {
	v = v.Clone()
	v.Minimize()
	return v.Pack()
}

// document is a parsed text that is being edited. Each change is applied to
// text and to root independently, so that one can be checked against the other.
type document struct {
	text []byte
	root hujson.Value
	mark []byte // byte order mark
	crlf bool
}

func parse(doc []byte) (*document, error) {
	d := &document{}
	if bytes.HasPrefix(doc, bom) {
		d.mark, doc = bom, doc[len(bom):]
	}
	d.crlf = bytes.Contains(doc, []byte("\r\n"))
	if len(bytes.TrimSpace(doc)) == 0 {
		doc = []byte("{}\n")
		if d.crlf {
			doc = []byte("{}\r\n")
		}
	}
	if TooDeep(doc, maxDepth) >= 0 {
		return nil, fmt.Errorf("the document is nested deeper than %d levels", maxDepth)
	}
	root, err := hujson.Parse(bytes.Clone(doc))
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	d.text, d.root = doc, root
	return d, nil
}

func edit(doc []byte, change func(*document) error) ([]byte, error) {
	d, err := parse(doc)
	if err != nil {
		return nil, err
	}
	if err := change(d); err != nil {
		return nil, err
	}
	after, err := parse(d.text)
	if err != nil {
		return nil, fmt.Errorf("the change would break the document: %w", err)
	}
	if !bytes.Equal(plain(after.root), plain(d.root)) {
		return nil, errors.New("the change would alter other values of the document too; make it by hand")
	}
	return append(bytes.Clone(d.mark), d.text...), nil
}

// TooDeep returns the offset of the bracket at which the nesting exceeds max,
// or -1. It recognizes only strings, comments and brackets, not the rest of
// JSON.
func TooDeep(doc []byte, max int) int {
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch {
		case doc[i] == '"':
			for i++; i < len(doc) && doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(doc[i:], []byte("//")):
			for i < len(doc) && doc[i] != '\n' {
				i++
			}
		case bytes.HasPrefix(doc[i:], []byte("/*")):
			end := bytes.Index(doc[i+2:], []byte("*/"))
			if end < 0 {
				return -1
			}
			i += end + 3
		case doc[i] == '{' || doc[i] == '[':
			if depth++; depth > max {
				return i
			}
		case doc[i] == '}' || doc[i] == ']':
			depth--
		}
	}
	return -1
}

// set finds the location of the value and edits the text there.
func (d *document) set(v *hujson.Value, value hujson.Value, want any, path []string) error {
	if len(path) == 0 {
		if !equal(*v, want) {
			d.replace(v, value)
			v.Value = value.Value
		}
		return nil
	}
	if i := index(v, path[0]); i >= 0 {
		return d.set(at(v, i), value, want, path[1:])
	}
	name := path[0]
	for i := len(path) - 1; i > 0; i-- {
		value = hujson.Value{Value: &hujson.Object{Members: []hujson.ObjectMember{member(path[i], value)}}}
	}
	switch t := v.Value.(type) {
	case *hujson.Object:
		d.insert(newList(v), quote(name), value)
		t.Members = append(t.Members, member(name, value))
		return nil
	case *hujson.Array:
		if name == "-" || name == strconv.Itoa(len(t.Elements)) {
			d.insert(newList(v), nil, value)
			t.Elements = append(t.Elements, value)
			return nil
		}
		return fmt.Errorf("%q is not an index of the array", name)
	}
	return fmt.Errorf("%q cannot be set: its parent is neither an object nor an array", name)
}

func member(name string, value hujson.Value) hujson.ObjectMember {
	return hujson.ObjectMember{Name: hujson.Value{Value: quote(name)}, Value: value}
}

// equal reports whether a value of the document is equal to want.
func equal(v hujson.Value, want any) bool {
	var have any
	return json.Unmarshal(plain(v), &have) == nil && reflect.DeepEqual(have, want)
}

func find(v *hujson.Value, path []string) *hujson.Value {
	for _, name := range path {
		i := index(v, name)
		if i < 0 {
			return nil
		}
		v = at(v, i)
	}
	return v
}

// index returns the position of a member or an element, or -1. If several
// members have the name, it returns the last one, which parsers use.
func index(v *hujson.Value, name string) int {
	found := -1
	switch t := v.Value.(type) {
	case *hujson.Object:
		for i, m := range t.Members {
			if m.Name.Value.(hujson.Literal).String() == name {
				found = i
			}
		}
	case *hujson.Array:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(t.Elements) && strconv.Itoa(i) == name {
			found = i
		}
	}
	return found
}

func at(v *hujson.Value, i int) *hujson.Value {
	switch t := v.Value.(type) {
	case *hujson.Object:
		return &t.Members[i].Value
	case *hujson.Array:
		return &t.Elements[i]
	}
	return nil
}

// splice replaces a range of the text, with the line endings of the document.
func (d *document) splice(from, to int, with string) {
	if d.crlf {
		with = strings.ReplaceAll(with, "\n", "\r\n")
	}
	d.text = append(d.text[:from:from], append([]byte(with), d.text[to:]...)...)
}

// Check returns an error if a document cannot be parsed. An empty one can.
func Check(doc []byte) error {
	_, err := parse(doc)
	return err
}
