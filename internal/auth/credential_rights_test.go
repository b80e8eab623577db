package auth

import (
	"reflect"
	"testing"
	"time"

	"junctor/internal/tool"
)

// TestSameRights changes every field of a caller, so that it fails for a new
// field that sameRights does not compare.
func TestSameRights(t *testing.T) {
	full := func() tool.Caller {
		return tool.Caller{
			ID: "a", Name: "b", Admin: true, Servers: []string{"s"}, Tools: []string{"t"}, Chat: true, TokensPerDay: 3,
			Grants: []tool.Grant{{Servers: []string{"s"}, Tools: []string{"t"}}}, Rate: tool.Rate{Calls: 1, Per: time.Second},
			Profiles: tool.Profiles{tool.UnknownProfile("p")},
		}
	}
	if !sameRights(full(), full()) || !sameRights(tool.Caller{}, tool.Caller{}) {
		t.Error("equal callers differ")
	}
	kind := reflect.TypeFor[tool.Caller]()
	for i := range kind.NumField() {
		c := full()
		reflect.ValueOf(&c).Elem().Field(i).SetZero()
		if name := kind.Field(i).Name; sameRights(c, full()) != (name == "Name") || sameRights(full(), c) != (name == "Name") {
			t.Errorf("without %s: %v", name, sameRights(c, full()))
		}
		if reflect.ValueOf(full()).Field(i).IsZero() {
			t.Errorf("this test does not set %s", kind.Field(i).Name)
		}
	}
	for name, change := range map[string]func(*tool.Caller){
		"no servers":       func(c *tool.Caller) { c.Servers = []string{} },
		"other tools":      func(c *tool.Caller) { c.Tools = []string{"u"} },
		"no grants":        func(c *tool.Caller) { c.Grants = []tool.Grant{} },
		"grant of all":     func(c *tool.Caller) { c.Grants[0].Tools = nil },
		"grant of nothing": func(c *tool.Caller) { c.Grants[0].Servers = []string{} },
		"other profile":    func(c *tool.Caller) { c.Profiles = tool.Profiles{tool.UnknownProfile("q")} },
		"grant of profile": func(c *tool.Caller) { c.Grants[0].Profiles = tool.Profiles{tool.UnknownProfile("q")} },
		"other rate":       func(c *tool.Caller) { c.Rate.Per = time.Hour },
	} {
		c := full()
		change(&c)
		if sameRights(c, full()) {
			t.Errorf("%s: the same rights", name)
		}
	}
	if sameRights(tool.Caller{Servers: []string{}}, tool.Caller{}) {
		t.Error("no servers are all servers")
	}
}
