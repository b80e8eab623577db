package mcp

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestHeaderParams(t *testing.T) {
	for name, tt := range map[string]struct{ schema, want string }{
		"none":        {`{"type":"object"}`, ""},
		"one":         {`{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}`, "r=Region"},
		"nested":      {`{"properties":{"a":{"properties":{"b":{"type":"integer","x-mcp-header":"B"}}}}}`, "a.b=B"},
		"empty":       {`{"properties":{"r":{"type":"string","x-mcp-header":""}}}`, "! must be a non-empty string"},
		"no string":   {`{"properties":{"r":{"type":"string","x-mcp-header":5}}}`, "! must be a non-empty string"},
		"bad name":    {`{"properties":{"r":{"type":"string","x-mcp-header":"a b"}}}`, "! not a valid header name"},
		"line break":  {`{"properties":{"r":{"type":"string","x-mcp-header":"a\r\nX: y"}}}`, "! not a valid header name"},
		"twice":       {`{"properties":{"r":{"type":"string","x-mcp-header":"A"},"s":{"type":"string","x-mcp-header":"a"}}}`, "! twice"},
		"number":      {`{"properties":{"r":{"type":"number","x-mcp-header":"A"}}}`, "! number"},
		"in an inner": {`{"properties":{"a":{"properties":{"b":{"type":"array","x-mcp-header":"B"}}}}}`, "! array"},
		"very deep":   {strings.Repeat(`{"properties":{"a":`, 200) + `{}` + strings.Repeat(`}}`, 200), ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := HeaderParams(json.RawMessage(tt.schema))
			var got []string
			for _, p := range found {
				got = append(got, strings.Join(p.Path, ".")+"="+p.Header)
			}
			if want, fails := strings.CutPrefix(tt.want, "! "); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			} else if err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestHeaderValue(t *testing.T) {
	for in, want := range map[string]string{
		"us-west1": "us-west1", "": "", "a b": "a b", " padded ": "=?base64?IHBhZGRlZCA=?=", "line1\nline2": "=?base64?bGluZTEKbGluZTI=?=",
		"Hello, 世界": "=?base64?SGVsbG8sIOS4lueVjA==?=", "=?base64?literal?=": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
	} {
		if got := HeaderValue(in); got != want {
			t.Errorf("HeaderValue(%q) = %q, want %q", in, got, want)
		}
	}
	if _, ok := ParseHeaderValue("=?base64?!!?="); ok {
		t.Error("broken base64 was accepted")
	}
	for in, want := range map[string]string{`"x"`: "x", `true`: "true", `42`: "42", `-7.0`: "-7", `1.5`: "!", `9007199254740992`: "!", `1e400`: "!", `null`: "!", `{}`: "!", ``: "!"} {
		got, ok := HeaderText(json.RawMessage(in))
		if !ok {
			got = "!"
		}
		if got != want {
			t.Errorf("headerText(%s) = %q, want %q", in, got, want)
		}
	}
}

// FuzzHeaderValue: ParseHeaderValue reverses HeaderValue, whose result never
// contains a line break.
func FuzzHeaderValue(f *testing.F) {
	f.Add("x")
	f.Add("=?base64?x?=")
	f.Fuzz(func(t *testing.T, s string) {
		v := HeaderValue(s)
		if back, ok := ParseHeaderValue(v); !ok || back != s {
			t.Fatalf("%q became %q and %q", s, v, back)
		}
		for i := range len(v) {
			if v[i] < ' ' && v[i] != '\t' || v[i] >= 0x7f {
				t.Fatalf("%q in a header", v)
			}
		}
		ParseHeaderValue(s)
		_ = http.Header{"X": {v}}
	})
}

func FuzzHeaderParams(f *testing.F) {
	f.Add([]byte(`{"properties":{"r":{"type":"string","x-mcp-header":"Region"},"a":{"properties":{"b":{"type":"integer","x-mcp-header":"B"}}}}}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		found, err := HeaderParams(schema)
		if err != nil && found != nil {
			t.Fatal("both")
		}
		for _, p := range found {
			if strings.ContainsAny(p.Header, " \r\n:") || p.Header == "" {
				t.Fatalf("header %q", p.Header)
			}
		}
	})
}
