package rawjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

func TestFields(t *testing.T) {
	const doc = ` { "a" : 1 , "_meta" : { "progressToken" : "t" , "x" : [ 1 , 2 ] } , "b" : "\u00e4" , "a" : 20000000000000000000 } `
	for path, want := range map[string]string{
		"a": "20000000000000000000", "_meta.progressToken": `"t"`, "_meta.x": "[ 1 , 2 ]", "_meta.y": "", "z": "", "a.b": "", "": doc,
	} {
		var keys []string
		if path != "" {
			keys = strings.Split(path, ".")
		}
		if got := string(Field(raw(doc), keys...)); got != want {
			t.Errorf("Field(%q) = %q, want %q", path, got, want)
		}
	}
	if got := FieldString(raw(doc), "b"); got != "ä" {
		t.Errorf("FieldString = %q", got)
	}
	for _, broken := range []string{"", "[]", "{", `{"a`, `{"a"`, `{"a":`, `{"a":}`, `{"a":1`, `{"a":1 "b":2}`, `{"a":1,`, `5`} {
		if got := Field(raw(broken), "zz"); got != nil {
			t.Errorf("Field(%q) = %q", broken, got)
		}
		_ = SetField(raw(broken), raw("1"), "zz", "y")
		_ = DeleteField(raw(broken), "a")
	}
}

func TestSetField(t *testing.T) {
	for name, tt := range map[string]struct{ in, path, value, want string }{
		"replace":       {`{"a": 1,"b":2}`, "a", "[3]", `{"a": [3],"b":2}`},
		"add":           {`{"a":1}`, "b", "2", `{"b":2,"a":1}`},
		"add to empty":  {`{ }`, "b", "2", `{"b":2 }`},
		"add to none":   {``, "b", "2", `{"b":2}`},
		"nested":        {`{"_meta":{"t":1},"x":0}`, "_meta.t", `"q"`, `{"_meta":{"t":"q"},"x":0}`},
		"nested add":    {`{"x":0}`, "_meta.t", `7`, `{"_meta":{"t":7},"x":0}`},
		"over a scalar": {`{"_meta":5}`, "_meta.t", `7`, `{"_meta":{"t":7}}`},
		"the whole":     {`{"x":0}`, "", `7`, `7`},
	} {
		var keys []string
		if tt.path != "" {
			keys = strings.Split(tt.path, ".")
		}
		if got := string(SetField(raw(tt.in), raw(tt.value), keys...)); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

func TestDeleteField(t *testing.T) {
	for name, tt := range map[string]struct{ in, path, want string }{
		"first":        {`{"a":1, "b":2}`, "a", `{"b":2}`},
		"middle":       {`{"a":1,"b":2,"c":3}`, "b", `{"a":1,"c":3}`},
		"last":         {`{"a":1 , "b":2 }`, "b", `{"a":1 }`},
		"only":         {`{ "a":1 }`, "a", `{ }`},
		"twice":        {`{"a":1,"b":2,"a":3}`, "a", `{"b":2}`},
		"twice at end": {`{"b":2,"a":1,"a":3}`, "a", `{"b":2}`},
		"absent":       {`{"a":1}`, "x", `{"a":1}`},
		"nested":       {`{"m":{"a":1,"b":2}}`, "m.a", `{"m":{"b":2}}`},
		"nested, none": {`{"m":{"a":1}}`, "m.x", `{"m":{"a":1}}`},
		"no parent":    {`{"a":1}`, "m.x", `{"a":1}`},
		"nothing":      {`{"a":1}`, "", `{"a":1}`},
	} {
		var keys []string
		if tt.path != "" {
			keys = strings.Split(tt.path, ".")
		}
		if got := string(DeleteField(raw(tt.in), keys...)); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

func TestIterators(t *testing.T) {
	var keys []string
	for k, v := range Members(raw(`{"a":1,"\u0062":[2],"c":3}`)) {
		keys = append(keys, k+string(v))
		if k == "b" {
			break
		}
	}
	if strings.Join(keys, " ") != "a1 b[2]" {
		t.Errorf("members %q", keys)
	}
	for in, want := range map[string]string{`[1,"x",{}]`: `1 "x" {}`, ` [ ] `: "", `{}`: "", `[1,`: "1", `[1 2]`: "1", `[1,}`: "1"} {
		var got []string
		for v := range Elements(raw(in)) {
			got = append(got, string(v))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("Elements(%s) = %q, want %q", in, got, want)
		}
	}
	for v := range Elements(raw(`[1,2]`)) {
		_ = v
		break
	}
}

// FuzzFields compares with maps that setting, reading and deleting a member has
// no other effect.
func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"9f0c","method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}},"name":"echo","arguments":{"n":12345678901234567890}}}`), "params", "_meta")
	f.Add([]byte(`{"a":1,"a":{"b":2},"c":3}`), "a", "b")
	f.Fuzz(func(t *testing.T, data []byte, key, inner string) {
		for _, k := range []string{key, inner} {
			for i := range len(k) {
				if k[i] < ' ' || k[i] > '~' {
					return
				}
			}
		}
		Field(data, key, inner)
		SetField(data, raw("1"), key, inner)
		DeleteField(data, key, inner)
		var object map[string]json.RawMessage
		if json.Unmarshal(data, &object) != nil || object == nil {
			return
		}
		if end, err := SkipValue(data, SkipSpace(data, 0), 200); err != nil || end == 0 {
			return // too deep
		}
		if got := Field(data, key); string(got) != string(object[key]) {
			t.Fatalf("Field(%q, %q) = %q, want %q", data, key, got, object[key])
		}
		check := func(what string, got json.RawMessage) {
			var back map[string]json.RawMessage
			if err := json.Unmarshal(got, &back); err != nil {
				t.Fatalf("%s %q in %q gave %q: %v", what, key, data, got, err)
			}
			if !reflect.DeepEqual(back, object) {
				t.Fatalf("%s %q in %q gave %q", what, key, data, got)
			}
		}
		object[key] = raw(`[9]`)
		check("setting", SetField(data, raw(`[9]`), key))
		delete(object, key)
		check("deleting", DeleteField(data, key))
	})
}
