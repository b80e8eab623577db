package config

import (
	"strconv"

	"github.com/tailscale/hujson"

	"junctor/internal/setting"
)

// kind is the kind of a JSON value.
type kind string

const (
	object  kind = "an object"
	array   kind = "an array"
	str     kind = "a string"
	number  kind = "a number"
	boolean kind = "true or false"
	null    kind = "null"
)

// node is a value of the file with its position. The loader moves nodes while it
// normalizes the shapes; a node keeps its original path and position, which the
// user knows.
type node struct {
	kind    kind
	path    string // as in the file
	offset  int    // of the value; -1 when the value is not in the file
	keyAt   int    // offset of the member's name; that of the value if it has none
	text    string // a string's value before expansion; otherwise the literal
	value   string // a string's value after expansion
	vars    []string
	source  string // where the value is from if it is not from the file
	members []member
	elems   []*node
}

type member struct {
	name  string
	value *node
}

// newTree converts hujson's tree. It reports duplicate names as problems,
// because JSON parsers silently drop one of the members.
func newTree(src *source, v hujson.Value, problem func(Problem)) *node {
	return convert(src, v, "", -1, problem)
}

func convert(src *source, v hujson.Value, path string, keyAt int, problem func(Problem)) *node {
	n := &node{path: path, offset: v.StartOffset, keyAt: keyAt}
	if keyAt < 0 {
		n.keyAt = n.offset
	}
	switch t := v.Value.(type) {
	case *hujson.Object:
		n.kind = object
		seen := map[string]int{}
		for _, m := range t.Members {
			name := m.Name.Value.(hujson.Literal).String()
			at := m.Name.StartOffset
			child := convert(src, m.Value, joinKey(path, name), at, problem)
			if first, twice := seen[name]; twice {
				problem(src.at(at, child.path, "is defined twice, first on line "+
					strconv.Itoa(src.at(first, "", "").Line)+"; rename or remove one"))
				continue
			}
			seen[name] = at
			n.members = append(n.members, member{name, child})
		}
	case *hujson.Array:
		n.kind = array
		for i, e := range t.Elements {
			n.elems = append(n.elems, convert(src, e, path+"["+strconv.Itoa(i)+"]", -1, problem))
		}
	case hujson.Literal:
		switch t.Kind() {
		case '"':
			n.kind, n.text = str, t.String()
			n.value = n.text
		case '0':
			n.kind, n.text = number, string(t)
		case 't', 'f':
			n.kind, n.text = boolean, string(t)
		default:
			n.kind, n.text = null, string(t)
		}
	}
	return n
}

// joinKey joins a path and a name. It quotes names with special characters.
func joinKey(path, name string) string {
	for i := range len(name) {
		c := name[i]
		if c == '.' || c == '[' || c == ']' || c <= ' ' || c == '"' {
			return path + "[" + strconv.Quote(name) + "]"
		}
	}
	if name == "" {
		return path + `[""]`
	}
	return setting.Join(path, name)
}

// get returns the member of that name, or nil. null counts as absent.
func (n *node) get(name string) *node {
	for _, m := range n.members {
		if m.name == name && m.value.kind != null {
			return m.value
		}
	}
	return nil
}

// has reports whether one of the names is a member that is not null.
func (n *node) has(names ...string) bool {
	for _, name := range names {
		if n.get(name) != nil {
			return true
		}
	}
	return false
}

// take removes the member of that name and returns its value, or nil.
func (n *node) take(name string) *node {
	for i, m := range n.members {
		if m.name == name {
			n.members = append(n.members[:i:i], n.members[i+1:]...)
			if m.value.kind == null {
				return nil
			}
			return m.value
		}
	}
	return nil
}

// put adds a member. The caller ensures that n has none of that name.
func (n *node) put(name string, v *node) { n.members = append(n.members, member{name, v}) }

// addMissing adds the members of another object that n does not have.
func (n *node) addMissing(other *node) {
	for _, m := range other.members {
		if !n.has(m.name) {
			n.put(m.name, m.value)
		}
	}
}

// section returns the member of that name. If it is missing, section adds an
// empty object with the position of from.
func (n *node) section(name string, from *node) *node {
	if s := n.get(name); s != nil {
		return s
	}
	s := from.derived(object, "")
	n.put(name, s)
	return s
}

// wrap replaces the member of that name, if it is of kind k, by an array with
// it or, with a key, by an object with it under that key. The file may omit
// that array or object.
func (n *node) wrap(name string, k kind, key string) {
	v := n.get(name)
	if v == nil || v.kind != k {
		return
	}
	n.take(name)
	around := v.derived(array, "")
	if key != "" {
		around.kind = object
		around.put(key, v)
	} else {
		around.elems = []*node{v}
	}
	n.put(name, around)
}

// atKey returns the node with the position of its name.
func (n *node) atKey() *node {
	at := *n
	at.offset = n.keyAt
	return &at
}

// derived returns a node for a value derived from n, with n's path and position.
func (n *node) derived(k kind, text string) *node {
	return &node{kind: k, path: n.path, offset: n.offset, keyAt: n.keyAt, text: text, value: text, vars: n.vars, source: n.source}
}

// strings returns the values of an array of strings, and whether n is one.
func (n *node) strings() ([]string, bool) {
	if n.kind != array {
		return nil, false
	}
	var all []string
	for _, e := range n.elems {
		if e.kind != str {
			return nil, false
		}
		all = append(all, e.value)
	}
	return all, true
}
