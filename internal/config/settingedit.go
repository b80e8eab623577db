package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"junctor/internal/jsonedit"
	"junctor/internal/telemetry"
)

// SetValue sets a setting to value; null removes it from the file, so that its
// default applies. key is that of the reference, such as "log.level".
func SetValue(key string, value json.RawMessage) Edit { return Edit{setValue, key, value} }

// shorthands maps the settings that a file may write as a plain value to the key
// of the object that such a value sets.
var shorthands = map[string]string{"log": "level", "cors": "origins"}

// editValue changes one setting. If the file has a shorthand for the object that
// contains it, the shorthand is first replaced by the object.
func editValue(text []byte, key string, value json.RawMessage) ([]byte, error) {
	if _, _, err := settingType(key); err != nil {
		return nil, err
	}
	path := strings.Split(key, ".")
	if inner, ok := shorthands[path[0]]; ok && len(path) > 1 {
		if raw, there := jsonedit.Get(text, path[0]); there && raw[0] != '{' {
			var err error
			if text, err = jsonedit.Set(text, fmt.Appendf(nil, "{%q:%s}", inner, raw), path[0]); err != nil {
				return nil, err
			}
		}
	}
	if string(value) == "null" {
		return jsonedit.Remove(text, path...)
	}
	return jsonedit.Set(text, value, path...)
}

// settingType returns the type of a setting and when a change of it takes
// effect. It returns an error for settings of servers.
func settingType(key string) (t reflect.Type, apply string, err error) {
	t = reflect.TypeFor[Config]()
	for i, name := range strings.Split(key, ".") {
		f, mark, ok := fieldNamed(t, name)
		if !ok || i == 0 && name == "mcpServers" {
			return nil, "", fmt.Errorf("there is no setting %q; docs/configuration.md lists them", key)
		}
		t, apply = f, cmp.Or(mark, apply)
	}
	return t, apply, nil
}

// fieldNamed returns the type of the value with the given JSON name in a struct
// or a map, and its own tag apply.
func fieldNamed(t reflect.Type, name string) (inner reflect.Type, apply string, ok bool) {
	switch t.Kind() {
	case reflect.Map:
		inner, ok = t.Elem(), name != ""
	case reflect.Struct:
		var f reflect.StructField
		f, ok = fieldsOf(t)[name]
		inner, apply = f.Type, f.Tag.Get("apply")
	}
	if ok && inner.Kind() == reflect.Pointer {
		inner = inner.Elem()
	}
	return inner, apply, ok
}

// AppliesLive reports whether a changed setting takes effect without a restart.
func AppliesLive(key string) bool {
	_, apply, err := settingType(key)
	return err == nil && apply == applyLive
}

// SecretsIn returns the paths of the plain-text secrets in the value of a
// setting.
func SecretsIn(key string, value json.RawMessage) [][]string {
	t, _, err := settingType(key)
	var v any
	if err != nil || json.Unmarshal(value, &v) != nil {
		return nil
	}
	var found [][]string
	findSecrets(t, v, nil, &found)
	return found
}

func findSecrets(t reflect.Type, v any, path []string, found *[][]string) {
	down := func(t reflect.Type, v any, name string) {
		findSecrets(t, v, append(slices.Clone(path), name), found)
	}
	switch v := v.(type) {
	case string:
		if t == reflect.TypeFor[telemetry.Secret]() && v != "" && !strings.Contains(v, "${") {
			*found = append(*found, path)
		}
	case []any:
		if t.Kind() == reflect.Slice {
			for i, e := range v {
				down(t.Elem(), e, strconv.Itoa(i))
			}
		}
	case map[string]any:
		if t.Kind() == reflect.Slice { // a single element without the list
			t = t.Elem()
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if f, _, ok := fieldNamed(t, name); ok {
				down(f, v[name], name)
			}
		}
	}
}

// ReadFile returns the text of the configuration file, empty when there is none,
// and its settings other than servers, by their top-level keys.
func ReadFile(o Options) (text []byte, settings map[string]json.RawMessage, err error) {
	settings = map[string]json.RawMessage{}
	place := Locate(o)
	if place.Path == "" {
		return nil, settings, nil
	}
	text, err = os.ReadFile(place.Path)
	if os.IsNotExist(err) {
		return nil, settings, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the configuration: %w", err)
	}
	plain, err := hujson.Standardize(bytes.Clone(bytes.TrimPrefix(text, bom)))
	var all map[string]json.RawMessage
	if err != nil || json.Unmarshal(plain, &all) != nil { // a list of servers, or invalid
		return text, settings, nil
	}
	for key, value := range all {
		if _, _, err := settingType(key); err == nil {
			settings[key] = value
		}
	}
	for key, inner := range shorthands {
		if raw, ok := settings[key]; ok && raw[0] != '{' {
			settings[key] = fmt.Appendf(nil, "{%q:%s}", inner, raw)
		}
	}
	return text, settings, nil
}
