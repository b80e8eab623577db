package config

import (
	"reflect"
	"slices"
)

// When a changed setting takes effect: the values of the tag apply.
const (
	applyLive    = "live"
	applyRestart = "restart"
)

// NeedRestart returns, sorted, the keys of the settings that differ between two
// configurations and take effect only after a restart.
func NeedRestart(before, after *Config) []string {
	var keys []string
	eachDifference(reflect.ValueOf(*before), reflect.ValueOf(*after), "", "", func(key, apply string) {
		if apply == applyRestart {
			keys = append(keys, key)
		}
	})
	slices.Sort(keys)
	return keys
}

// Changed returns, sorted, the keys of the settings that differ between two
// configurations.
func Changed(before, after *Config) []string {
	keys := []string{}
	eachDifference(reflect.ValueOf(*before), reflect.ValueOf(*after), "", "", func(key, _ string) { keys = append(keys, key) })
	slices.Sort(keys)
	return keys
}

// eachDifference calls f for every setting that differs between two structs of
// the same type, with its key and the value of its tag apply.
func eachDifference(a, b reflect.Value, key, apply string, f func(key, apply string)) {
	for i := range a.NumField() {
		sf := a.Type().Field(i)
		name := jsonName(sf)
		if name == "" && !sf.Anonymous || !sf.IsExported() {
			continue
		}
		mark, under := apply, key
		if own, ok := sf.Tag.Lookup("apply"); ok {
			mark = own
		}
		if !sf.Anonymous {
			under = joinKey(key, name)
		}
		x, y := a.Field(i), b.Field(i)
		switch {
		case x.Kind() == reflect.Struct:
			eachDifference(x, y, under, mark, f)
		case !reflect.DeepEqual(x.Interface(), y.Interface()):
			f(under, mark)
		}
	}
}

// Equal reports whether two configurations have the same settings and were read
// from files with the same content.
func (c *Config) Equal(other *Config) bool {
	equal := c.state == other.state
	eachDifference(reflect.ValueOf(*c), reflect.ValueOf(*other), "", "", func(string, string) { equal = false })
	return equal
}
