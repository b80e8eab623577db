package jsonedit

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

const server = `{"command":"npx","args":["-y","x"],"env":{"A":"b"}}`

func TestSet(t *testing.T) {
	for name, tt := range map[string]struct {
		doc, value, path, want string
	}{
		"empty document": {"", server, "mcpServers/a", `{
  "mcpServers": {
    "a": {
      "command": "npx",
      "args": ["-y", "x"],
      "env": {
        "A": "b"
      }
    }
  }
}
`},
		"into an empty object": {"{\n    \"mcpServers\": {}\n}\n", `{"url":"u"}`, "mcpServers/a", `{
    "mcpServers": {
        "a": {
            "url": "u"
        }
    }
}
`},
		"an empty object with a comment":    {"{\n  \"s\": {\n    // none yet\n  }\n}\n", `1`, "s/a", "{\n  \"s\": {\n    // none yet\n    \"a\": 1\n  }\n}\n"},
		"after the last, no trailing comma": {"{\n\t\"a\": 1 // one\n}\n", `2`, "b", "{\n\t\"a\": 1, // one\n\t\"b\": 2\n}\n"},
		"after the last, trailing comma":    {"{\n  \"a\": 1, // one\n  // end\n}\n", `2`, "b", "{\n  \"a\": 1, // one\n  \"b\": 2,\n  // end\n}\n"},
		"block comment behind":              {"{\n  \"a\": 1 /* one */\n}\n", `2`, "b", "{\n  \"a\": 1, /* one */\n  \"b\": 2\n}\n"},
		"on one line":                       {`{"a":{"x": 1}}`, `{"y":[1,{"z":2}]}`, "a/b", `{"a":{"x": 1, "b": { "y": [1, { "z": 2 }] }}}`},
		"on one line, trailing comma":       {`{ "a": 1, }`, `2`, "b", `{ "a": 1, "b": 2, }`},
		"replace a value":                   {"{\n  // why\n  \"a\": 1, // one\n}\n", `"x"`, "a", "{\n  // why\n  \"a\": \"x\", // one\n}\n"},
		"replace an object":                 {"{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", `{"c":2}`, "a", "{\n  \"a\": {\n    \"c\": 2\n  }\n}\n"},
		"replace in a crowded line":         {"{\n  \"s\": { \"a\": 1, \"b\": 2 }\n}\n", `{"c":2}`, "s/a", "{\n  \"s\": { \"a\": { \"c\": 2 }, \"b\": 2 }\n}\n"},
		"equal stays as written":            {"{ \"a\": [ 1,  /* two */ 2 ] }", `[1,2]`, "a", "{ \"a\": [ 1,  /* two */ 2 ] }"},
		"append to an array":                {"[\n  {\"name\": \"a\"}\n]\n", `{"name":"b"}`, "-", "[\n  {\"name\": \"a\"},\n  {\n    \"name\": \"b\"\n  }\n]\n"},
		"append by index":                   {"[1]", `2`, "1", "[1, 2]"},
		"inside an array":                   {"[{\"a\": 1}, {}]", `2`, "1/b", "[{\"a\": 1}, {\n  \"b\": 2\n}]"},
		"line ends":                         {"{\r\n  \"a\": 1\r\n}\r\n", `{"x":1}`, "b", "{\r\n  \"a\": 1,\r\n  \"b\": {\r\n    \"x\": 1\r\n  }\r\n}\r\n"},
		"line ends in an empty object":      {"{\r\n  // c\r\n}\r\n", `1`, "b", "{\r\n  // c\r\n  \"b\": 1\r\n}\r\n"},
		"byte order mark":                   {"\ufeff{}", `1`, "a", "\ufeff{\n  \"a\": 1\n}"},
		"names with quotes":                 {"{}", `1`, `a"b`, "{\n  \"a\\\"b\": 1\n}"},
		"no escapes for HTML":               {"{}", `{"url":"?a\u0026b","\u003c\u003e":"\\u0026"}`, `s/<&`, "{\n  \"s\": {\n    \"<&\": {\n      \"url\": \"?a&b\",\n      \"<>\": \"\\\\u0026\"\n    }\n  }\n}"},
		"last of two counts":                {`{"a": 1, "a": 2}`, `3`, "a", `{"a": 1, "a": 3}`},
		"long arrays break":                 {"{}", `["` + strings.Repeat("x", 60) + `","` + strings.Repeat("y", 60) + `"]`, "a", "{\n  \"a\": [\n    \"" + strings.Repeat("x", 60) + "\",\n    \"" + strings.Repeat("y", 60) + "\"\n  ]\n}"},
		"empty values":                      {"{}", `{"a":{},"b":[]}`, "x", "{\n  \"x\": {\n    \"a\": {},\n    \"b\": []\n  }\n}"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Set([]byte(tt.doc), json.RawMessage(tt.value), strings.Split(tt.path, "/")...)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	for name, tt := range map[string]struct{ doc, path, want string }{
		"first":                    {"{\n  // about a\n  \"a\": 1, // one\n  \"b\": 2\n}\n", "a", "{\n  \"b\": 2\n}\n"},
		"middle":                   {"{\n  \"a\": 1, // one\n  // about b\n  \"b\": 2, // two\n  \"c\": 3\n}\n", "b", "{\n  \"a\": 1, // one\n  \"c\": 3\n}\n"},
		"last":                     {"{\n  \"a\": 1,\n  \"b\": 2 // two\n}\n", "b", "{\n  \"a\": 1\n}\n"},
		"last, trailing comma":     {"{\n  \"a\": 1,\n  \"b\": 2, // two\n}\n", "b", "{\n  \"a\": 1,\n}\n"},
		"only":                     {"{\n  \"s\": {\n    \"a\": 1\n  }\n}\n", "s/a", "{\n  \"s\": {}\n}\n"},
		"a section's comment":      {"{\n  // about all\n\n  // about a\n  \"a\": 1,\n  \"b\": 2\n}\n", "a", "{\n  // about all\n\n  \"b\": 2\n}\n"},
		"one line, first":          {`{ "a": 1, "b": 2 }`, "a", `{ "b": 2 }`},
		"one line, last":           {`{ "a": 1, "b": 2 }`, "b", `{ "a": 1 }`},
		"array element":            {"[\n  1,\n  2\n]\n", "1", "[\n  1\n]\n"},
		"not there":                {`{"a": 1}`, "b", `{"a": 1}`},
		"not there, deep":          {`{"a": 1}`, "b/c/d", `{"a": 1}`},
		"through a plain value":    {`{"a": 1}`, "a/b", `{"a": 1}`},
		"comment of the list":      {"{ // servers\n  \"a\": 1,\n  \"b\": 2\n}\n", "a", "{ // servers\n  \"b\": 2\n}\n"},
		"comments between on line": {"{\n  \"a\": 1, /* x */ \"b\": 2\n}\n", "a", "{ /* x */ \"b\": 2\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Remove([]byte(tt.doc), strings.Split(tt.path, "/")...)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for name, do := range map[string]func() ([]byte, error){
		"broken document":      func() ([]byte, error) { return Set([]byte(`{"a"`), json.RawMessage(`1`), "a") },
		"broken value":         func() ([]byte, error) { return Set([]byte(`{}`), json.RawMessage(`{`), "a") },
		"through a plain":      func() ([]byte, error) { return Set([]byte(`{"a":1}`), json.RawMessage(`1`), "a", "b") },
		"no such index":        func() ([]byte, error) { return Set([]byte(`[]`), json.RawMessage(`1`), "5") },
		"remove everything":    func() ([]byte, error) { return Remove([]byte(`{}`)) },
		"remove from a broken": func() ([]byte, error) { return Remove([]byte(`{`), "a") },
		"too deep": func() ([]byte, error) {
			return Set([]byte(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)), json.RawMessage(`1`), "0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := do(); err == nil {
				t.Errorf("no error, got %s", got)
			}
		})
	}
}

func TestGet(t *testing.T) {
	doc := []byte("// c\n{ \"a\": [ 1, { \"b\": \"x\", /* y */ }, ], }")
	for path, want := range map[string]string{"a": `[1,{"b":"x"}]`, "a/1/b": `"x"`, "a/0": `1`, "a/5": "", "b": "", "a/0/c": ""} {
		got, ok := Get(doc, strings.Split(path, "/")...)
		if string(got) != want || ok != (want != "") {
			t.Errorf("Get(%s) = %s, %v, want %s", path, got, ok, want)
		}
	}
	if _, ok := Get([]byte("{"), "a"); ok {
		t.Error("Get found something in a broken document")
	}
}

// FuzzEdit sets and removes in arbitrary documents: the result must parse and
// mean the old document with the one change.
func FuzzEdit(f *testing.F) {
	f.Add("{\n  \"a\": 1, // one\n  \"b\": [1, 2,], /* x */\n}\n", "a", `{"x":[1,"y"]}`)
	f.Add("[{\"name\":\"a\"} /* c */ , // d\n]", "1", `"z"`)
	f.Add("{\"a\":{}}\r\n", "b", `null`)
	f.Add("", "k", `[]`)
	f.Add("{/* a */ \"x\" /* b */ : /* c */ 1 /* d */ , /* e */ }", "x", `2`)
	f.Fuzz(func(t *testing.T, doc, key, value string) {
		var want any
		if json.Unmarshal([]byte(value), &want) != nil {
			return
		}
		before, ok := meaning([]byte(doc))
		if strings.TrimSpace(strings.TrimPrefix(doc, "\ufeff")) == "" {
			before, ok = map[string]any{}, true
		}
		if !ok {
			return
		}
		got, err := Set([]byte(doc), json.RawMessage(value), key)
		if err != nil {
			return
		}
		after, ok := meaning(got)
		if !ok {
			t.Fatalf("the result does not parse: %q", got)
		}
		// Names that are not valid UTF-8 change when they are written.
		name, _ := json.Marshal(key)
		var written string
		if json.Unmarshal(name, &written); written != key {
			return
		}
		if obj, isObj := before.(map[string]any); isObj {
			obj[key] = want
			if !reflect.DeepEqual(after, before) {
				t.Fatalf("set %q in %q: %q", key, doc, got)
			}
		}
		removed, err := Remove(got, key)
		if err != nil {
			t.Fatal(err)
		}
		left, ok := meaning(removed)
		if !ok {
			t.Fatalf("after removal it does not parse: %q", removed)
		}
		if obj, isObj := after.(map[string]any); isObj {
			if n := strings.Count(string(got), string(name)); n == 1 {
				delete(obj, key)
				if !reflect.DeepEqual(left, any(obj)) {
					t.Fatalf("removed %q from %q: %q", key, got, removed)
				}
			}
		}
	})
}

func meaning(doc []byte) (any, bool) {
	if TooDeep(doc, maxDepth) >= 0 {
		return nil, false
	}
	std, err := hujson.Standardize([]byte(strings.TrimPrefix(string(doc), "\ufeff")))
	if err != nil {
		return nil, false
	}
	var v any
	err = json.Unmarshal(std, &v)
	return v, err == nil
}
