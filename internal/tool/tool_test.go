package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want Name
		kind Kind // "" means success
	}{
		"plain":         {in: "github:create_issue", want: Name{"github", "create_issue"}},
		"slash in tool": {in: "fs:read/file", want: Name{"fs", "read/file"}},
		"colon in tool": {in: "a:b:c", want: Name{"a", "b:c"}},
		"no server":     {in: ":read", kind: InvalidArguments},
		"no tool":       {in: "fs:", kind: InvalidArguments},
		"bare":          {in: "read", kind: InvalidArguments},
		"bad server":    {in: "f s:read", kind: InvalidArguments},
		"long server":   {in: strings.Repeat("a", 65) + ":x", kind: InvalidArguments},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseName(tt.in)
			if KindOf(err) != tt.kind {
				t.Fatalf("ParseName(%q) error = %v, want kind %q", tt.in, err, tt.kind)
			}
			if got != tt.want {
				t.Errorf("ParseName(%q) = %v, want %v", tt.in, got, tt.want)
			}
			if err == nil && got.String() != tt.in {
				t.Errorf("String() = %q, want %q", got, tt.in)
			}
		})
	}
	if b, _ := json.Marshal(map[string]Name{"n": {"a", "b"}}); string(b) != `{"n":"a:b"}` {
		t.Errorf("a Name in JSON is %s", b)
	}
}

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"", "", true}, {"", "a", false},
		{"github:*", "github:create/issue", true},
		{"*github*", "my-github:x", true},
		{"*:delete_?", "db:delete_1", true},
		{"*:delete_?", "db:delete_", false},
		{"a*b*c", "axxbxxbc", true}, {"a*b*c", "axxbxx", false},
		{"[a]", "[a]", true}, {"[a]", "a", false},
	} {
		if got := Glob(tt.pattern, tt.name); got != tt.want {
			t.Errorf("Glob(%q, %q) = %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
}

func TestCallerRights(t *testing.T) {
	c := Caller{Servers: []string{"git*"}, Tools: []string{"*:read_*", "*-test:write"}}
	for n, want := range map[Name]bool{
		{"github", "read_file"}: true,
		{"github", "write"}:     false,
		{"git-test", "write"}:   true,
		{"git", "x-test:write"}: false, // a star before the colon matches only the server's name
		{"git", "x:read_file"}:  false,
		{"fs", "read_file"}:     false,
	} {
		if got := c.MayUse(n); got != want {
			t.Errorf("MayUse(%s) = %v, want %v", n, got, want)
		}
	}
	if !Local.MayUse(Name{"any", "thing"}) {
		t.Error("the local caller is limited")
	}
	none := Caller{Servers: []string{}}
	if none.MaySee("x") {
		t.Error("an empty list of servers allows one")
	}
}

func TestKindCodes(t *testing.T) {
	for kind, want := range map[Kind][2]int{
		InvalidArguments: {-32602, 400}, ToolNotFound: {-32601, 404}, ToolDisabled: {-32003, 403},
		Unauthenticated: {-32004, 401}, CircuitOpen: {-32005, 503}, RateLimited: {-32006, 429},
		Timeout: {-32007, 504}, UpstreamFailed: {-32008, 502}, ExecutionFailed: {-32603, 200},
		ParseFailed: {-32700, 400}, TooLarge: {-32600, 413}, ProxyDisabled: {-32600, 400},
		NoAction: {-32000, 422}, Internal: {-32603, 500}, "never heard of": {-32603, 500},
	} {
		if got := [2]int{kind.JSONRPC(), kind.HTTP()}; got != want {
			t.Errorf("%s maps to %v, want %v", kind, got, want)
		}
	}
}

func TestErrorHidesForeignCauses(t *testing.T) {
	if KindOf(nil) != "" {
		t.Error("nil has a kind")
	}
	err := AsError(fmt.Errorf("read: %w", fs.ErrPermission))
	if err.Kind != Internal || strings.Contains(err.Msg, "permission") {
		t.Errorf("a foreign error shows as %q of kind %s", err.Msg, err.Kind)
	}
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "permission") {
		t.Error("the cause is lost to the log")
	}
	if err := (&Error{Msg: "fs is down: it ended", Err: errors.New("it ended")}); err.Error() != "fs is down: it ended" {
		t.Errorf("the cause is repeated: %q", err.Error())
	}
	known := &Error{Kind: Timeout, Msg: "too slow"}
	if got := AsError(fmt.Errorf("call: %w", known)); got != known || got.Error() != "too slow" {
		t.Errorf("AsError lost the known error: %v", got)
	}
}

func TestParseDefinition(t *testing.T) {
	raw := `{"name":"add","title":"Add","description":"Adds.","inputSchema":{"type":"object"},"outputSchema":3,"annotations":{"readOnlyHint":true},"x-new":12345678901234567890}`
	d, err := ParseDefinition("calc", json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != (Name{"calc", "add"}) || d.Title != "Add" || !d.Annotations.Repeatable() || string(d.Raw) != raw || d.OutputSchema != nil {
		t.Errorf("ParseDefinition = %+v", d)
	}
	for name, bad := range map[string]string{
		"not JSON":           `{`,
		"no name":            `{"inputSchema":{}}`,
		"no schema":          `{"name":"x"}`,
		"schema is an array": `{"name":"x","inputSchema":[]}`,
		"name is a number":   `{"name":7,"inputSchema":{}}`,
	} {
		if _, err := ParseDefinition("s", json.RawMessage(bad)); err == nil || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	titled, err := ParseDefinition("s", json.RawMessage(`{"name":"x","inputSchema":{},"annotations":{"title":"T","idempotentHint":true}}`))
	if err != nil || titled.Title != "T" || !titled.Annotations.Repeatable() {
		t.Errorf("title from annotations: %+v, %v", titled, err)
	}
}

func TestFingerprint(t *testing.T) {
	print := func(raw string) string { return Definition{Raw: json.RawMessage(raw)}.Fingerprint() }
	a := print(`{"name":"x","inputSchema":{"a":1,"b":12345678901234567890}}`)
	if b := print(`{ "inputSchema": {"b":12345678901234567890, "a":1}, "name":"x" }`); a != b {
		t.Error("order and white space change the fingerprint")
	}
	if c := print(`{"name":"x","inputSchema":{"a":1,"b":12345678901234567891}}`); a == c {
		t.Error("a changed definition has the same fingerprint")
	}
	if print(`{broken`) == print(`{broken2`) {
		t.Error("broken definitions share a fingerprint")
	}
}

func TestMaySee(t *testing.T) {
	for name, tt := range map[string]struct {
		caller Caller
		want   string // servers that it may see
	}{
		"no limits":         {Caller{}, "github hidden-hr git"},
		"servers":           {Caller{Servers: []string{"git*"}}, "github git"},
		"tools":             {Caller{Tools: []string{"github:create_*"}}, "github"},
		"any server's":      {Caller{Tools: []string{"*:read"}}, "github hidden-hr git"},
		"a part of a name":  {Caller{Tools: []string{"git?ub:x"}}, "github"},
		"the end of a name": {Caller{Tools: []string{"*ub:x"}}, "github"},
		"a pattern":         {Caller{Tools: []string{"git*"}}, "github git"},
		"no tool":           {Caller{Tools: []string{"github:", "git"}}, ""},
		"nothing":           {Caller{Tools: []string{}}, ""},
		"servers and tools": {Caller{Servers: []string{"git"}, Tools: []string{"*:read"}}, "git"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, server := range []string{"github", "hidden-hr", "git"} {
				if tt.caller.MaySee(server) {
					got = append(got, server)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("sees %v, want %s", got, tt.want)
			}
		})
	}
}
