package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"junctor/internal/tool"
)

func define(t testing.TB, server, raw string) tool.Definition {
	t.Helper()
	d, err := tool.ParseDefinition(server, json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRulesByAnnotation checks that one rule can require approval for all tools
// that are not read-only, and that a server's annotations cannot relax any rule.
func TestRulesByAnnotation(t *testing.T) {
	yes := true
	rules := []ToolRule{
		{Pattern: []string{"fs:*"}, Tags: []string{"files"}},
		{When: &Condition{ReadOnly: []Hint{No, Unknown}}, Approval: AskApproval},
		{When: &Condition{Destructive: []Hint{Yes}, Tags: []string{"files"}}, Enabled: new(false)},
		{Pattern: []string{"git:*"}, When: &Condition{OpenWorld: []Hint{No}}, Approval: AutoApproval, Tags: []string{"local"}},
		// Refused by Validate, and without effect even if they are used.
		{When: &Condition{ReadOnly: []Hint{Yes}}, Enabled: &yes, Approval: AutoApproval, Tags: []string{"trusted"}},
		{Pattern: []string{"*:list"}, When: &Condition{ReadOnly: []Hint{Yes}}, Approval: AutoApproval},
	}
	for i, r := range rules {
		if err := r.Validate(); (err != nil) != (i >= 4) {
			t.Errorf("rule %d: %v", i, err)
		}
	}
	rules = append([]ToolRule{{Pattern: []string{"*:list"}, Approval: AskApproval}, {Pattern: []string{"fs:off"}, Enabled: new(false)}}, rules...)
	c := New(rules, nil)
	for _, server := range []string{"fs", "git"} {
		var defs []tool.Definition
		for name, annotations := range map[string]string{
			"list": `{"readOnlyHint":true}`, "off": `{"readOnlyHint":true}`, "read": `{"readOnlyHint":true}`, "write": `{"readOnlyHint":false}`,
			"plain": `{}`, "erase": `{"readOnlyHint":false,"destructiveHint":true}`, "local": `{"openWorldHint":false}`,
		} {
			defs = append(defs, define(t, server, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"annotations":%s}`, name, annotations)))
		}
		c.Put(Server{Name: server}, defs)
	}
	for name, want := range map[string]string{
		"fs:list": "true ask files", "fs:off": "false  files", "fs:read": "true  files", "fs:write": "true ask files", "fs:plain": "true ask files",
		"fs:erase": "false ask files", "fs:local": "true ask files", "git:erase": "true ask ", "git:local": "true auto local", "git:read": "true  ",
	} {
		n, _ := tool.ParseName(name)
		e := c.Snapshot().Lookup(n)
		if got := fmt.Sprintf("%v %s %s", e.Enabled, e.Approval, strings.Join(e.Tags, ",")); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

const issueTool = `{"name":"create_issue","title":"Create","description":"Bad text","inputSchema":{"type":"object","properties":{
	"repo":{"type":"string"},"token":{"type":"string"},"limit":{"type":"integer"},"title":{"type":"string"}},"required":["repo","token","limit","title"],"additionalProperties":false}}`

func TestOverrides(t *testing.T) {
	c := New([]ToolRule{
		{Pattern: []string{"github:*"}, Arguments: map[string]Argument{"token": {Fixed: json.RawMessage(`"x"`)}}},
		{Pattern: []string{"github:create_issue"}, Name: "open_ticket", Title: "Open a ticket", Description: "Opens a ticket.", Arguments: map[string]Argument{
			"repo": {Fixed: json.RawMessage(`{"a":[1]}`)}, "limit": {Default: json.RawMessage(`20`)}, "secret": {Hidden: true},
		}},
	}, nil)
	original := define(t, "github", issueTool)
	c.Put(Server{Name: "github"}, []tool.Definition{original, define(t, "github", `{"name":"other","inputSchema":{"type":"object"}}`)})
	visible := tool.Name{Server: "github", Tool: "open_ticket"}
	check := func(snap *Snapshot) {
		t.Helper()
		e := snap.Lookup(visible)
		if e == nil || snap.Original(original.Name) != e || snap.Lookup(original.Name) != nil || snap.Original(visible) != nil {
			t.Fatalf("the renamed tool is not found: %v", e)
		}
		if e.Title != "Open a ticket" || e.Description != "Opens a ticket." || e.Fingerprint() != original.Fingerprint() || !e.Overridden() {
			t.Errorf("%+v", e)
		}
		var schema struct {
			Properties map[string]map[string]any
			Required   []string
		}
		if err := json.Unmarshal(e.InputSchema, &schema); err != nil || len(schema.Properties) != 2 || schema.Properties["limit"]["default"] != 20.0 || strings.Join(schema.Required, " ") != "title" {
			t.Errorf("schema %s: %v", e.InputSchema, err)
		}
		if !strings.Contains(string(e.Raw), `"name":"open_ticket"`) || strings.Contains(string(e.Raw), "token") {
			t.Errorf("raw definition %s", e.Raw)
		}
	}
	check(c.Snapshot())
	c.Refresh()
	check(c.Snapshot())
	e := c.Snapshot().Lookup(visible)
	for given, want := range map[string]string{
		`{"title":"a"}`:                            `{"limit":20,"repo":{"a":[1]},"title":"a","token":"x"}`,
		`{"title":"a","limit":1}`:                  `{"limit":1,"repo":{"a":[1]},"title":"a","token":"x"}`,
		``:                                         `{"limit":20,"repo":{"a":[1]},"token":"x"}`,
		`null`:                                     `{"limit":20,"repo":{"a":[1]},"token":"x"}`,
		`{"title":"a","token":"mine"}`:             "ERROR",
		`{"title":"a","TOKEN":"mine"}`:             "ERROR",
		`{"title":"a","t\u006fken":"mine"}`:        "ERROR",
		`{"title":"a","secret":1}`:                 "ERROR",
		`{"repo":"a","repo":"b","title":"a"}`:      "ERROR",
		`{"title":"a","limit":1,"limit":{"x":[]}}`: `{"limit":{"x":[]},"repo":{"a":[1]},"title":"a","token":"x"}`,
	} {
		got, err := e.Complete(json.RawMessage(given))
		if err != nil {
			got = json.RawMessage("ERROR")
		}
		if string(got) != want || err != nil && tool.KindOf(err) != tool.InvalidArguments {
			t.Errorf("%s becomes %s (%v), want %s", given, got, err, want)
		}
	}
	// Permissions apply to the original name.
	if e.UsableBy(&tool.Caller{Tools: []string{"github:open_ticket"}}) || !e.UsableBy(&tool.Caller{Tools: []string{"github:create_issue"}}) {
		t.Error("a key's globs go by the new name")
	}
	if got := c.TagsOf(original.Name); got != nil {
		t.Errorf("tags %v", got)
	}
}

// TestOverrideTakesNoNameOfAnotherTool checks that a rule cannot assign the
// name of another tool or one that a rule has already assigned.
func TestOverrideTakesNoNameOfAnotherTool(t *testing.T) {
	rename := func(from, to string) ToolRule { return ToolRule{Pattern: []string{"s:" + from}, Name: to} }
	c := New([]ToolRule{rename("a", "b"), rename("c", "new"), rename("d", "new"), rename("e", "e")}, nil)
	c.Put(Server{Name: "s"}, definitions(t, "s", "a", "b", "c", "d", "e"))
	var names []string
	for _, e := range c.Snapshot().Server("s").Tools {
		names = append(names, e.Name.Tool)
		if (e.Original.Name.Tool == "a" || e.Original.Name.Tool == "d") != (len(e.Warnings()) == 1) {
			t.Errorf("%s: warnings %q", e.Original.Name, e.Warnings())
		}
	}
	if got := strings.Join(names, " "); got != "a b new d e" || c.Snapshot().Len() != 5 {
		t.Errorf("names %s", got)
	}
}

func TestOverrideRulesAreChecked(t *testing.T) {
	for name, r := range map[string]ToolRule{
		"name for many":     {Pattern: []string{"github:*"}, Name: "x"},
		"name for two":      {Pattern: []string{"github:a", "github:b"}, Name: "x"},
		"name of nonsense":  {Pattern: []string{"github:a"}, Name: "a b"},
		"fixed and default": {Pattern: []string{"*"}, Arguments: map[string]Argument{"a": {Fixed: json.RawMessage(`1`), Default: json.RawMessage(`2`)}}},
		"no change":         {Pattern: []string{"*"}, Arguments: map[string]Argument{"a": {}}},
		"only exclusions":   {Pattern: []string{"!fs:*"}},
		"empty when":        {When: &Condition{}},
		"other word":        {When: &Condition{ReadOnly: []Hint{"maybe"}}},
		"nothing":           {},
	} {
		if r.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
