package mcpclient

import (
	"encoding/json"
	"testing"

	"junctor/internal/rawjson"
)

// FuzzMapToken compares mapToken with Field and SetField.
func FuzzMapToken(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, ` { } `, `{"_meta":{}}`, `{"_meta": { } }`, `{"_meta":{"progressToken":"a"},"x":1}`, `{"_meta":{"progressToken": 1 , "progressToken" : [2]} }`,
		`{"_meta":null}`, `{"_meta":"x"}`, `{"_meta":{"a":{"progressToken":1}}}`, `{"_meta":{"\u0070rogressToken":7}}`, `{"_meta":{"b":1},"_meta":{"progressToken":2}}`, `{"_meta":{"b":1`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, params string, listens bool) {
		if params != "" && !rawjson.Valid([]byte(params)) {
			return
		}
		raw := json.RawMessage(params)
		token := rawjson.Field(raw, "_meta", "progressToken")
		want := raw
		if i := rawjson.SkipSpace(raw, 0); (token != nil || listens) && (i >= len(raw) || raw[i] == '{') {
			want = rawjson.SetField(raw, json.RawMessage("42"), "_meta", "progressToken")
		} else {
			token = nil
		}
		mapped, got := mapToken(raw, 42, listens)
		if string(mapped) != string(want) || string(got) != string(token) || (got == nil) != (token == nil) || string(raw) != params {
			t.Fatalf("%s (%v)\nbecame %s, %s\nnot    %s, %s", params, listens, mapped, got, want, token)
		}
	})
}
