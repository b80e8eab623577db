package executor

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"junctor/internal/tool"
)

// TestCostlySchemaFailsOnlyItsCalls: a schema of two references on each of 30
// levels fails its own calls, and no others.
func TestCostlySchemaFailsOnlyItsCalls(t *testing.T) {
	for _, keyword := range []string{"anyOf", "allOf"} {
		t.Run(keyword, func(t *testing.T) {
			var b strings.Builder
			b.WriteString(`{"name":"bomb","inputSchema":{"type":"object","$ref":"#/$defs/l0","$defs":{`)
			for i := range 30 {
				fmt.Fprintf(&b, `"l%d":{%q:[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]},`, i, keyword, i+1, i+1)
			}
			b.WriteString(`"l30":{"not":{"required":["a"]},"minProperties":` + map[string]string{"anyOf": "1", "allOf": "0"}[keyword] + `}}}}`)
			r := newFixture(t)
			r.offer(t, "evil", b.String())
			_, err := r.Call(t.Context(), call("evil:bomb", `{}`))
			if tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "too many steps") || r.calls != 0 {
				t.Errorf("error = %v after %d calls", err, r.calls)
			}
			e := r.catalog.Snapshot().Lookup(tool.Name{Server: "evil", Tool: "bomb"})
			if w := strings.Join(e.Warnings(), " "); !strings.Contains(w, "too many steps") {
				t.Errorf("the tool is marked %q", w)
			}
			if _, err := r.Call(t.Context(), call("fs:read", `{"path":"a"}`)); err != nil {
				t.Errorf("another tool: %v", err)
			}
		})
	}
}

func TestUncheckedArgumentsAreNoted(t *testing.T) {
	r := newFixture(t)
	if _, err := r.Call(t.Context(), call("fs:odd", `{}`)); err != nil {
		t.Fatal(err)
	}
	if stages := r.only(t).Stages.String(); !strings.Contains(stages, "unchecked") {
		t.Errorf("stages = %s", stages)
	}
	if w := r.catalog.Snapshot().Lookup(tool.Name{Server: "fs", Tool: "odd"}).Warnings(); len(w) != 1 {
		t.Errorf("warnings = %q", w)
	}
}

// TestArgumentsAreChecked covers APIs that pass on arguments without an MCP
// message.
func TestArgumentsAreChecked(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for name, tt := range map[string]struct {
		arguments, want string
	}{
		"not UTF-8":      {"{\"a\":\"\xff\"}", "not valid UTF-8"},
		"5,000 deep":     {nested(5000), "deeper than 254"},
		"255 deep":       {nested(255), "deeper than 254"},
		"just the limit": {nested(254), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			_, err := r.Call(t.Context(), call("fs:write", tt.arguments))
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if tool.KindOf(err) != tool.InvalidArguments || !strings.Contains(err.Error(), tt.want) || r.calls != 0 {
				t.Errorf("error = %v after %d calls, want one that says %q", err, r.calls, tt.want)
			}
			if rec := r.only(t); !utf8.Valid(rec.Arguments) {
				t.Errorf("recorded arguments %q are not UTF-8", rec.Arguments)
			}
		})
	}
}

func TestInvalidArgumentsCarryTheSchema(t *testing.T) {
	r := newFixture(t)
	_, err := r.Call(t.Context(), call("read", `{"n":"x","y":1}`))
	d, ok := tool.AsError(err).Details.(InvalidArguments)
	if !ok || len(d.Violations) != 3 || !strings.Contains(string(d.Schema), `"path"`) {
		t.Errorf("details = %+v", tool.AsError(err).Details)
	}
	many := call("read", `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"n":"x","path":3}`)
	if _, err := r.Call(t.Context(), many); err == nil {
		t.Error("accepted")
	}
}

func TestInvalidSchemaSkipsValidation(t *testing.T) {
	r := newFixture(t)
	if _, err := r.Call(t.Context(), call("odd", `{"any":1}`)); err != nil {
		t.Errorf("Call = %v", err)
	}
}

// TestDuplicateNamesInParamsAreRefused: params that two parsers could read
// differently are refused.
func TestDuplicateNamesInParamsAreRefused(t *testing.T) {
	r := newFixture(t)
	r.do = succeed
	for params, ok := range map[string]bool{
		`{"name":"read","arguments":{"path":"a"}}`:                            true,
		`{"name":"read","arguments":{"path":"a"},"_meta":{"Name":"x"}}`:       true,
		`{"name":"write","name":"read","arguments":{"path":"a"}}`:             false,
		`{"Name":"write","name":"read","arguments":{"path":"a"}}`:             false,
		`{"name":"read","NAME":"write","arguments":{"path":"a"}}`:             false,
		`{"name":"read","arguments":{"path":"b"},"arguments":{"path":"a"}}`:   false,
		`{"name":"read","n\u0061me":"write","arguments":{"path":"a"}}`:        false,
		`{"name":"read","arguments":{"path":"a"},"\u0041rguments":{"a":"b"}}`: false,
	} {
		c := call("read", `{"path":"a"}`)
		c.Params = json.RawMessage(params)
		if _, err := r.Call(t.Context(), c); (err == nil) != ok || err != nil && tool.KindOf(err) != tool.InvalidArguments {
			t.Errorf("%s: %v", params, err)
		}
	}
}
