package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/schema"
	"junctor/internal/tool"
)

func TestCalculate(t *testing.T) {
	for in, want := range map[string]string{
		"1 + 2 * 3":                 "7",
		"(2.5 + 3) * 12 ^ 2":        "792",
		"0.1 + 0.2":                 "0.3",
		"2^3^2":                     "512",
		"-2^2":                      "-4",
		"2^-3":                      "0.125",
		"10 % 3 + -10 % 3":          "3",
		"1/3":                       "≈ 0.333333333333333",
		"2^200":                     "1606938044258990275541962092341162602522202993782792835301376",
		"sqrt(16) + sqrt(2.25)":     "5.5",
		"sqrt(2)":                   "≈ 1.4142135623731",
		"max(1, 2.5, 2) - min(3,1)": "1.5",
		"round(2.5) + round(-2.5)":  "0",
		"floor(-1.5) + ceil(1.2)":   "0",
		"abs(-3)":                   "3",
		"1_000 * 1e3":               "1000000",
		"ln(e)":                     "≈ 1",
		"sin(0) + cos(0) + tan(0)":  "≈ 1",
		"log10(1000) + log2(8)":     "≈ 6",
		"exp(0)":                    "≈ 1",
		"2 ^ 0.5":                   "≈ 1.4142135623731",
		"+5":                        "5",
		"1/7^30":                    "≈ 0.00000000000000000000000004436680968632400000000000",
		"0 ^ 0":                     "1",
		"1 ^ 999999999999":          "1",
	} {
		a, err := calculate(arguments(t, map[string]string{"expression": in}))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := a.text; got != want && !(strings.HasPrefix(want, "≈") && strings.HasPrefix(got, want[:len("≈ 0.333")])) {
			t.Errorf("%s = %s, want %s", in, got, want)
		}
	}
	for in, says := range map[string]string{
		"":                                  "ends where a number",
		"1 +":                               "ends where a number",
		"1 / 0":                             "division by zero",
		"1 % 0":                             "division by zero",
		"0 ^ -1":                            "division by zero",
		"(1":                                "not closed",
		"max(1":                             "not closed",
		"1 2":                               "unexpected",
		"2 ** 3":                            "write ^",
		"nope(1)":                           "neither a constant nor a function",
		"sqrt 4":                            "in parentheses",
		"sqrt(1,2)":                         "does not take 2",
		"sqrt(-1)":                          "not a real number",
		"ln(0)":                             "not a number",
		"9^999999999":                       "too large",
		"9^9^9^9":                           "too large",
		"1e99999":                           "exponent is too large",
		"1..2":                              "not a number",
		"$":                                 "unexpected",
		strings.Repeat("(", 300):            "nested deeper",
		strings.Repeat("-", 300) + "1":      "nested deeper",
		strings.Repeat("1+", 2000):          "2000 are allowed",
		strings.Repeat("9^999*", 100) + "1": "too large",
		"sqrt(" + "-" + ")":                 "unexpected",
		"1 + (2 * ":                         "ends where",
		"max(1,":                            "ends where",
		strings.Repeat("9^9999*", 10) + "9": "too large",
		"9^9999-$$":                         "unexpected",
	} {
		if a, err := calculate(arguments(t, map[string]string{"expression": in})); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40s = %.40q, %v; want an error that says %q", in, a.text, err, says)
		}
	}
}

func FuzzCalculate(f *testing.F) {
	f.Add("1 + sqrt(2) ^ 3")
	f.Add("9^9^9")
	f.Fuzz(func(t *testing.T, in string) {
		raw, err := json.Marshal(map[string]string{"expression": in})
		if err != nil {
			t.Skip()
		}
		calculate(raw) // must be bounded and not panic
	})
}

func TestTimeTool(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]string{
		`{}`:                    "2026-11-15T12:00:00Z (Sunday, week 46, UTC, Unix 1794744000)",
		`{"zone":"Asia/Tokyo"}`: "2026-11-15T21:00:00+09:00 (Sunday, week 46, Asia/Tokyo, Unix 1794744000)",
		`{"zone":"Europe/Berlin","at":"2026-07-01"}`:   "2026-07-01T00:00:00+02:00",
		`{"zone":"UTC","at":"2026-07-01T10:00+02:00"}`: "",
		`{"at":"2026-07-01T10:00:00+02:00"}`:           "2026-07-01T08:00:00Z",
		`{"zone":"Mars/Base"}`:                         "",
		`{"zone":"../../etc/passwd"}`:                  "",
		`{"zone":7}`:                                   "",
		`{"zone":"Local"}`:                             "2026-11-15T12:00:00Z",
	} {
		a, err := currentTime(now, json.RawMessage(in))
		if (err == nil) != (want != "") || !strings.HasPrefix(a.text, want) {
			t.Errorf("time %s = %q, %v; want %q", in, a.text, err, want)
		}
	}
}

func TestTextTool(t *testing.T) {
	for _, tt := range []struct{ op, in, want string }{
		{"count", "två ord\nrad 2\n", "14 characters, 4 words, 2 lines, 15 bytes"},
		{"count", "", "0 characters, 0 words, 0 lines, 0 bytes"},
		{"upper", "äb", "ÄB"}, {"lower", "ÄB", "äb"}, {"title", "don't PANIC now", "Don't Panic Now"},
		{"trim", " x\n", "x"}, {"reverse", "añb", "bña"},
		{"sort_lines", "b\na\n", "a\nb"}, {"unique_lines", "b\na\nb", "b\na"},
		{"base64_encode", "hi?", "aGk/"}, {"base64_decode", "aGk_", "hi?"}, {"base64_decode", "aGk/\n", "hi?"},
		{"hex_encode", "hi", "6869"}, {"hex_decode", "6869", "hi"},
		{"url_encode", "a b&c", "a+b%26c"}, {"url_decode", "a+b%26c", "a b&c"},
		{"md5", "", "d41d8cd98f00b204e9800998ecf8427e"},
		{"sha1", "", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		{"sha256", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"sha512", "", "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"},
		{"format_json", `{"a":12345678901234567890,"b":"<"}`, "{\n  \"a\": 12345678901234567890,\n  \"b\": \"<\"\n}"},
		{"minify_json", "{ \"a\" : 1 }", `{"a":1}`},
	} {
		a, err := transform(arguments(t, map[string]string{"operation": tt.op, "text": tt.in}))
		if err != nil || a.text != tt.want {
			t.Errorf("%s(%q) = %q, %v; want %q", tt.op, tt.in, a.text, err, tt.want)
		}
	}
	for _, tt := range []struct{ op, in string }{
		{"base64_decode", "%"}, {"base64_decode", "//8="}, {"hex_decode", "xyz"}, {"url_decode", "%zz"},
		{"format_json", "{"}, {"nope", ""},
	} {
		if a, err := transform(arguments(t, map[string]string{"operation": tt.op, "text": tt.in})); err == nil {
			t.Errorf("%s(%q) = %q, want an error", tt.op, tt.in, a.text)
		}
	}
	if _, err := transform(json.RawMessage(`{"text":1}`)); err == nil {
		t.Error("a number was taken for a text")
	}
}

func arguments(t testing.TB, m map[string]string) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestServerListsAndCallsTools(t *testing.T) {
	s := New("1.2.3", func(context.Context) any { return map[string]any{"ok": true} }, noCaller)
	d, err := s.Describe(t.Context(), nil)
	if err != nil || !strings.Contains(string(d.Info), `"1.2.3"`) || d.Instructions == "" {
		t.Errorf("Describe = %s, %v", d.Info, err)
	}
	raw, err := s.Serve(t.Context(), &mcpserver.Request{Method: "tools/list"})
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(raw, &list); err != nil || len(list.Tools) != 4 {
		t.Fatalf("tools/list = %s, %v", raw, err)
	}
	examples := map[string]string{
		"time": `{"zone":"UTC"}`, "calculate": `{"expression":"1+1"}`,
		"text": `{"operation":"count","text":"a b"}`, "status": `{}`,
	}
	for _, one := range list.Tools {
		def, err := tool.ParseDefinition(Name, one)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(def.Name.Tool, func(t *testing.T) {
			input, err := schema.Compile(def.InputSchema)
			if err != nil {
				t.Fatal(err)
			}
			output, err := schema.Compile(def.OutputSchema)
			if err != nil {
				t.Fatal(err)
			}
			example := examples[def.Name.Tool]
			if v, err := input.Check(t.Context(), json.RawMessage(example)); v != nil || err != nil {
				t.Fatalf("the example breaks the input schema: %v", v)
			}
			raw, err := s.Serve(t.Context(), &mcpserver.Request{Method: "tools/call", Params: json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s}`, def.Name.Tool, example))})
			var res struct {
				Content           []textBlock
				StructuredContent json.RawMessage
				IsError           bool
			}
			if err != nil || json.Unmarshal(raw, &res) != nil || res.IsError || len(res.Content) != 1 || res.Content[0].Text == "" {
				t.Fatalf("tools/call = %s, %v", raw, err)
			}
			if v, err := output.Check(t.Context(), res.StructuredContent); v != nil || err != nil {
				t.Errorf("the answer %s breaks the output schema: %v", res.StructuredContent, v)
			}
		})
	}
	for params, code := range map[string]int{
		`{"name":"nope"}`: mcp.CodeInvalidParams,
		`[]`:              mcp.CodeInvalidParams,
	} {
		_, err := s.Serve(t.Context(), &mcpserver.Request{Method: "tools/call", Params: json.RawMessage(params)})
		if e, ok := errors.AsType[*mcp.Error](err); !ok || e.Code != code {
			t.Errorf("tools/call %s: %v", params, err)
		}
	}
	raw, err = s.Serve(t.Context(), &mcpserver.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"calculate"}`)})
	if err != nil || !strings.Contains(string(raw), `"isError":true`) {
		t.Errorf("a failed tool = %s, %v", raw, err)
	}
	if _, err := s.Serve(t.Context(), &mcpserver.Request{Method: "resources/list"}); err == nil {
		t.Error("an unknown method was answered")
	}
	s.Notified(t.Context(), nil, "x", nil)
	bad := New("1", func(context.Context) any { return func() {} }, noCaller)
	raw, err = bad.Serve(t.Context(), &mcpserver.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"status"}`)})
	if err != nil || !strings.Contains(string(raw), `"isError":true`) {
		t.Errorf("a status that cannot be shown = %s, %v", raw, err)
	}
}

func noCaller(string) (tool.Caller, bool) { return tool.Caller{}, false }
