package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// decoder decodes nodes into structs. It records the node of each setting, by
// the setting's own key, so that problems and the effective view can report
// positions.
type decoder struct {
	report func(n *node, msg string)
	from   map[string]*node
}

// decode decodes n into v. key is the setting's own key, which differs from the
// node's path if the file has the format of another program.
func (d *decoder) decode(n *node, v reflect.Value, key string) {
	if n.kind == null {
		return // null counts as absent
	}
	d.from[key] = n
	if v.Type() == rawValue { // any JSON
		v.Set(reflect.ValueOf(n.expanded()))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.decode(n, v.Elem(), key)
	case reflect.Struct:
		d.decodeStruct(n, v, key)
	case reflect.Map:
		d.decodeMap(n, v, key)
	case reflect.Slice:
		d.decodeSlice(n, v, key)
	case reflect.String:
		if n.kind != str {
			hint := ""
			if n.kind == number || n.kind == boolean {
				hint = fmt.Sprintf(`; write it in quotes: "%s"`, n.text)
			}
			d.wrongType(n, "a string", hint)
			return
		}
		v.SetString(n.value)
	case reflect.Bool:
		switch text := n.scalar(boolean); {
		case text == "true":
			v.SetBool(true)
		case text == "false":
			v.SetBool(false)
		default:
			d.wrongType(n, "true or false", "")
		}
	case reflect.Int, reflect.Int64:
		d.decodeInt(n, v)
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.scalar(number), 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			d.wrongType(n, "a number", "")
			return
		}
		v.SetFloat(f)
	default:
		panic("config: no file form for " + v.Type().String()) // a programming error; the tests decode every field
	}
}

var rawValue = reflect.TypeFor[json.RawMessage]()

// scalar returns the text of a value of kind k, or of a string with variables,
// because ${PORT} can only be written as a string.
func (n *node) scalar(k kind) string {
	if n.kind == k {
		return n.text
	}
	if n.kind == str && n.value != n.text {
		return strings.TrimSpace(n.value)
	}
	return ""
}

func (d *decoder) wrongType(n *node, want, hint string) {
	is := string(n.kind)
	switch {
	case n.kind == number || n.kind == boolean:
		is = n.text
	case n.kind == str && n.value != n.text && len(n.vars) > 0:
		is += " from a variable"
	}
	d.report(n, fmt.Sprintf("is %s, must be %s%s", is, want, hint))
}

func (d *decoder) decodeInt(n *node, v reflect.Value) {
	text := n.scalar(number)
	i, err := strconv.ParseInt(text, 10, v.Type().Bits())
	if err != nil {
		// 1e3 and 5.0 are whole numbers too.
		f, ferr := strconv.ParseFloat(text, 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			d.wrongType(n, "a whole number", "")
			return
		}
		i = int64(f)
	}
	v.SetInt(i)
}

func (d *decoder) decodeStruct(n *node, v reflect.Value, key string) {
	if n.kind != object {
		d.wrongType(n, "an object", "")
		return
	}
	fields := fieldsOf(v.Type())
	for _, m := range n.members {
		f, ok := fields[m.name]
		if !ok {
			d.unknown(m, slices.Sorted(maps.Keys(fields)))
			continue
		}
		d.decode(m.value, v.FieldByIndex(f.Index), joinKey(key, m.name))
	}
}

// unknown reports a member with an unknown name, at the position of the name.
func (d *decoder) unknown(m member, names []string) {
	d.report(m.value.atKey(), "is not a known key"+suggest(m.name, names))
}

func (d *decoder) decodeMap(n *node, v reflect.Value, key string) {
	if n.kind != object {
		d.wrongType(n, "an object", "")
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(n.members))
	for _, m := range n.members {
		e := reflect.New(v.Type().Elem()).Elem()
		d.decode(m.value, e, joinKey(key, m.name))
		if m.value.kind != null {
			out.SetMapIndex(reflect.ValueOf(m.name), e)
		}
	}
	v.Set(out)
}

func (d *decoder) decodeSlice(n *node, v reflect.Value, key string) {
	if n.kind != array {
		hint := ""
		if n.kind == str {
			words := strings.Fields(n.text)
			for i, w := range words {
				words[i] = strconv.Quote(w)
			}
			hint = fmt.Sprintf("; write [%s]", strings.Join(words, ", "))
		}
		d.wrongType(n, "an array", hint)
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(n.elems))
	for i, e := range n.elems {
		elem := reflect.New(v.Type().Elem()).Elem()
		d.decode(e, elem, key+"["+strconv.Itoa(i)+"]")
		out = reflect.Append(out, elem)
	}
	v.Set(out)
}

// fieldsOf maps the keys of a struct to its fields, including those of embedded
// structs.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		if name := jsonName(f); name != "" {
			fields[name] = f
		}
	}
	return fields
}

// jsonName returns the key of a field, or "" if it has none.
func jsonName(f reflect.StructField) string {
	if f.Anonymous || !f.IsExported() {
		return ""
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}
