package profile

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"junctor/internal/setting"
	"junctor/internal/tool"
)

var (
	servers = []string{"github", "fs", "crm"}
	tools   = []string{"read_file", "delete_file", "push", "resources/read"}
	tagged  = map[string][]string{"crm": {"crm", "people"}, "fs:push": {"crm"}, "fs:delete_file": {"danger"}}
)

func newSet(profiles map[string]Config) *Set {
	return New(profiles, Options{
		Tags: func(n tool.Name) []string { return append(slices.Clone(tagged[n.Server]), tagged[n.String()]...) },
		ServerTags: func(server string) (tags []string) {
			for name, t := range tagged {
				if name == server || strings.HasPrefix(name, server+":") {
					tags = append(tags, t...)
				}
			}
			return tags
		},
		Servers: func() []string { return servers },
	})
}

// allowed returns the names of the tools that the caller may use.
func allowed(c tool.Caller) []string {
	var names []string
	for _, s := range servers {
		for _, t := range tools {
			if n := (tool.Name{Server: s, Tool: t}); c.MayUse(n) {
				names = append(names, n.String())
			}
		}
	}
	return names
}

func TestProfileSelectsByServerTagAndTool(t *testing.T) {
	set := newSet(map[string]Config{
		"coding":  {Servers: []string{"github", "fs"}, Tools: []string{"*", "!*:delete_*"}},
		"support": {Tags: []string{"crm"}},
		"safe":    {Tags: []string{"*", "!danger"}},
		"nothing": {Servers: []string{}},
		"all":     {},
	})
	for name, want := range map[string]string{
		"coding":  "github:read_file github:push github:resources/read fs:read_file fs:push fs:resources/read",
		"support": "fs:push crm:read_file crm:delete_file crm:push crm:resources/read",
		"safe":    "fs:push crm:read_file crm:delete_file crm:push crm:resources/read",
		"nothing": "",
		"all":     strings.Join(allowed(tool.Local), " "),
	} {
		c, err := set.Narrow(tool.Local, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(allowed(c), " "); got != want {
			t.Errorf("%s allows %s, want %s", name, got, want)
		}
		if c.Admin || c.IsOperator() || !c.Limited() {
			t.Errorf("%s: %+v is still an operator", name, c)
		}
	}
	c, _ := set.Narrow(tool.Local, "support")
	if !c.MaySee("fs") || !c.MaySee("crm") || c.MaySee("github") {
		t.Error("the servers are not those that have a tool with the tag")
	}
}

func TestUnknownProfileNamesThoseThatCallerMayUse(t *testing.T) {
	set := newSet(map[string]Config{"coding": {Servers: []string{"github"}}, "files": {Servers: []string{"fs"}}, "support": {Tags: []string{"crm"}}})
	limited := tool.Caller{ID: "key:x", Servers: []string{"fs"}}
	for name, tt := range map[string]struct {
		caller tool.Caller
		want   []string
	}{
		"unlimited":  {tool.Local, []string{"coding", "files", "support"}},
		"limited":    {limited, []string{"files", "support"}},
		"bound":      {set.Bind(tool.Caller{ID: "key:y"}, "coding"), []string{"coding"}},
		"by a grant": {tool.Caller{ID: "sub:z", Grants: []tool.Grant{{Profiles: tool.Profiles{set.Get("files")}}}}, []string{"files"}},
		"nobody":     {tool.Caller{ID: "nobody", Servers: []string{}}, []string{}},
	} {
		if got := set.Usable(&tt.caller); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		c, err := set.Narrow(tt.caller, "nope")
		if tool.KindOf(err) != tool.InvalidArguments || !strings.Contains(err.Error(), strings.Join(tt.want, ", ")) {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(allowed(c), allowed(tt.caller)) {
			t.Errorf("%s: the caller changed with the error", name)
		}
	}
	if _, err := set.Narrow(limited, "coding"); err == nil || strings.Contains(err.Error(), "one of: coding") {
		t.Errorf("a profile of another's servers: %v", err)
	}
}

func TestProfilesFollowConfiguration(t *testing.T) {
	set := newSet(map[string]Config{"p": {Servers: []string{"fs"}, Mode: "direct", Instructions: "Careful.", Approval: Ask, Rate: &setting.Rate{Calls: 5}}})
	c := set.Bind(tool.Local, "p")
	if !c.NeedsApproval(tool.Name{Server: "fs", Tool: "push"}) || c.Mode() != "direct" || c.Instructions() != "Careful." || c.Profiles[0].Settings().Rate != (tool.Rate{Calls: 5, Per: time.Minute}) {
		t.Errorf("terms: %+v", c.Profiles[0].Settings())
	}
	set.SetConfig(map[string]Config{"p": {Servers: []string{"crm"}}})
	if c.MaySee("fs") || !c.MaySee("crm") || c.NeedsApproval(tool.Name{Server: "crm", Tool: "push"}) {
		t.Error("the caller does not follow the changed profile")
	}
	set.SetConfig(nil)
	if len(allowed(c)) > 0 || c.MaySee("crm") {
		t.Error("a profile that was removed allows something")
	}
}

func TestPathAndParameterNarrow(t *testing.T) {
	set := newSet(map[string]Config{"coding": {Servers: []string{"github"}}, "files": {Servers: []string{"fs"}}})
	var path, query, view string
	h := set.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c := tool.CallerFrom(r.Context())
		path, query, view = r.URL.Path, r.URL.RawQuery, c.View()
	}))
	for target, want := range map[string]string{
		"/mcp":                                 "200 /mcp  local",
		"/mcp?profile=":                        "400",
		"/mcp?mode=direct&profile=coding":      "200 /mcp mode=direct&profile=coding local\x00coding",
		"/mcp?prof%69le=coding":                "200 /mcp prof%69le=coding local\x00coding",
		"/profiles/coding/mcp":                 "200 /mcp profile=coding local\x00coding",
		"/profiles/coding/mcp/github?x=1":      "200 /mcp/github profile=coding&x=1 local\x00coding",
		"/profiles/coding/api/tools":           "200 /profiles/coding/api/tools  local",
		"/profiles/nope/mcp":                   "400",
		"/profiles/coding/mcp?profile=files":   "400",
		"/api/tools?profile=nope":              "400",
		"/api/tools?profile=coding&profile=fs": "400",
		"/mcp?profile=co%zz":                   "400",
		"/profiles//mcp":                       "400",
	} {
		path, query, view = "", "", ""
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(tool.WithCaller(t.Context(), tool.Local), "GET", target, nil))
		got := fmt.Sprint(w.Code)
		if w.Code == 200 {
			got = fmt.Sprintf("%d %s %s %s", w.Code, path, query, view)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}

// TestNarrowingNeverWidens: for any caller and profile, whatever can be used or
// seen with the profile can be used or seen without it.
func TestNarrowingNeverWidens(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	globs := func(from ...string) []string {
		if r.IntN(3) == 0 {
			return nil
		}
		out := []string{}
		for range r.IntN(4) {
			out = append(out, strings.Repeat("!", max(0, r.IntN(3)-1))+from[r.IntN(len(from))])
		}
		return out
	}
	serverGlobs := func() []string { return globs("*", "github", "fs", "c*", "?s") }
	toolGlobs := func() []string {
		return globs("*", "fs:*", "*:read_*", "crm:push", "*file", "g*:resources/*", "fs:??*")
	}
	for range 3000 {
		set := newSet(map[string]Config{
			"a": {Servers: serverGlobs(), Tools: toolGlobs(), Tags: globs("*", "crm", "danger", "p*")},
			"b": {Servers: serverGlobs(), Tools: toolGlobs()},
		})
		c := tool.Caller{ID: "key:x", Admin: r.IntN(2) == 0, Servers: serverGlobs(), Tools: toolGlobs()}
		for range r.IntN(3) {
			g := tool.Grant{Servers: serverGlobs(), Tools: toolGlobs()}
			if r.IntN(2) == 0 {
				g.Profiles = tool.Profiles{set.Get([]string{"a", "b", "gone"}[r.IntN(3)])}
			}
			c.Grants = append(c.Grants, g)
		}
		if r.IntN(3) == 0 {
			c = set.Bind(c, "b")
		}
		for _, name := range []string{"a", "b", "gone"} {
			n, err := set.Narrow(c, name)
			if err != nil {
				n = set.Bind(c, name)
			}
			for _, s := range servers {
				if n.MaySee(s) && !c.MaySee(s) {
					t.Fatalf("%+v with profile %s sees %s", c, name, s)
				}
				for _, tl := range tools {
					q := tool.Name{Server: s, Tool: tl}
					if n.MayUse(q) && (!c.MayUse(q) || !set.Get(name).Allows(q)) {
						t.Fatalf("%+v with profile %s (%+v) may use %s", c, name, set.CurrentConfig()[name], q)
					}
					if n.MayUse(q) && !n.MaySee(s) {
						t.Fatalf("%+v with profile %s may use %s and not see its server", c, name, q)
					}
					if c.NeedsApproval(q) && !n.NeedsApproval(q) {
						t.Fatalf("%+v with profile %s need not ask for %s", c, name, q)
					}
				}
			}
			if n.Admin || n.IsOperator() {
				t.Fatalf("%+v with profile %s is an operator", c, name)
			}
		}
	}
}
