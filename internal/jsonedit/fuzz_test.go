package jsonedit

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// FuzzEdit sets and removes values at a given path and at every path of an
// arbitrary document. The result must parse and differ from the old document
// only by that change. Line endings must make no difference.
func FuzzEdit(f *testing.F) {
	f.Add("{\n  \"a\": 1, // one\n  \"b\": [1, 2,], /* x */\n}\n", "a", `{"x":[1,"y"]}`)
	f.Add("[{\"name\":\"a\"} /* c */ , // d\n]", "1", `"z"`)
	f.Add("{\"a\":{}}\r\n", "b", `null`)
	f.Add("", "k", `[]`)
	f.Add("{/* a */ \"x\" /* b */ : /* c */ 1 /* d */ , /* e */ }", "x", `2`)
	f.Add("{ \"s\": { // work\n    \"a\": {\"x\":1}, \"b\": {\"y\":2}\n} }\n", "s/c", `{"z":3}`)
	f.Add("{\n  \"a\": 1, // note\n  \"b\": 2, \"c\": 3\n}\n", "b", `1`)
	f.Add("[ // rules\n  {\"tool\": \"a\"}, {\"tool\": \"b\"}\n]\n", "-", `{}`)
	f.Add("{\n  \"a\": 1, // one\n  \"b\": 2 }\n", "b/c", `3`)
	f.Add("{\n  \"a\": 1, // one\n  \"b\": 2, /* two */ // three\n }\n", "c", `3`)
	f.Add("{\r\n  /* about\r\n\r\n     a */\r\n  \"a\": 1,\r\n\r\n  \"b\": 2, /* two */ \"c\": 3\r\n}\r\n", "d", `4`)
	f.Add("{\n  \"a\": 1, /*/ one */\n  \"b\": 2 // two\n  , \"c\": [ // none\n]}\n", "c/0", `"x"`)
	f.Add("{ // work\n  \"a\": 1,\r\"b\": 2, /* x *//* y\n\n */ \"c\": 3, \"d\": 4 /* z */ }\n", "c", `5`)
	f.Add("{ \"a\": 1, // one\n  \"a\": {\"b\": 2}, \"c\": 3 }\n", "a/b", `4`)
	f.Fuzz(func(t *testing.T, doc, key, value string) {
		var want any
		if json.Unmarshal([]byte(value), &want) != nil || !utf8.ValidString(key) ||
			TooDeep([]byte(doc), 50) >= 0 || TooDeep([]byte(value), 50) >= 0 || strings.Count(key, "/") > 50 {
			return
		}
		before, ok := meaning([]byte(doc))
		if !ok {
			return
		}
		for _, path := range append(places(before), strings.Split(key, "/")) {
			got := check(t, doc, path, func(doc string) ([]byte, error) { return Set([]byte(doc), json.RawMessage(value), path...) },
				func(v any) any { return edited(v, path, want, false) })
			for _, doc := range []string{doc, got} {
				model := func(v any) any { return edited(v, path, nil, true) }
				if repeats(doc) {
					model = nil // parsers then use the previous member of that name
				}
				check(t, doc, path, func(doc string) ([]byte, error) { return Remove([]byte(doc), path...) }, model)
			}
		}
	})
}

// check applies an edit and compares the values of the result with those of the
// model, if there is one. It returns the new text, or the old one if the path
// does not exist.
func check(t *testing.T, doc string, path []string, edit func(string) ([]byte, error), model func(any) any) string {
	t.Helper()
	got, err := edit(doc)
	if err != nil {
		if strings.Contains(err.Error(), "the change would") {
			t.Fatalf("%q in %q: %v", path, doc, err)
		}
		return doc
	}
	before, _ := meaning([]byte(doc))
	after, ok := meaning(got)
	if !ok {
		t.Fatalf("%q in %q: the result does not parse: %q", path, doc, got)
	}
	if model != nil {
		if want := model(before); !reflect.DeepEqual(after, want) {
			t.Fatalf("%q in %q: got %q, want %v", path, doc, got, want)
		}
	}
	if strings.Contains(doc, "\n") && !strings.Contains(doc, "\r") {
		crlf, err := edit(strings.ReplaceAll(doc, "\n", "\r\n"))
		if want := strings.ReplaceAll(string(got), "\n", "\r\n"); err != nil || string(crlf) != want {
			t.Fatalf("%q in %q with CRLF: got %q, %v, want %q", path, doc, crlf, err, want)
		}
	}
	return string(got)
}

// places returns the paths of the first values of a document.
func places(v any) [][]string {
	var found [][]string
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		if len(found) >= 16 {
			return
		}
		if len(path) > 0 {
			found = append(found, path)
		}
		switch t := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(t)) {
				walk(t[name], append(slices.Clone(path), name))
			}
		case []any:
			for i, e := range t {
				walk(e, append(slices.Clone(path), strconv.Itoa(i)))
			}
		}
	}
	walk(v, nil)
	return found
}

// edited returns v with value at path, or without the value at path.
func edited(v any, path []string, value any, remove bool) any {
	if len(path) == 0 {
		return value
	}
	name, rest := path[0], path[1:]
	removeHere := remove && len(rest) == 0
	switch t := v.(type) {
	case map[string]any:
		child, there := t[name]
		switch {
		case removeHere:
			delete(t, name)
		case there:
			t[name] = edited(child, rest, value, remove)
		case !remove:
			t[name] = edited(map[string]any{}, rest, value, remove)
		}
	case []any:
		i, err := strconv.Atoi(name)
		there := err == nil && i >= 0 && i < len(t) && strconv.Itoa(i) == name
		switch {
		case there && removeHere:
			return slices.Delete(t, i, i+1)
		case there:
			t[i] = edited(t[i], rest, value, remove)
		case !remove:
			return append(t, edited(map[string]any{}, rest, value, remove))
		}
	}
	return v
}

// meaning returns the parsed values of a document.
func meaning(doc []byte) (any, bool) {
	d, err := parse(doc)
	if err != nil {
		return nil, false
	}
	d.root.Standardize()
	var v any
	err = json.Unmarshal(d.root.Pack(), &v)
	return v, err == nil
}

// repeats reports whether an object of a document has two members of the same
// name.
func repeats(doc string) bool {
	d, err := parse([]byte(doc))
	if err != nil {
		return false
	}
	for v := range d.root.All() {
		if o, ok := v.Value.(*hujson.Object); ok {
			names := map[string]bool{}
			for _, m := range o.Members {
				names[m.Name.Value.(hujson.Literal).String()] = true
			}
			if len(names) < len(o.Members) {
				return true
			}
		}
	}
	return false
}
