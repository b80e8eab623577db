package jsonedit

import (
	"encoding/json"
	"strings"
	"testing"
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
		"line ends in an empty document":    {"\r\n", `1`, "a", "{\r\n  \"a\": 1\r\n}\r\n"},
		"names with quotes":                 {"{}", `1`, `a"b`, "{\n  \"a\\\"b\": 1\n}"},
		"no escapes for HTML":               {"{}", `{"url":"?a\u0026b","\u003c\u003e":"\\u0026"}`, `s/<&`, "{\n  \"s\": {\n    \"<&\": {\n      \"url\": \"?a&b\",\n      \"<>\": \"\\\\u0026\"\n    }\n  }\n}"},
		"last of two counts":                {`{"a": 1, "a": 2}`, `3`, "a", `{"a": 1, "a": 3}`},
		"long arrays break":                 {"{}", `["` + strings.Repeat("x", 60) + `","` + strings.Repeat("y", 60) + `"]`, "a", "{\n  \"a\": [\n    \"" + strings.Repeat("x", 60) + "\",\n    \"" + strings.Repeat("y", 60) + "\"\n  ]\n}"},
		"behind a trailing line comment":    {"{\n  \"a\": 1, // one\n  \"b\": 2, // two\n}\n", `3`, "c", "{\n  \"a\": 1, // one\n  \"b\": 2, // two\n  \"c\": 3,\n}\n"},
		"on one line with a line comment":   {"{ \"a\": 1 // one\n}\n", `2`, "b", "{ \"a\": 1, \"b\": 2 // one\n}\n"},
		"only a comment, on one line":       {"{ // none\n}", `1`, "a", "{ // none\n  \"a\": 1\n}"},
		"only a block comment":              {"{/* none */}", `1`, "a", "{/* none */\n  \"a\": 1\n}"},
		"a block comment with a slash":      {"{\n  \"a\": 1, /*/ one */\n}\n", `2`, "b", "{\n  \"a\": 1, /*/ one */\n  \"b\": 2,\n}\n"},
		"replace below a line comment":      {"{ \"a\": // one\n  1, \"b\": 2 }", `{"x":1}`, "a", "{ \"a\": // one\n  {\n    \"x\": 1\n  }, \"b\": 2 }"},
		"line ends behind a line comment":   {"{\r\n  \"a\": 1 // one\r\n}\r\n", `2`, "b", "{\r\n  \"a\": 1, // one\r\n  \"b\": 2\r\n}\r\n"},
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
		"first":                               {"{\n  // about a\n  \"a\": 1, // one\n  \"b\": 2\n}\n", "a", "{\n  \"b\": 2\n}\n"},
		"middle":                              {"{\n  \"a\": 1, // one\n  // about b\n  \"b\": 2, // two\n  \"c\": 3\n}\n", "b", "{\n  \"a\": 1, // one\n  \"c\": 3\n}\n"},
		"last":                                {"{\n  \"a\": 1,\n  \"b\": 2 // two\n}\n", "b", "{\n  \"a\": 1\n}\n"},
		"last, trailing comma":                {"{\n  \"a\": 1,\n  \"b\": 2, // two\n}\n", "b", "{\n  \"a\": 1,\n}\n"},
		"only":                                {"{\n  \"s\": {\n    \"a\": 1\n  }\n}\n", "s/a", "{\n  \"s\": {}\n}\n"},
		"a section's comment":                 {"{\n  // about all\n\n  // about a\n  \"a\": 1,\n  \"b\": 2\n}\n", "a", "{\n  // about all\n\n  \"b\": 2\n}\n"},
		"one line, first":                     {`{ "a": 1, "b": 2 }`, "a", `{ "b": 2 }`},
		"one line, last":                      {`{ "a": 1, "b": 2 }`, "b", `{ "a": 1 }`},
		"array element":                       {"[\n  1,\n  2\n]\n", "1", "[\n  1\n]\n"},
		"not there":                           {`{"a": 1}`, "b", `{"a": 1}`},
		"not there, deep":                     {`{"a": 1}`, "b/c/d", `{"a": 1}`},
		"through a plain value":               {`{"a": 1}`, "a/b", `{"a": 1}`},
		"comment of the list":                 {"{ // servers\n  \"a\": 1,\n  \"b\": 2\n}\n", "a", "{ // servers\n  \"b\": 2\n}\n"},
		"neighbour below the list's comment":  {"{ \"s\": { // work\n    \"a\": {\"x\":1}, \"b\": {\"y\":2}\n} }\n", "s/a", "{ \"s\": { // work\n    \"b\": {\"y\":2}\n} }\n"},
		"neighbour below a line comment":      {"{\n  \"a\": 1, // note\n  \"b\": 2, \"c\": 3\n}\n", "b", "{\n  \"a\": 1, // note\n  \"c\": 3\n}\n"},
		"neighbour in an array":               {"[ // rules\n  {\"tool\": \"a\"}, {\"tool\": \"b\"}\n]\n", "0", "[ // rules\n  {\"tool\": \"b\"}\n]\n"},
		"neighbour, line ends":                {"{ // work\r\n  \"a\": 1, \"b\": 2\r\n}\r\n", "a", "{ // work\r\n  \"b\": 2\r\n}\r\n"},
		"neighbour behind a comment":          {"{ // work\n  \"a\": 1, /* x */ \"b\": 2\n}\n", "a", "{ // work\n  /* x */ \"b\": 2\n}\n"},
		"long comment below a line comment":   {"{ // work\n  \"a\": 1, /* x\n  y */ \"b\": 2\n}\n", "a", "{ // work\n  /* x\n  y */ \"b\": 2\n}\n"},
		"bracket on the line":                 {"{\n  \"a\": 1, // one\n  \"b\": 2 }\n", "b", "{\n  \"a\": 1 // one\n}\n"},
		"bracket on the line, trailing comma": {"{\n  \"a\": 1, // one\n  \"b\": 2, /* two */ }\n", "b", "{\n  \"a\": 1, // one\n}\n"},
		"bracket on the line, only":           {"{\n  \"s\": { // work\n    \"a\": 1 }\n}\n", "s/a", "{\n  \"s\": { // work\n  }\n}\n"},
		"blank line in a comment":             {"{\n  /* about\n\n     a */\n  \"a\": 1,\n  \"b\": 2, /* two */\n  \"c\": 3\n}\n", "a", "{\n  \"b\": 2, /* two */\n  \"c\": 3\n}\n"},
		"a block comment with a slash":        {"{\n  \"a\": 1, /*/ one */\n  \"b\": 2, /* two */\n  \"c\": 3\n}\n", "b", "{\n  \"a\": 1, /*/ one */\n  \"c\": 3\n}\n"},
		"a section's comment, line ends":      {"{\r\n  // about all\r\n\r\n  \"a\": 1,\r\n  \"b\": 2\r\n}\r\n", "a", "{\r\n  // about all\r\n\r\n  \"b\": 2\r\n}\r\n"},
		"comments between on line":            {"{\n  \"a\": 1, /* x */ \"b\": 2\n}\n", "a", "{ /* x */ \"b\": 2\n}\n"},
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

// TestNothingElse checks that edits that would change more of the text than they
// should are refused.
func TestNothingElse(t *testing.T) {
	const doc = "{ // c\n\"a\": 1, \"b\": [2, 2], \"c\": 10000000000000001 }"
	for name, part := range map[string][2]string{
		"a member is lost":     {"\n\"a\": 1,", ""},
		"an element is lost":   {"2, 2", "2"},
		"a number changes":     {"0001", "0000"},
		"the order changes":    {`"a": 1, "b": [2, 2]`, `"b": [2, 2], "a": 1`},
		"a member is added":    {`"a": 1`, `"a": 1, "d": 1`},
		"a member is repeated": {`"a": 1`, `"a": 2, "a": 1`},
		"it does not parse":    {"\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := edit([]byte(doc), func(d *document) error {
				d.text = []byte(strings.Replace(doc, part[0], part[1], 1))
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), "the change would") {
				t.Errorf("got %s, %v", got, err)
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
