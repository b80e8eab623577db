package listing

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/search"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// states are upstreams in fixed states; awaited records what was waited for.
type states struct {
	list    []upstream.Status
	awaited []string
}

func (s *states) Status() []upstream.Status { return s.list }

func (s *states) StatusOf(server string) (upstream.Status, bool) {
	i := slices.IndexFunc(s.list, func(st upstream.Status) bool { return st.Name == server })
	if i < 0 {
		return upstream.Status{}, false
	}
	return s.list[i], true
}

func (s *states) Connecting() (names []string) {
	for _, st := range s.list {
		if st.State == upstream.Connecting {
			names = append(names, st.Name)
		}
	}
	return names
}

func (s *states) Await(_ context.Context, servers ...string) []string {
	s.awaited = append(s.awaited, servers...)
	return servers
}

func definitions(t *testing.T, server string, names ...string) (defs []tool.Definition) {
	t.Helper()
	for _, name := range names {
		d, err := tool.ParseDefinition(server, json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"To %s things","inputSchema":{"type":"object"}}`, name, name)))
		if err != nil {
			t.Fatal(err)
		}
		defs = append(defs, d)
	}
	return defs
}

// newService has the servers fs (read, write and the disabled erase) and git
// (commit), and two without known tools: slow, which is starting, and down.
func newService(t *testing.T) (*Service, *catalog.Catalog, *states) {
	t.Helper()
	off := false
	c := catalog.New([]catalog.ToolRule{
		{Pattern: []string{"fs:erase"}, Enabled: &off},
		{Pattern: []string{"*:read", "*:commit"}, Tags: []string{"common"}},
	}, nil)
	x := NewIndex(c)
	c.Put(catalog.Server{Name: "fs"}, definitions(t, "fs", "read", "write", "erase"))
	c.Put(catalog.Server{Name: "git"}, definitions(t, "git", "commit"))
	ups := &states{list: []upstream.Status{
		{Name: "down", State: upstream.Disconnected, Reason: "it exited"}, {Name: "fs", State: upstream.Connected},
		{Name: "git", State: upstream.Connecting}, {Name: "slow", State: upstream.Connecting},
	}}
	return New(Options{Catalog: c, Search: x, Upstreams: ups}), c, ups
}

var onlyFS = tool.Caller{ID: "key:x", Servers: []string{"fs"}}

func TestListAndSearchReturnTheSameTools(t *testing.T) {
	s, _, _ := newService(t)
	for name, tt := range map[string]struct {
		caller tool.Caller
		filter Filter
		want   []string
	}{
		"all that are enabled":            {tool.Local, Filter{}, []string{"fs:read", "fs:write", "git:commit"}},
		"with disabled ones":              {tool.Local, Filter{Disabled: true}, []string{"fs:erase", "fs:read", "fs:write", "git:commit"}},
		"limited caller":                  {onlyFS, Filter{}, []string{"fs:read", "fs:write"}},
		"by server":                       {tool.Local, Filter{Servers: []string{"git"}}, []string{"git:commit"}},
		"by tag":                          {tool.Local, Filter{Tags: []string{"common", "other"}}, []string{"fs:read", "git:commit"}},
		"by tool":                         {tool.Local, Filter{Tools: []string{"write"}}, []string{"fs:write"}},
		"by anything":                     {tool.Local, Filter{Keep: func(e *catalog.Entry) bool { return e.Name.Tool == "read" }}, []string{"fs:read"}},
		"server that is not the caller's": {onlyFS, Filter{Servers: []string{"git"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var listed, found []string
			for e := range s.List(s.Snapshot(), &tt.caller, tt.filter) {
				listed = append(listed, e.Name.String())
			}
			matches, err := s.Search(s.Snapshot(), &tt.caller, tt.filter, search.Query{Text: "read write erase commit things"})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range matches {
				found = append(found, m.Name.String())
			}
			slices.Sort(listed)
			slices.Sort(found)
			if !slices.Equal(listed, tt.want) || !slices.Equal(found, tt.want) {
				t.Errorf("listed %v, found %v, want %v", listed, found, tt.want)
			}
		})
	}
}

func TestAwaitOnlyServersWithoutKnownTools(t *testing.T) {
	s, _, ups := newService(t)
	if pending := s.Await(t.Context(), &tool.Local); !slices.Equal(pending, []string{"slow"}) {
		t.Errorf("pending %v", pending)
	}
	s.Await(t.Context(), &onlyFS)            // may not see slow
	s.Await(t.Context(), &tool.Local, "git") // has tools from before
	if !slices.Equal(ups.awaited, []string{"slow"}) {
		t.Errorf("awaited %v", ups.awaited)
	}
}

func TestServerStates(t *testing.T) {
	s, _, _ := newService(t)
	list := s.Servers(&onlyFS)
	if len(list) != 1 || list[0].Name != "fs" || list[0].Tools != 3 || list[0].Enabled != 2 || !list[0].Available() {
		t.Errorf("servers: %+v", list)
	}
	for server, want := range map[string]tool.Kind{"down": tool.Unavailable, "slow": tool.Unavailable, "nope": tool.ServerNotFound} {
		if err := s.CheckServer(s.Snapshot(), &tool.Local, server); tool.KindOf(err) != want {
			t.Errorf("%s: %v, want %s", server, err, want)
		}
	}
	if err := s.CheckServer(s.Snapshot(), &onlyFS, "git"); tool.KindOf(err) != tool.ServerNotFound {
		t.Errorf("a server that the caller may not see: %v", err)
	}
	if err := s.CheckServer(s.Snapshot(), &tool.Local, "git"); err != nil {
		t.Errorf("a server with tools from before: %v", err)
	}
}

func TestTranslationIsCachedPerCatalogueVersion(t *testing.T) {
	s, c, _ := newService(t)
	old, first := s.ProviderTools()
	if _, again := s.ProviderTools(); again != first {
		t.Error("the same version was translated twice")
	}
	c.Put(catalog.Server{Name: "new"}, definitions(t, "new", "t"))
	snap, tools := s.ProviderTools()
	if tools == first || snap == old {
		t.Error("a new version was not translated")
	}
	if _, ok := tools.Definition(tool.Name{Server: "new", Tool: "t"}); !ok {
		t.Error("the new tool is missing")
	}
}

func TestSearchPrefersToolsOfConnectedServers(t *testing.T) {
	s, c, ups := newService(t)
	c.Put(catalog.Server{Name: "down"}, definitions(t, "down", "read"))
	s.opts.Usage = func(tool.Name) search.Signal { return search.Signal{} }
	best := func() string {
		found, err := s.Search(s.Snapshot(), &tool.Local, Filter{Tools: []string{"read"}}, search.Query{Text: "read things"})
		if err != nil || len(found) != 2 {
			t.Fatal(found, err)
		}
		return found[0].Name.Server
	}
	if got := best(); got != "fs" {
		t.Errorf("first is the tool of %s", got)
	}
	ups.list[0].State, ups.list[1].State = upstream.Connected, upstream.Disconnected
	if got := best(); got != "down" {
		t.Errorf("first is the tool of %s", got)
	}
}

func TestSearchRanksDeprecatedToolsLower(t *testing.T) {
	s, c, _ := newService(t)
	s.opts.Usage = func(tool.Name) search.Signal { return search.Signal{} }
	put := func(description string) {
		var defs []tool.Definition
		for name, text := range map[string]string{"a": description + "List orders.", "b": "List orders."} {
			d, err := tool.ParseDefinition("old", json.RawMessage(`{"name":"`+name+`_list_orders","description":"`+text+`","inputSchema":{"type":"object"}}`))
			if err != nil {
				t.Fatal(err)
			}
			defs = append(defs, d)
		}
		c.Put(catalog.Server{Name: "old"}, defs)
	}
	for description, want := range map[string]string{"": "a_list_orders", "Deprecated.\\n\\n": "b_list_orders", "[DEPRECATED] ": "b_list_orders"} {
		put(description)
		found, err := s.Search(s.Snapshot(), &tool.Local, Filter{Servers: []string{"old"}}, search.Query{Text: "list orders"})
		if err != nil || len(found) != 2 || found[0].Name.Tool != want {
			t.Errorf("%q: %v, %v", description, found, err)
		}
	}
}
