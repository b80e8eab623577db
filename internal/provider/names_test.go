package provider

import (
	"strings"
	"testing"

	"junctor/internal/tool"
)

func TestLegalName(t *testing.T) {
	long := strings.Repeat("t", 60)
	for name, tt := range map[string]struct {
		server, tool, want string // want ending in _ means that prefix and a hash
	}{
		"plain":                {"github", "create_issue", "github__create_issue"},
		"dash":                 {"my-server", "get-x", "my-server__get-x"},
		"exactly the limit":    {"s", strings.Repeat("t", 60), "s__" + long},
		"one beyond":           {"s", strings.Repeat("t", 61), "s__" + strings.Repeat("t", 51) + "_"},
		"dot":                  {"fs", "read.file", "fs__read_file_"},
		"slash and space":      {"fs", "a/b c", "fs__a_b_c_"},
		"not ASCII":            {"s", "поиск", "s________"},
		"two ways to read it":  {"a__b", "c", "a__b__c_"},
		"one way to read it":   {"a", "b__c", "a__b__c_"},
		"underscore before it": {"a", "_b", "a___b_"},
		"underscores in a row": {"a_", "b", "a___b_"},
		"server begins with 9": {"9lives", "go", "_9lives__go_"},
		"server begins with -": {"-x", "go", "_-x__go_"},
		"a long server":        {strings.Repeat("s", 64), "go", strings.Repeat("s", 54) + "_"},
		"like a hash":          {"s", "a_0123abcd", "s__a_0123abcd_"},
		"a colon in the tool":  {"s", "a:b", "s__a_b_"},
		"an empty tool":        {"s", "", "s___"},
	} {
		t.Run(name, func(t *testing.T) {
			n := tool.Name{Server: tt.server, Tool: tt.tool}
			got := LegalName(n)
			if !legalNameRE.MatchString(got) {
				t.Errorf("LegalName(%v) = %q is not legal", n, got)
			}
			if strings.HasSuffix(tt.want, "_") {
				if !strings.HasPrefix(got, tt.want) || len(got) != len(tt.want)+8 {
					t.Errorf("LegalName(%v) = %q, want %q and 8 digits", n, got, tt.want)
				}
			} else if got != tt.want {
				t.Errorf("LegalName(%v) = %q, want %q", n, got, tt.want)
			}
			if again := LegalName(n); again != got {
				t.Errorf("LegalName(%v) = %q, then %q", n, got, again)
			}
		})
	}
}

// TestLegalNameIsStable checks published names: a change here breaks existing
// conversations.
func TestLegalNameIsStable(t *testing.T) {
	for n, want := range map[tool.Name]string{
		{Server: "fs", Tool: "read.file"}: "fs__read_file_312b0c02",
		{Server: "a__b", Tool: "c"}:       "a__b__c_ce06b84b",
	} {
		if got := LegalName(n); got != want {
			t.Errorf("LegalName(%v) = %q, want %q", n, got, want)
		}
	}
}

func TestLegalNamesAreUnique(t *testing.T) {
	tools := []tool.Name{
		{Server: "a", Tool: "b__c"}, {Server: "a__b", Tool: "c"}, {Server: "a_", Tool: "_b"}, {Server: "a", Tool: "x.y"},
		{Server: "a", Tool: "x/y"}, {Server: "a", Tool: "x_y"}, {Server: "a", Tool: "x_y"},
		{Server: "s", Tool: strings.Repeat("t", 90) + "1"}, {Server: "s", Tool: strings.Repeat("t", 90) + "2"},
	}
	// A tool whose plain name equals the hashed name of another one.
	tools = append(tools, tool.Name{Server: "a", Tool: strings.TrimPrefix(LegalName(tools[3]), "a__")})
	n := newNames(tools)
	seen := map[string]tool.Name{}
	for _, want := range tools {
		legal, ok := n.Legal(want)
		if !ok || !legalNameRE.MatchString(legal) {
			t.Fatalf("Legal(%v) = %q, %v", want, legal, ok)
		}
		if other, taken := seen[legal]; taken && other != want {
			t.Errorf("%v and %v are both %q", want, other, legal)
		}
		seen[legal] = want
		if got, ok := n.Tool(legal); !ok || got != want {
			t.Errorf("Tool(%q) = %v, %v, want %v", legal, got, ok, want)
		}
	}
	for _, n1 := range tools { // neither the order nor other tools change a name
		if legal, _ := n.Legal(n1); legal != LegalName(n1) {
			t.Errorf("%v is %q, want %q", n1, legal, LegalName(n1))
		}
	}
	if _, ok := n.Tool("a__nothing"); ok {
		t.Error("Tool found what is not there")
	}
	if _, ok := n.Legal(tool.Name{Server: "z", Tool: "z"}); ok {
		t.Error("Legal found what is not there")
	}
}

func FuzzLegalName(f *testing.F) {
	f.Add("server", "tool.name")
	f.Fuzz(func(t *testing.T, server, name string) {
		if !tool.ValidServer(server) {
			return
		}
		if got := LegalName(tool.Name{Server: server, Tool: name}); !legalNameRE.MatchString(got) {
			t.Errorf("LegalName(%q, %q) = %q", server, name, got)
		}
	})
}

func TestLegalParameterNames(t *testing.T) {
	for in, want := range map[string]string{"a.b-c_D9": "a.b-c_D9", "filter[x]": "filter_x__", "": "__", "$top": "_top_", strings.Repeat("k", 65): strings.Repeat("k", 55) + "_"} {
		got := dottedKey(in)
		if got != want && (len(got) != len(want)+8 || !strings.HasPrefix(got, want)) || !legalKeyRE.MatchString(got) {
			t.Errorf("dottedKey(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"a_b": "a_b", "a.b": "a_b_", "9a": "_9a_", "x-y": "x_y_"} {
		got := plainKey(in)
		if got != want && (len(got) != len(want)+8 || !strings.HasPrefix(got, want)) || !plainKeyRE.MatchString(got) {
			t.Errorf("plainKey(%q) = %q, want %q", in, got, want)
		}
	}
}
