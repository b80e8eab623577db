package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"junctor/internal/tool"
)

func definitions(t testing.TB, server string, names ...string) []tool.Definition {
	t.Helper()
	var out []tool.Definition
	for _, n := range names {
		d, err := tool.ParseDefinition(server, json.RawMessage(fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, n)))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

func filled(t testing.TB) *Catalog {
	c := New(nil, nil)
	c.Put(Server{Name: "github"}, definitions(t, "github", "create_issue", "search", "ns:odd"))
	c.Put(Server{Name: "fs"}, definitions(t, "fs", "read_file", "search"))
	return c
}

func TestResolve(t *testing.T) {
	s := filled(t).Snapshot()
	limited := tool.Caller{ID: "k", Servers: []string{"fs"}}
	readOnly := tool.Caller{ID: "r", Tools: []string{"*:read*"}}
	for name, tt := range map[string]struct {
		caller       *tool.Caller
		server, tool string
		want         string
		kind         tool.Kind
		says         string
	}{
		"qualified":                     {&tool.Local, "", "fs:read_file", "fs:read_file", "", ""},
		"server and tool":               {&tool.Local, "fs", "read_file", "fs:read_file", "", ""},
		"server and qualified":          {&tool.Local, "fs", "fs:read_file", "fs:read_file", "", ""},
		"bare and unique":               {&tool.Local, "", "read_file", "fs:read_file", "", ""},
		"bare with a colon":             {&tool.Local, "", "ns:odd", "github:ns:odd", "", ""},
		"ambiguous":                     {&tool.Local, "", "search", "", tool.InvalidArguments, "fs:search, github:search"},
		"ambiguous but one is hidden":   {&limited, "", "search", "fs:search", "", ""},
		"misspelt":                      {&tool.Local, "", "creat_isue", "", tool.ToolNotFound, "github:create_issue"},
		"misspelt with server":          {&tool.Local, "github", "create-issues", "", tool.ToolNotFound, "github:create_issue"},
		"misspelt in a known server":    {&tool.Local, "", "fs:reed_file", "", tool.ToolNotFound, "fs:read_file"},
		"unknown server":                {&tool.Local, "githb", "search", "", tool.ServerNotFound, "github"},
		"hidden server":                 {&limited, "github", "search", "", tool.ServerNotFound, `no server named "github"`},
		"hidden tool":                   {&readOnly, "fs", "search", "", tool.ToolNotFound, "has no tool"},
		"hidden tool, qualified":        {&readOnly, "", "fs:search", "", tool.ToolNotFound, "has no tool"},
		"hidden is not suggested":       {&limited, "", "create_issu", "", tool.ToolNotFound, `no tool named "create_issu"`},
		"nothing near":                  {&tool.Local, "", "zzzzzzzz", "", tool.ToolNotFound, `no tool named "zzzzzzzz"`},
		"empty":                         {&tool.Local, "", "", "", tool.ToolNotFound, "no tool"},
		"tool of the wrong server":      {&tool.Local, "fs", "create_issue", "", tool.ToolNotFound, "did you mean github:create_issue"},
		"a very long name is only long": {&tool.Local, "", strings.Repeat("x", 1<<20), "", tool.ToolNotFound, "no tool"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := s.Resolve(tt.caller, tt.server, tt.tool)
			if tool.KindOf(err) != tt.kind {
				t.Fatalf("Resolve(%q, %q) error = %v, want kind %q", tt.server, tt.tool, err, tt.kind)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tt.says) {
					t.Errorf("error %q does not say %q", err, tt.says)
				}
				if strings.Contains(tt.says, "no tool named") && strings.Contains(err.Error(), "did you mean") {
					t.Errorf("error %q suggests what it must not", err)
				}
				return
			}
			if e.Name.String() != tt.want {
				t.Errorf("Resolve(%q, %q) = %s, want %s", tt.server, tt.tool, e.Name, tt.want)
			}
		})
	}
}

// TestServerWithoutToolsIsExplained: a disabled server is reported as disabled to
// callers that may see it and as unknown to others. The names of servers include
// those whose tools are not known.
func TestServerWithoutToolsIsExplained(t *testing.T) {
	c := New(nil, nil)
	c.Configure(Settings{Servers: map[string]ServerSettings{"fs": {}, "down": {}, "off": {Disabled: true}}}, nil)
	c.Put(Server{Name: "fs"}, definitions(t, "fs", "read"))
	c.Put(Server{Name: "off"}, definitions(t, "off", "x")) // it was disabled while its tools were being read
	snap, limited := c.Snapshot(), tool.Caller{ID: "k", Servers: []string{"fs"}}
	for _, name := range [][2]string{{"off", "x"}, {"off", "off:x"}, {"", "off:x"}} {
		_, err := snap.Resolve(&tool.Local, name[0], name[1])
		if tool.KindOf(err) != tool.ToolDisabled || err.Error() != `server "off" is disabled; enable it with: junctor servers enable off` {
			t.Errorf("Resolve(%q): %v", name, err)
		}
		_, hidden := snap.Resolve(&limited, name[0], name[1])
		_, unknown := snap.Resolve(&limited, strings.ReplaceAll(name[0], "off", "odd"), strings.ReplaceAll(name[1], "off", "odd"))
		if tool.KindOf(hidden) != tool.KindOf(unknown) || hidden.Error() != strings.ReplaceAll(unknown.Error(), "odd", "off") {
			t.Errorf("hidden: %v\nunknown: %v", hidden, unknown)
		}
	}
	if _, err := snap.Resolve(&tool.Local, "zzzzzzzz", "x"); tool.KindOf(err) != tool.ServerNotFound || !strings.HasSuffix(err.Error(), "there are down, fs, off") {
		t.Errorf("unknown server: %v", err)
	}
}

func TestDisabledToolOfSameNameIsNotAmbiguous(t *testing.T) {
	off := false
	c := New([]ToolRule{{Pattern: []string{"github:search"}, Enabled: &off}}, nil)
	c.Put(Server{Name: "github"}, definitions(t, "github", "search"))
	c.Put(Server{Name: "fs"}, definitions(t, "fs", "search"))
	e, err := c.Snapshot().Resolve(&tool.Local, "", "search")
	if err != nil || e.Name.Server != "fs" {
		t.Errorf("Resolve(search) = %v, %v; want fs:search", e, err)
	}
}

func TestRulesApplyInOrder(t *testing.T) {
	yes, no := true, false
	c := New([]ToolRule{
		{Pattern: []string{"*"}, Enabled: &no, Tags: []string{"all"}},
		{Pattern: []string{"fs:*", "github:search"}, Enabled: &yes, Approval: AskApproval},
		{Pattern: []string{"fs:read_file"}, Tags: []string{"files", "team"}},
		{Pattern: []string{"github:search"}, Approval: AutoApproval},
	}, nil)
	c.Put(Server{Name: "github", Tags: []string{"team"}}, definitions(t, "github", "create_issue", "search"))
	c.Put(Server{Name: "fs", Tags: []string{"team"}, Allows: func(n string) bool { return n != "write" }}, definitions(t, "fs", "read_file", "write"))
	for name, want := range map[string]string{
		"github:create_issue": "false [team all] ",
		"github:search":       "true [team all] auto",
		"fs:read_file":        "true [team files] ask",
		"fs:write":            "false [team all] ask", // a rule cannot enable a tool that the server's own configuration disables
	} {
		n, _ := tool.ParseName(name)
		e := c.Snapshot().Lookup(n)
		if got := fmt.Sprintf("%v %v %s", e.Enabled, e.Tags, e.Approval); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if !e.Enabled && e.Reason == "" {
			t.Errorf("%s is disabled without a reason", name)
		}
	}
	if got := c.Snapshot().Server("fs").EnabledTools(); got != 1 {
		t.Errorf("fs has %d enabled tools, want 1", got)
	}

	before := c.Snapshot()
	c.Configure(Settings{Rules: nil}, nil)
	if got := c.Snapshot().Server("github").EnabledTools(); got != 2 {
		t.Errorf("without rules github has %d enabled tools, want 2", got)
	}
	if before.Server("github").EnabledTools() != 1 {
		t.Error("a snapshot changed after it was taken")
	}
}

func TestReviewDisablesTool(t *testing.T) {
	approved := false
	c := New(nil, func(d tool.Definition) Review { return Review{Changed: true, Blocked: !approved} })
	c.Put(Server{Name: "fs"}, definitions(t, "fs", "read"))
	n := tool.Name{Server: "fs", Tool: "read"}
	if e := c.Snapshot().Lookup(n); e.Enabled || !strings.Contains(e.Reason, "approve") {
		t.Errorf("a blocked tool is enabled=%v, reason %q", e.Enabled, e.Reason)
	}
	approved = true
	c.Refresh()
	if e := c.Snapshot().Lookup(n); !e.Enabled || !e.Review.Changed {
		t.Errorf("after approval: enabled=%v changed=%v", e.Enabled, e.Review.Changed)
	}
}

func TestPutReplacesAndRemoveDeletes(t *testing.T) {
	c := filled(t)
	c.Put(Server{Name: "fs", Title: "Files"}, append(definitions(t, "fs", "write"), definitions(t, "fs", "write")...))
	s := c.Snapshot()
	if s.Lookup(tool.Name{Server: "fs", Tool: "read_file"}) != nil || len(s.Server("fs").Tools) != 1 || s.Server("fs").Title != "Files" {
		t.Errorf("fs was not replaced: %+v", s.Server("fs"))
	}
	version := s.Version
	c.Remove("fs")
	c.Remove("never-was")
	s = c.Snapshot()
	if s.Server("fs") != nil || s.Len() != 3 || s.Version != version+1 {
		t.Errorf("after Remove: %d tools, version %d (was %d)", s.Len(), s.Version, version)
	}
	var names []string
	for _, server := range filled(t).Snapshot().Servers() {
		names = append(names, server.Name)
	}
	if !slices.IsSorted(names) {
		t.Errorf("servers are not in order: %v", names)
	}
}

func TestVisibleFollowsCallerRights(t *testing.T) {
	off := false
	c := filled(t)
	c.Configure(Settings{Rules: []ToolRule{{Pattern: []string{"fs:search"}, Enabled: &off}}}, nil)
	var got []string
	for e := range c.Snapshot().Visible(&tool.Caller{Tools: []string{"*search", "fs:*"}}) {
		got = append(got, e.Name.String())
	}
	if want := "[fs:read_file github:search]"; fmt.Sprint(got) != want {
		t.Errorf("Visible = %v, want %s", got, want)
	}
	for range c.Snapshot().Visible(&tool.Local) {
		break // stopping early must not panic
	}
}

func TestSchemaIsCompiledOnce(t *testing.T) {
	e := filled(t).Snapshot().Lookup(tool.Name{Server: "fs", Tool: "search"})
	a, err := e.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := e.Schema(); a != b {
		t.Error("the schema was compiled twice")
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := filled(t)
		ctx, cancel := context.WithCancel(t.Context())
		w := c.Watch(ctx)
		c.Remove("fs")
		c.Remove("github")
		<-w
		select {
		case <-w:
			t.Error("two changes were signalled twice, though nothing was received in between")
		default:
		}
		cancel()
		synctest.Wait()
		c.Configure(Settings{Rules: nil}, nil)
		select {
		case <-w:
			t.Error("a watcher that has ended was signalled")
		default:
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	c := filled(t)
	defs := definitions(t, "fs", "a", "b")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				c.Put(Server{Name: "fs"}, defs)
				c.Snapshot().Resolve(&tool.Local, "", "fs:a")
			}
		})
	}
	wg.Wait()
	if got := c.Snapshot().Len(); got != 5 {
		t.Errorf("%d tools, want 5", got)
	}
}

func BenchmarkResolve(b *testing.B) {
	c := New(nil, nil)
	for s := range 100 {
		var names []string
		for i := range 30 {
			names = append(names, fmt.Sprintf("tool_%d", i))
		}
		server := fmt.Sprintf("server%d", s)
		c.Put(Server{Name: server}, definitions(b, server, names...))
	}
	for b.Loop() {
		if _, err := c.Snapshot().Resolve(&tool.Local, "server50", "tool_7"); err != nil {
			b.Fatal(err)
		}
	}
}

func TestOwnGuidanceOmitsGeneratedText(t *testing.T) {
	for guidance, want := range map[tool.Guidance]string{
		{Text: "Ask before you delete.", Source: tool.FromPrompt}: "Ask before you delete.",
		{Text: "Tools of x: ask.", Source: tool.FromInstructions}: "Tools of x: ask.",
		{Text: "Tools of x:\n- a", Source: tool.Generated}:        "",
		{}: "",
	} {
		if got := (&Server{Name: "x", Guidance: guidance}).OwnGuidance(&tool.Local); got != want {
			t.Errorf("of %q: %q, want %q", guidance, got, want)
		}
	}
}

func TestPromptGuidanceRequiresRightToPrompt(t *testing.T) {
	prompted := &Server{Name: "x", Guidance: tool.Guidance{Text: "from a prompt", Source: tool.FromPrompt}}
	instructed := &Server{Name: "x", Guidance: tool.Guidance{Text: "for everyone", Source: tool.FromInstructions}}
	limited, granted := tool.Caller{ID: "l", Tools: []string{"x:a"}}, tool.Caller{ID: "g", Tools: []string{"x:a", "x:prompts/*"}}
	for _, tt := range []struct {
		server *Server
		caller tool.Caller
		want   string
	}{
		{prompted, limited, ""}, {prompted, granted, "from a prompt"}, {prompted, tool.Local, "from a prompt"}, {instructed, limited, "for everyone"},
	} {
		if got := tt.server.OwnGuidance(&tt.caller); got != tt.want {
			t.Errorf("%s gets %q, want %q", tt.caller.ID, got, tt.want)
		}
		if got := tt.server.GuidanceFor(&tt.caller); got != tt.want {
			t.Errorf("%s gets %q, want %q", tt.caller.ID, got, tt.want)
		}
	}
}

func TestConfigureReplacesAllSettingsInOneSnapshot(t *testing.T) {
	off := false
	c := New(nil, nil)
	c.Put(Server{Name: "fs", Instructions: "Reads and writes."}, definitions(t, "fs", "read", "write"))
	c.Put(Server{Name: "old"}, definitions(t, "old", "x"))
	version := c.Snapshot().Version
	reviewed := false
	c.Configure(Settings{
		Rules: []ToolRule{{Pattern: []string{"fs:read"}, Enabled: &off}, {Pattern: []string{"*"}, Tags: []string{"ruled"}}},
		Servers: map[string]ServerSettings{"fs": {Tags: []string{"files"}, Allows: func(name string) bool { return name != "write" }},
			"new": {Description: "What is new."}},
	}, func() { reviewed = true })
	snap := c.Snapshot()
	if snap.Version != version+1 || !reviewed {
		t.Errorf("version %d after %d, reviewed=%v", snap.Version, version, reviewed)
	}
	fs := snap.Server("fs")
	if snap.Server("old") != nil || fs.EnabledTools() != 0 || fs.Description != "Reads and writes." || !slices.Equal(fs.Tools[0].Tags, []string{"files", "ruled"}) {
		t.Errorf("fs %+v, old %v", fs, snap.Server("old"))
	}
	c.Put(Server{Name: "old"}, definitions(t, "old", "x")) // an upstream that has not noticed yet that it was removed
	c.Put(Server{Name: "new", Description: "stale", Instructions: "Own words."}, definitions(t, "new", "y"))
	snap = c.Snapshot()
	if snap.Server("old") != nil || snap.Server("new").Description != "What is new." {
		t.Errorf("old %v, new %+v", snap.Server("old"), snap.Server("new"))
	}
}

func TestSchemaWarningSurvivesNewRules(t *testing.T) {
	c := New(nil, nil)
	d, err := tool.ParseDefinition("fs", json.RawMessage(`{"name":"read","inputSchema":{"type":"object","properties":{"a":{"pattern":"("}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	c.Put(Server{Name: "fs"}, []tool.Definition{d})
	if _, err := c.Snapshot().Lookup(d.Name).Schema(); err == nil {
		t.Fatal("the schema compiles")
	}
	for range 2 {
		if len(c.Snapshot().Lookup(d.Name).Warnings()) != 1 {
			t.Error("no warning about the schema")
		}
		c.Configure(Settings{}, nil)
	}
}
