package config

import (
	"reflect"
	"slices"
	"strings"

	"junctor/internal/llm"
	"junctor/internal/setting"
	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// field describes a setting in schema and reference: its type and default are
// from the Go struct, its description is the comment there.
type field struct {
	key      string
	doc      string
	typ      reflect.Type // without pointers
	def      any          // nil when there is no default to show
	words    []string     // the values of an enumeration
	fields   []field      // of an object, or of the objects in a list or map
	oneOrAll bool         // a single string is accepted as a list of one
	apply    string       // when a change takes effect: live or restart
}

// oneOrMany are the lists that accept a single string.
var oneOrMany = []string{"pattern", "tags", "inheritEnv", "allowed_tools", "excluded_tools", "scopes", "origins", "readOnly", "destructive", "idempotent", "openWorld"}

// describeConfig returns the whole configuration as fields.
func describeConfig() []field {
	all := describeStruct(reflect.TypeFor[Config](), reflect.ValueOf(*Default()))
	inheritApply(all, "")
	return all
}

// inheritApply sets apply of fields that have none to that of their object.
func inheritApply(fields []field, apply string) {
	for i := range fields {
		if fields[i].apply == "" {
			fields[i].apply = apply
		}
		inheritApply(fields[i].fields, fields[i].apply)
	}
}

// describeStruct returns the fields of a struct; v has the defaults.
func describeStruct(t reflect.Type, v reflect.Value) []field {
	var all []field
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Anonymous {
			all = append(all, describeStruct(sf.Type, v.Field(i))...)
			continue
		}
		key := jsonName(sf)
		if key == "" {
			continue
		}
		f := field{key: key, doc: fieldDocs()[docKey(t, sf)], typ: sf.Type, oneOrAll: slices.Contains(oneOrMany, key), apply: sf.Tag.Get("apply")}
		value := v.Field(i)
		for f.typ.Kind() == reflect.Pointer {
			f.typ = f.typ.Elem()
			value = reflect.Value{}
		}
		f.describeType(value)
		all = append(all, f)
	}
	return all
}

// describeType sets what depends on the type; v is the default and may be
// invalid.
func (f *field) describeType(v reflect.Value) {
	if w, ok := reflect.Zero(f.typ).Interface().(interface{ Values() []string }); ok {
		f.words = w.Values()
		if f.typ == reflect.TypeFor[upstream.Transport]() {
			f.words = transportNames()
		}
	}
	switch f.typ.Kind() {
	case reflect.Struct:
		if !v.IsValid() {
			v = reflect.Zero(f.typ)
			if f.typ == reflect.TypeFor[setting.Rate]() {
				v = reflect.ValueOf(setting.Rate{PerMs: 60_000})
			}
			f.fields = withoutDefaults(describeStruct(f.typ, v))
			return
		}
		f.fields = describeStruct(f.typ, v)
	case reflect.Slice:
		switch elem := f.typ.Elem(); elem {
		case reflect.TypeFor[upstream.Config]():
			f.fields = describeStruct(elem, reflect.ValueOf(upstream.DefaultConfig()))
		case reflect.TypeFor[llm.Config]():
			f.fields = describeStruct(elem, reflect.ValueOf(llm.DefaultConfig()))
		default:
			if elem.Kind() == reflect.Struct {
				f.fields = withoutDefaults(describeStruct(elem, reflect.Zero(elem)))
			}
		}
	case reflect.Map:
		if elem := f.typ.Elem(); elem.Kind() == reflect.Struct {
			f.fields = withoutDefaults(describeStruct(elem, reflect.Zero(elem)))
		}
	case reflect.String:
		if v.IsValid() && v.String() != "" {
			f.def = v.String()
		}
	case reflect.Bool, reflect.Int, reflect.Int64:
		if v.IsValid() {
			f.def = v.Interface()
		}
	}
}

// withoutDefaults removes the zero defaults of an optional struct.
func withoutDefaults(fields []field) []field {
	for i := range fields {
		if fields[i].def != nil && reflect.ValueOf(fields[i].def).IsZero() {
			fields[i].def = nil
		}
		withoutDefaults(fields[i].fields)
	}
	return fields
}

// docKey is the key of a field in fieldDocs: package, type and field.
func docKey(t reflect.Type, f reflect.StructField) string {
	pkg := t.PkgPath()
	return pkg[strings.LastIndexByte(pkg, '/')+1:] + "." + t.Name() + "." + f.Name
}

// transportNames returns all names of transports, ours first.
func transportNames() []string {
	names := upstream.Transport("").Values()
	var others []string
	for word := range transportWords {
		if !slices.Contains(names, word) {
			others = append(others, word)
		}
	}
	slices.Sort(others)
	return append(names, others...)
}

// typeName returns the type of a value in the file, for display.
func (f field) typeName() string {
	if len(f.words) > 0 {
		return "word"
	}
	switch f.typ.Kind() {
	case reflect.Struct:
		return "object"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		if f.typ == reflect.TypeFor[setting.Millis]() {
			return "milliseconds"
		}
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Map:
		switch {
		case f.fields != nil:
			return "objects by name"
		case f.typ.Elem().Kind() == reflect.Slice:
			return "object of lists"
		}
		return "object of strings"
	case reflect.Slice:
		switch {
		case f.typ == rawValue:
			return "any JSON"
		case f.fields != nil:
			return "list of objects"
		case f.oneOrAll:
			return "string or list of strings"
		}
		return "list of strings"
	}
	if f.typ == reflect.TypeFor[telemetry.Secret]() {
		return "secret string"
	}
	return "string"
}
