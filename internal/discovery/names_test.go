package discovery

import (
	"slices"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/provider"
	"junctor/internal/tool"
)

// legal reports whether every client accepts the name.
func legal(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-')
	})
}

func TestPublicName(t *testing.T) {
	for name, tt := range map[string]struct{ server, tool, want string }{
		"plain":             {"github", "create_issue", "github__create_issue"},
		"dashes":            {"my-git", "a-b", "my-git__a-b"},
		"underscore tool":   {"a", "_b", "a___b_"},
		"underscore server": {"a_", "b", "a___b_"},
		"two underscores":   {"a__b", "c", "a__b__c_"},
		"slash":             {"fs", "read/file", "fs__read_file_"},
		"not ASCII":         {"fs", "größe", "fs__gr__e_"},
		"long":              {strings.Repeat("s", 30), strings.Repeat("t", 40), strings.Repeat("s", 30) + "__" + strings.Repeat("t", 22) + "_"},
		"no name":           {"fs", "", "fs___"},
	} {
		t.Run(name, func(t *testing.T) {
			got := publicName(tt.server, tt.tool)
			exact := !strings.HasSuffix(tt.want, "_")
			if exact && got != tt.want || !exact && (!strings.HasPrefix(got, tt.want) || len(got) != len(tt.want)+8) {
				t.Errorf("publicName = %q, want %q", got, tt.want)
			}
			if again := publicName(tt.server, tt.tool); again != got {
				t.Errorf("publicName is %q and %q", got, again)
			}
		})
	}
}

func FuzzPublicName(f *testing.F) {
	f.Add("a", "b__c", "a__b", "c")
	f.Add("a_", "b", "a", "_b")
	f.Add("fs", "read/file", "fs", "read_file")
	f.Fuzz(func(t *testing.T, server1, tool1, server2, tool2 string) {
		if !tool.ValidServer(server1) || !tool.ValidServer(server2) || tool1 == "" || tool2 == "" {
			return
		}
		a, b := publicName(server1, tool1), publicName(server2, tool2)
		for _, name := range []string{a, b} {
			if len(name) > provider.MaxName || !legal(name) || name == "" {
				t.Errorf("%q is not legal", name)
			}
		}
		if same := server1 == server2 && tool1 == tool2; (a == b) != same {
			t.Errorf("%s:%s and %s:%s are %q and %q", server1, tool1, server2, tool2, a, b)
		}
	})
}

func TestToolTableResolvesPublicNames(t *testing.T) {
	c := catalog.New(nil, nil)
	put := func(server string, names ...string) {
		var defs []tool.Definition
		for _, n := range names {
			d, err := tool.ParseDefinition(server, marshal(map[string]any{"name": n, "inputSchema": map[string]any{}}))
			if err != nil {
				t.Fatal(err)
			}
			defs = append(defs, d)
		}
		c.Put(catalog.Server{Name: server}, defs)
	}
	put("a", "b__c", "x", "ü", "ö")
	put("a__b", "c")
	table := toolTable(c.Snapshot())
	if len(table.names) != 5 || !slices.IsSorted(table.names) {
		t.Fatalf("names = %v", table.names)
	}
	for public, e := range table.byName {
		if publicName(e.Name.Server, e.Name.Tool) != public {
			t.Errorf("%s stands for %s", public, e.Name)
		}
	}
	// A name does not depend on other tools.
	before := table.names
	put("zoo", "x")
	for _, name := range before {
		if toolTable(c.Snapshot()).byName[name] == nil {
			t.Errorf("%s is gone", name)
		}
	}
	all := table.after("")
	if rest := table.after(all[1]); len(all) != 5 || !slices.Equal(rest, all[2:]) {
		t.Errorf("behind %s of %v: %v", all[1], all, rest)
	}
}

func TestTableKeepsCollidingNamesApart(t *testing.T) {
	table := newTable[int](0)
	table.add("fs", "a/b", 1)
	table.byName[publicName("fs", "c/d")] = 2 // simulates a hash collision
	table.add("fs", "c/d", 3)
	if len(table.byName) != 3 {
		t.Errorf("%v", table.byName)
	}
	for name := range table.byName {
		if len(name) > provider.MaxName || !legal(name) {
			t.Errorf("%q is not legal", name)
		}
	}
	for i := range 10 {
		table.add("fs", "c/d", i) // duplicates are dropped
	}
	if len(table.byName) > 10 {
		t.Errorf("%d names", len(table.byName))
	}
}

func TestURITemplateMatches(t *testing.T) {
	for _, tt := range []struct {
		template, uri string
		ok            bool
	}{
		{"made:{id}/x", "made:7/x", true},
		{"made:{id}/x", "made:7/y", false},
		{"made:{id}", "made:7", true},
		{"made:{id}", "other:7", false},
		{"{+path}", "anything", true},
		{"a:{x}-{y}", "a:1-2", true},
		{"plain:1", "plain:1", true},
		{"plain:1", "plain:12", false},
	} {
		if got := fitsTemplate(tt.template, tt.uri); got != tt.ok {
			t.Errorf("fitsTemplate(%s, %s) = %v", tt.template, tt.uri, got)
		}
	}
}

func TestParseView(t *testing.T) {
	for _, tt := range []struct {
		mode, server string
		want         View
		ok           bool
	}{
		{"", "", View{}, true},
		{"direct", "", View{Mode: DirectMode}, true},
		{"", "github", View{Server: "github"}, true},
		{"direct", "github", View{}, false},
		{"odd", "", View{}, false},
	} {
		got, err := ParseView(tt.mode, tt.server)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseView(%q, %q) = %v, %v", tt.mode, tt.server, got, err)
		}
	}
}
