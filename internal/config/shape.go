package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"junctor/internal/tool"
)

// containers are the keys that contain servers, the usual one first. The value
// of each is a map by name or an array of entries with a name.
var containers = []string{"mcpServers", "servers", "backends", "context_servers", "mcp_servers"}

// entry is one server of the file.
type entry struct {
	name      string
	known     string // the name in the gateway; see assignNames
	node      *node
	container string // "" for the array that is the whole file
	inMap     bool
}

// entries removes the servers from the tree, whatever its shape, and returns
// them and an object with everything else.
func entries(root *node, report func(*node, string)) (all []entry, rest *node) {
	if root.kind == array {
		return inArray(root, "", report), &node{kind: object, offset: root.offset, keyAt: root.offset}
	}
	if root.kind != object {
		report(root, fmt.Sprintf("is %s, must be an object with mcpServers", root.kind))
		return nil, &node{kind: object}
	}
	if m := root.get("mcp"); m != nil && m.kind == object && m.has("servers", "inputs") {
		// VS Code's settings.json keeps the whole of mcp.json under "mcp".
		root.take("mcp")
		root.addMissing(m)
	}
	for _, name := range containers {
		c := root.take(name)
		switch {
		case c == nil:
		case c.kind == object:
			for _, m := range c.members {
				all = append(all, entry{name: m.name, node: m.value, container: name, inMap: true})
			}
		case c.kind == array:
			all = append(all, inArray(c, name, report)...)
		default:
			report(c, fmt.Sprintf("is %s, must be an object of servers by name", c.kind))
		}
	}
	return all, root
}

func inArray(list *node, container string, report func(*node, string)) (all []entry) {
	for _, e := range list.elems {
		if e.kind != object {
			report(e, fmt.Sprintf("is %s, must be an object that describes a server", e.kind))
			continue
		}
		name := e.get("name")
		if name == nil || container == "backends" && e.has("id") {
			name = e.get("id")
		}
		switch {
		case name == nil:
			report(e, "has no name; add one, such as \"name\": \"github\"")
		case name.kind != str:
			report(name, fmt.Sprintf("is %s, must be a string", name.kind))
		default:
			all = append(all, entry{name: name.text, node: e, container: container})
		}
	}
	return all
}

// assignNames sets the name of each server in the gateway: its own name or, in a
// map, a legal one derived from it, because other programs allow any name there.
// Names in an array must be legal, because their authors use them to address the
// servers.
func assignNames(all []entry, note func(key string, n *node, msg string)) []entry {
	for i, e := range all {
		all[i].known = e.name
		if good := LegalName(e.name); e.inMap && !tool.ValidServer(e.name) && good != "" {
			all[i].known = good
			note(e.name, e.node.atKey(), fmt.Sprintf("%q is not a valid server name; it is called %q here", e.name, good))
		}
	}
	return all
}

// dropDuplicates keeps only the first server of each name.
func dropDuplicates(all []entry, src *source, report func(*node, string)) (unique []entry) {
	first := map[string]*node{}
	for _, e := range all {
		if before, twice := first[e.known]; twice {
			line := ""
			if src != nil {
				line = fmt.Sprintf("; the other is on line %d", src.at(before.keyAt, "", "").Line)
			}
			report(e.node.atKey(), fmt.Sprintf("there is another server named %q%s; rename or remove one", e.known, line))
			continue
		}
		first[e.known] = e.node
		unique = append(unique, e)
	}
	return unique
}

// apiKeys are the keys at the top level, in options that seed clients of
// agentify send, that are used as variables.
var apiKeys = []string{"OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY", "XAI_API_KEY"}

// foreignTop maps the top-level keys of other programs to the note for the user,
// if any.
var foreignTop = map[string]string{
	"$schema":                  "",
	"inputs":                   "Junctor does not prompt for inputs; use ${VAR} instead of ${input:…}",
	"sandbox":                  "is a setting of VS Code and has no effect here",
	"gallery":                  "is a setting of VS Code and has no effect here",
	"globalShortcut":           "is a setting of Claude Desktop and has no effect here",
	"preferences":              "is a setting of Claude Desktop and has no effect here",
	"isUsingBuiltInNodeForMcp": "is a setting of Claude Desktop and has no effect here",
	"enabledPlugins":           "is a setting of Claude Code and has no effect here",
	"version":                  "has no effect here",
}

// normalizeTop converts the top-level keys of other programs to our own.
func normalizeTop(root *node, x *expansion, report func(*node, string), note func(key string, n *node, msg string)) {
	if c := root.get("chat"); c != nil {
		if n := c.take("approvalTimeoutMs"); n != nil {
			note("chat.approvalTimeoutMs", n, "is now approval.timeoutMs, which applies to all clients; rename it")
			rename(root, n, "approval.timeoutMs", report)
		}
	}
	rename(root, root.take("logLevel"), "log.level", report)
	rename(root, root.take("DEBUG_PORT"), "debugPort", report)

	for _, name := range apiKeys {
		switch n := root.take(name); {
		case n == nil:
		case n.kind != str:
			report(n, fmt.Sprintf("is %s, must be a string", n.kind))
		default:
			x.expandTree(n, report, func(n *node, name string) { report(n, fmt.Sprintf(unset, name)) })
			x.env.inFile[name] = n.value
			x.env.literalKey = x.env.literalKey || literal(n.text) != ""
		}
	}

	if d := root.get("discovery"); d != nil {
		if rules := d.take("toolRules"); rules != nil {
			if own := root.get("toolRules"); own != nil && own.kind == array && rules.kind == array {
				own.elems = append(own.elems, rules.elems...)
			} else if own != nil {
				report(rules, "contradicts toolRules at the top of the file; keep one of them")
			} else {
				root.put("toolRules", rules)
			}
		}
		if s := d.take("sources"); s != nil {
			note("discovery.sources", s, "servers come from mcpServers, or from \"junctor import\"; this has no effect")
		}
	}
	if profiles := root.get("profiles"); profiles != nil {
		for _, m := range profiles.members {
			asLists(m.value, "tags")
		}
	}
	if rules := root.get("toolRules"); rules != nil {
		for _, r := range rules.elems {
			asLists(r, "pattern", "tags")
			asLists(r.get("when"), "readOnly", "destructive", "idempotent", "openWorld", "tags")
		}
	}
	root.wrap("cors", array, "origins")
	asLists(root.get("cors"), "origins")
	root.wrap("log", str, "level")
	root.wrap("llm", object, "")

	ours := fieldsOf(reflect.TypeFor[Config]())
	for _, m := range slices.Clone(root.members) {
		msg, known := foreignTop[m.name]
		switch {
		case known || isComment(m.name):
			if root.take(m.name); msg != "" {
				note(m.name, m.value, msg)
			}
		case strings.Contains(m.name, "."):
			// VS Code's settings.json: editor.fontSize and the like.
			root.take(m.name)
			note("settings", m.value, "keys with a dot are settings of VS Code and have no effect here")
		case ours[m.name].Name == "" && looksLikeServer(m.value):
			root.take(m.name)
			report(m.value.atKey(), fmt.Sprintf(`looks like a server; servers belong under "mcpServers": {"mcpServers": {%q: …}}`, m.name))
		}
	}
}

// isComment reports whether a key is used as a comment in plain JSON.
func isComment(name string) bool {
	return strings.HasPrefix(name, "_") || strings.HasPrefix(name, "//") || strings.HasPrefix(name, "#") || name == "comment"
}

func looksLikeServer(n *node) bool {
	return n.kind == object && n.has("command", "url", "serverUrl", "httpUrl")
}

// asLists replaces a single string under each of the keys by a list of it.
func asLists(n *node, keys ...string) {
	if n != nil {
		for _, key := range keys {
			n.wrap(key, str, "")
		}
	}
}
