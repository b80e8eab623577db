package schema

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
)

// FuzzDecode compares decode to encoding/json.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, ` { "a" : [ 1 , -2 , 0 , true , false , null ] , "b" : "x" } `, `{"a":1,"a":{"b":2}}`, `"a\u00e4\n\"\\"`, `"ä"`, "\"\xff\"", "\"\x01\"",
		`1.5e3`, `-`, `01`, `-0`, `1 2`, `{"a":1,}`, `[1,]`, `{"a"}`, `tru`, `nulll`, `"\ud800"`, `"\"`, `{"a":"\\"}`, ``, ` `, `{"ä\u0062":1}`,
		strings.Repeat("[", 150) + strings.Repeat("]", 150), strings.Repeat(`{"a":`, 99) + "1" + strings.Repeat("}", 99), "\v1", "1\v",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := decode(raw)
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var want any
		wrong := dec.Decode(&want)
		if wrong == nil {
			if _, more := dec.Token(); more != io.EOF {
				wrong = errMoreValues
			}
		}
		if (err == nil) != (wrong == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is read as %#v, %v; not as %#v, %v", raw, got, err, want, wrong)
		}
	})
}
