package rawjson

import (
	"encoding/json"
	"slices"
	"testing"
)

// FuzzTrustedMembers compares the iteration without checks to the one with
// checks. For invalid JSON it must only not panic.
func FuzzTrustedMembers(f *testing.F) {
	for _, seed := range []string{
		``, `{`, `{"`, `{"\`, `{"a`, `{"a":`, `{"a":"\\\"`, `{"a":1}`, ` { "a" : [ 1 , {"b":"}\"]"} ] , "c\\" : "\\" , "d":true , "e" : -1.5e3 } `,
		`{"a":{},"b":[],"c":null,"isError":true}`, `{"isError":true,"is\u0045rror":false}`, `{"content":[{"text":"\"isError\":true"}]}`, `]`, `{"a":1]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := slices.Collect(TrustedPositions(data))
		isError := TrustedField(data, "isError")
		if _, err := SkipValue(data, SkipSpace(data, 0), 200); err != nil || !json.Valid(data) {
			return
		}
		if want := slices.Collect(Positions(data)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", data, got, want)
		}
		if want := Field(data, "isError"); string(isError) != string(want) {
			t.Errorf("%q: isError = %s, want %s", data, isError, want)
		}
	})
}
