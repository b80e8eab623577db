package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/telemetry"
)

// Setting is one effective setting and its source. Secrets are masked.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source string `json:"source"`         // default, file, environment, .env or a flag
	From   string `json:"from"`           // description of the source, such as default, junctor.json:12 or PORT (environment)
	Line   int    `json:"line,omitempty"` // line in the file; absent for other sources
}

// fromDefault is the source of settings that are not set.
const fromDefault = "default"

// Effective returns every setting, in the order of the reference, with secrets
// masked. It omits optional parts that are not set.
func (c *Config) Effective() []Setting {
	var all []Setting
	c.eachSetting(func(v reflect.Value, key, _, _ string) { c.leaf(v, key, &all) })
	return all
}

// eachSetting calls f for every setting, in the order of the reference, with its
// key, the name of its field and, if that is a map, its name in the map.
func (c *Config) eachSetting(f func(v reflect.Value, key, field, name string)) {
	t := reflect.TypeFor[Config]()
	v := reflect.ValueOf(c).Elem()
	for i := range t.NumField() {
		name := jsonName(t.Field(i))
		switch name {
		case "":
		case "mcpServers":
			for _, s := range c.Servers {
				walk(reflect.ValueOf(s), joinKey(name, s.Name), "", "", f)
			}
		default:
			walk(v.Field(i), name, name, "", f)
		}
	}
}

func walk(v reflect.Value, key, field, name string, f func(v reflect.Value, key, field, name string)) {
	switch {
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), key, field, name, f)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			sf := v.Type().Field(i)
			if sf.Anonymous {
				walk(v.Field(i), key, field, name, f)
			} else if member := jsonName(sf); member != "" && !(member == "name" && strings.HasPrefix(key, "mcpServers")) {
				walk(v.Field(i), joinKey(key, member), member, "", f)
			}
		}
	case v.Kind() == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			walk(v.MapIndex(k), joinKey(key, k.String()), field, k.String(), f)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			walk(v.Index(i), key+"["+strconv.Itoa(i)+"]", field, name, f)
		}
	default:
		f(v, key, field, name)
	}
}

// leaf adds one value, unless it is an empty string or list that is not set.
func (c *Config) leaf(v reflect.Value, key string, all *[]Setting) {
	n := c.from[key]
	if n == nil && v.IsZero() && (v.Kind() == reflect.String || v.Kind() == reflect.Slice) {
		return
	}
	s := Setting{Key: key, Value: c.show(v, key, n), Source: fromDefault, From: fromDefault}
	if n == nil && strings.HasPrefix(key, "mcpServers") && strings.HasSuffix(key, ".timeoutMs") {
		n = c.from["DEFAULT_TOOL_TIMEOUT_MS"]
	}
	if n == nil && c.from[parentKey(key)] != nil && c.from[parentKey(key)].source != "" && !isDefaulted(key) {
		n = c.from[parentKey(key)] // the whole parent comes from a variable
	}
	c.origin(&s, n)
	*all = append(*all, s)
}

// isDefaulted reports whether a setting of a server that is defined by the
// environment has its default: all except those that start the server.
func isDefaulted(key string) bool {
	return !strings.HasSuffix(key, ".command") && !strings.HasSuffix(key, ".args") && !strings.HasSuffix(key, ".transport")
}

func parentKey(key string) string {
	if i := strings.LastIndexAny(key, ".["); i > 0 {
		return key[:i]
	}
	return ""
}

// origin sets in s where the value of n is from.
func (c *Config) origin(s *Setting, n *node) {
	switch {
	case n == nil:
	case n.source != "":
		s.From, s.Source = n.source, n.source
		for _, from := range []string{fromEnvironment, fromDotenv, fromFolder, fromFile} {
			if strings.HasSuffix(n.source, "("+from+")") {
				s.Source = from
			}
		}
		if strings.HasPrefix(n.source, fromDefault) {
			s.Source = fromDefault
		}
	case c.src != nil && n.offset >= 0:
		p := c.src.at(n.offset, "", "")
		s.Source, s.Line = fromFile, p.Line
		s.From = fmt.Sprintf("%s:%d", filepath.Base(p.File), p.Line)
		if vars := usedVars(n); len(vars) > 0 {
			s.From += ", " + strings.Join(vars, ", ")
		}
	}
}

// usedVars returns the variables in a value and, for a list, in its elements.
func usedVars(n *node) []string {
	vars := slices.Clone(n.vars)
	for _, e := range n.elems {
		vars = append(vars, e.vars...)
	}
	slices.Sort(vars)
	return slices.Compact(vars)
}

// onlyVariable matches a secret that is written as a variable and may therefore
// be shown as it is written.
var onlyVariable = regexp.MustCompile(`^(Bearer |Basic |token )?\$\{[A-Za-z_:][A-Za-z0-9_:]*\}$`)

// show returns the value with secrets masked.
func (c *Config) show(v reflect.Value, key string, n *node) any {
	if s, ok := v.Interface().(telemetry.Secret); ok {
		if n != nil && onlyVariable.MatchString(n.text) {
			return n.text
		}
		return s.String()
	}
	if v.Type() == rawValue && n != nil {
		return string(n.json()) // with variables unexpanded: they may be secrets
	}
	inServer := strings.HasPrefix(key, "mcpServers")
	switch v.Kind() {
	case reflect.String:
		if inServer && n != nil && len(n.vars) > 0 {
			return n.text // unexpanded: the variable may be a secret
		}
		var r telemetry.Redactor
		return r.String(v.String())
	case reflect.Slice:
		list := make([]string, v.Len())
		for i := range list {
			list[i] = v.Index(i).String()
			if e := c.from[key+"["+strconv.Itoa(i)+"]"]; inServer && e != nil && len(e.vars) > 0 {
				list[i] = e.text
			}
		}
		if inServer {
			return MaskArgs(list)
		}
		return list
	}
	return v.Interface()
}
