package mcp

import (
	"encoding/json"
	"strings"
	"testing"
)

// A large result is encoded without a copy, with the same output as with one.
func TestEncodeLargeResult(t *testing.T) {
	text := strings.Repeat("x", largeResult)
	for name, m := range map[string]*Message{
		"small":            {ID: "1", Result: json.RawMessage(`{"a":1}`)},
		"small with lead":  {ID: "1", Result: json.RawMessage(`{"a":1}`), ResultPrefix: []byte(`"b":2,`)},
		"empty with lead":  {ID: "1", Result: json.RawMessage(` { } `), ResultPrefix: []byte(`"b":2,`)},
		"no result":        {ID: "1"},
		"large":            {ID: `"x"`, Result: json.RawMessage(`{"a":"` + text + `"}`)},
		"large with lead":  {ID: "1", Result: json.RawMessage(` { "a":"` + text + `"}`), ResultPrefix: []byte(`"b":2,`)},
		"large text":       {ID: "1", Result: json.RawMessage(`"` + text + `"`)},
		"large with lines": {ID: "1", Result: json.RawMessage("{\r\n\"a\":\"" + text + "\"}\n"), ResultPrefix: []byte(`"b":2,`)},
		"large on line 2":  {ID: "1", Result: json.RawMessage("\n{\"a\":\"" + text + "\"}"), ResultPrefix: []byte(`"b":2,`)},
		"error":            {ID: "1", Error: &Error{Code: 1, Message: "m"}},
		"notification":     {Method: "m", Params: json.RawMessage(`{}`)},
	} {
		want := string(AppendMessage(nil, m))
		if !json.Valid([]byte(want)) || strings.ContainsAny(want, "\r\n") {
			t.Errorf("%s: %.200q is no line of JSON", name, want)
		}
		e := Encode(m)
		if got := string(e.AppendTo(nil)); got != want || e.Size() != len(want) {
			t.Errorf("%s: %.200q, want %.200q", name, got, want)
		}
		if strings.HasPrefix(name, "large") && len(e.Body) < largeResult {
			t.Errorf("%s: the result was copied", name)
		}
		merged := *m
		merged.MergePrefix()
		if got := string(AppendMessage(nil, &merged)); got != want {
			t.Errorf("%s: merged %.200q, want %.200q", name, got, want)
		}
	}
}
