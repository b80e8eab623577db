package mcp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// FuzzTrustedMembers holds the walk that checks nothing to the one that does,
// on what is JSON; on everything else it must only not panic.
func FuzzTrustedMembers(f *testing.F) {
	for _, seed := range []string{
		``, `{`, `{"`, `{"\`, `{"a`, `{"a":`, `{"a":"\\\"`, `{"a":1}`, ` { "a" : [ 1 , {"b":"}\"]"} ] , "c\\" : "\\" , "d":true , "e" : -1.5e3 } `,
		`{"a":{},"b":[],"c":null,"isError":true}`, `{"isError":true,"is\u0045rror":false}`, `{"content":[{"text":"\"isError\":true"}]}`, `]`, `{"a":1]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := slices.Collect(trustedMembers(data))
		failed := ResultIsError(data)
		if _, err := skipValue(data, skipSpace(data, 0), DefaultMaxDepth); err != nil || !json.Valid(data) {
			return
		}
		if want := slices.Collect(members(data)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", data, got, want)
		}
		if want := string(Field(data, "isError")) == "true"; failed != want {
			t.Errorf("%q: isError = %t, want %t", data, failed, want)
		}
	})
}

func BenchmarkResultIsError(b *testing.B) {
	result := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("The quick brown fox. ", 12<<10) + `"}],"isError":false}`)
	b.SetBytes(int64(len(result)))
	for b.Loop() {
		if ResultIsError(result) {
			b.Fatal("an error")
		}
	}
}
