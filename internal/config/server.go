package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/upstream"
)

// alias is another program's name for one of our keys of a server.
type alias struct {
	to  string // our key; "section.key" for a key in a section
	doc string // the description in the schema
}

// serverAliases are the keys that are synonyms of ours.
var serverAliases = map[string]alias{
	"serverUrl":      {"url", "Windsurf's name for url."},
	"httpUrl":        {"url", "Gemini CLI's name for the url of a streamable HTTP server."},
	"uri":            {"url", "Another name for url."},
	"endpoint":       {"url", "Another name for url."},
	"environment":    {"env", "Another name for env."},
	"envs":           {"env", "Another name for env."},
	"http_headers":   {"headers", "Codex's name for headers."},
	"includeTools":   {"tool_configuration.allowed_tools", "Gemini CLI's list of enabled tools."},
	"enabledTools":   {"tool_configuration.allowed_tools", "A list of enabled tools."},
	"enabled_tools":  {"tool_configuration.allowed_tools", "Codex's list of enabled tools."},
	"allowedTools":   {"tool_configuration.allowed_tools", "A list of enabled tools."},
	"tools":          {"tool_configuration.allowed_tools", "Copilot's list of enabled tools."},
	"excludeTools":   {"tool_configuration.excluded_tools", "Gemini CLI's list of disabled tools."},
	"disabledTools":  {"tool_configuration.excluded_tools", "Windsurf's list of disabled tools."},
	"disabled_tools": {"tool_configuration.excluded_tools", "Codex's list of disabled tools."},
	"displayName":    {"description", "The display name of a backend."},
	"title":          {"description", "The display name of a server."},
	"workingDir":     {"cwd", "Another name for cwd."},
	"cwdPath":        {"cwd", "Another name for cwd."},
}

const noApprovalNote = "Junctor asks before a call only if a rule in toolRules has approval: ask, so this is not needed"

// foreignServer maps the keys of other programs that have no effect in Junctor
// to the note for the user.
var foreignServer = map[string]string{
	"alwaysAllow":                  noApprovalNote,
	"autoApprove":                  noApprovalNote,
	"autoAllow":                    noApprovalNote,
	"alwaysAllowedTools":           noApprovalNote,
	"trust":                        noApprovalNote,
	"gallery":                      "is a setting of VS Code and has no effect here",
	"dev":                          "is a setting of VS Code and has no effect here",
	"sandbox":                      "is a setting of VS Code and has no effect here",
	"sandboxEnabled":               "is a setting of VS Code and has no effect here",
	"version":                      "has no effect here",
	"icon":                         "has no effect here",
	"iconPath":                     "has no effect here",
	"fromGalleryId":                "has no effect here",
	"registry":                     "has no effect here",
	"source":                       "is a setting of Zed and has no effect here",
	"settings":                     "is a setting of Zed and has no effect here; give the server its settings in env or args",
	"watchPaths":                   "is a setting of Roo Code and has no effect here",
	"authProviderType":             "is a setting of Gemini CLI and has no effect here; use oauth",
	"targetAudience":               "is a setting of Gemini CLI and has no effect here; use oauth",
	"targetServiceAccount":         "is a setting of Gemini CLI and has no effect here; use oauth",
	"headersHelper":                "is a setting of Claude Code and has no effect here; use headers with ${VAR}",
	"required":                     "is a setting of Codex and has no effect here: servers never wait for each other to start",
	"supports_parallel_tool_calls": "is a setting of Codex and has no effect here",
	"faviconUrl":                   "has no effect here",
	"requestOptions":               "is a setting of Continue; write headers beside url",
}

// normalise converts a server in the format of any program to our own keys. It
// changes names and shapes but does not expand variables.
func normalise(e entry, report func(*node, string), note func(key string, n *node, msg string)) {
	n := e.node
	if t := n.get("transport"); t != nil && t.kind == object {
		n.take("transport")
		n.addMissing(t)
	}
	normalizeCommand(n, report)
	normalizeName(e, report, note)

	for _, m := range slices.Clone(n.members) {
		if msg, known := foreignServer[m.name]; known || isComment(m.name) {
			if v := n.take(m.name); v != nil && msg != "" {
				note(m.name, v, msg)
			}
			continue
		}
		if a, known := serverAliases[m.name]; known {
			if v := n.take(m.name); v != nil {
				if m.name == "httpUrl" && !n.has("type", "transport") {
					n.put("transport", v.derived(str, string(upstream.HTTP)))
				}
				rename(n, v, a.to, report)
			}
		}
	}
	normalizeTransport(n, report)
	normalizeEnabled(n, report)
	normalizeTimes(n, note)
	normalizeSecrets(n, report)
	normalizeOAuth(n, report, note)
	if tc := n.get("tool_configuration"); tc != nil {
		asLists(tc, "allowed_tools", "excluded_tools")
		if list := tc.get("allowed_tools"); list != nil {
			if all, ok := list.strings(); ok && len(all) == 1 && all[0] == "*" {
				tc.take("allowed_tools") // Copilot writes ["*"] for all tools
			}
		}
	}
	asLists(n, "tags", "inheritEnv")
	if e.container == "backends" && !n.has("inheritEnv") {
		all := n.derived(array, "")
		all.source = "default for backends"
		all.elems = []*node{n.derived(str, "*")}
		n.put("inheritEnv", all)
	}
}

// rename adds v to n under our own key, which may be in a section. If the key
// exists already, it reports a contradiction, except for the description.
func rename(n, v *node, to string, report func(*node, string)) {
	if v == nil {
		return
	}
	section, key, inner := strings.Cut(to, ".")
	if inner {
		n = n.section(section, v)
	} else {
		key = section
	}
	if n.kind != object {
		return // the wrong type is reported elsewhere
	}
	if other := n.get(key); other == nil {
		n.put(key, v)
	} else if key != "description" {
		report(v, fmt.Sprintf("contradicts %s; keep one of them", other.path))
	}
}

// normalizeCommand converts a command that is a list (opencode) or an object
// (Zed).
func normalizeCommand(n *node, report func(*node, string)) {
	c := n.get("command")
	switch {
	case c == nil:
	case c.kind == array:
		n.take("command")
		if len(c.elems) == 0 {
			report(c, "is an empty list; the first element must be the program")
			return
		}
		n.put("command", c.elems[0])
		args := c.derived(array, "")
		args.elems = c.elems[1:]
		if more := n.take("args"); more != nil && more.kind == array {
			args.elems = append(args.elems[:len(args.elems):len(args.elems)], more.elems...)
		}
		if len(args.elems) > 0 {
			n.put("args", args)
		}
	case c.kind == object:
		n.take("command")
		if path := c.take("path"); path != nil {
			n.put("command", path)
		}
		n.addMissing(c)
	}
}

// normalizeName removes the name and the id inside an entry, which has a name
// already.
func normalizeName(e entry, report func(*node, string), note func(string, *node, string)) {
	if id := e.node.take("id"); id != nil && (id.kind != str || id.text != e.name) {
		report(id, fmt.Sprintf("contradicts the server's name, %q; make them the same", e.name))
	}
	if name := e.node.take("name"); name != nil && (name.kind != str || name.text != e.name) {
		note("name", name, fmt.Sprintf("a server is known by its key, here %q", e.name))
	}
}

// transportWords are the names of transports in all formats. remote means that
// only a server with a url can have it.
var transportWords = map[string]struct {
	is     upstream.Transport
	remote bool
}{
	"stdio": {upstream.Stdio, false}, "local": {upstream.Stdio, false},
	"http": {upstream.HTTP, true}, "streamable": {upstream.HTTP, true}, "streamable-http": {upstream.HTTP, true},
	"streamableHttp": {upstream.HTTP, true}, "streamable_http": {upstream.HTTP, true}, "streamableHTTP": {upstream.HTTP, true},
	"url": {upstream.Auto, true}, "remote": {upstream.Auto, true},
	"sse":  {upstream.SSE, true},
	"auto": {upstream.Auto, false},
}

// normalizeTransport combines type and transport into one transport.
func normalizeTransport(n *node, report func(*node, string)) {
	typ, trans := n.take("type"), n.take("transport")
	if trans == nil {
		trans, typ = typ, nil
	}
	if trans == nil {
		return
	}
	for _, w := range []*node{trans, typ} {
		if w != nil && w.kind != str {
			report(w, fmt.Sprintf("is %s, must be a string such as \"stdio\" or \"http\"", w.kind))
			return
		}
	}
	word, known := transportWords[trans.text]
	if !known {
		n.put("transport", trans) // the error of the validation lists the valid names
		return
	}
	if typ != nil {
		other, ok := transportWords[typ.text]
		switch {
		case !ok:
			n.put("transport", typ)
			return
		case word.is != other.is && word.is != upstream.Auto && other.is != upstream.Auto,
			word.remote && other.is == upstream.Stdio, other.remote && word.is == upstream.Stdio:
			report(typ, fmt.Sprintf("%q contradicts the transport, %q; keep one of them", typ.text, trans.text))
			return
		case word.is == upstream.Auto:
			word = other
		}
	}
	if word.remote && word.is == upstream.Auto && !n.has("url") && n.has("command") {
		report(trans, fmt.Sprintf("%q needs a url, but command is set; remove this setting, or set url instead of command", trans.text))
		return
	}
	n.put("transport", trans.derived(str, string(word.is)))
}

func normalizeEnabled(n *node, report func(*node, string)) {
	d := n.take("disabled")
	if d == nil {
		return
	}
	if d.kind != boolean {
		report(d, fmt.Sprintf("is %s, must be true or false", d.kind))
		return
	}
	enabled := strconv.FormatBool(d.text != "true")
	if own := n.get("enabled"); own != nil {
		if own.kind == boolean && own.text != enabled {
			report(d, "contradicts enabled; keep one of them")
		}
		return
	}
	n.put("enabled", d.derived(boolean, enabled))
}

// maxSecondsTimeout is the largest timeout without a unit that is interpreted as
// seconds: the maximum of Cline. Larger values are milliseconds, as Gemini CLI
// writes them; no server has a timeout below four seconds.
const maxSecondsTimeout = 3600

// normalizeTimes converts times in other units to milliseconds.
func normalizeTimes(n *node, note func(string, *node, string)) {
	for _, t := range []struct {
		from, to string
		factor   float64 // 0 means that the unit must be guessed
	}{
		{"timeout", "timeoutMs", 0},
		{"tool_timeout_sec", "timeoutMs", 1000},
		{"networkTimeout", "timeoutMs", 0},
		{"connectionTimeout", "startTimeoutMs", 0},
		{"initTimeout", "startTimeoutMs", 0},
		{"startup_timeout_sec", "startTimeoutMs", 1000},
		{"startup_timeout_ms", "startTimeoutMs", 1},
	} {
		v := n.take(t.from)
		if v == nil {
			continue
		}
		num, err := strconv.ParseFloat(v.text, 64)
		if v.kind != number || err != nil || n.has(t.to) {
			if !n.has(t.to) {
				n.put(t.to, v) // the decoder reports the wrong type
			}
			continue
		}
		factor := t.factor
		if factor == 0 {
			factor = 1
			unit := "milliseconds"
			if num <= maxSecondsTimeout {
				factor, unit = 1000, "seconds"
			}
			note(t.from, v, fmt.Sprintf("has no unit and is read as %s; use %s to be explicit", unit, t.to))
		}
		ms := math.Round(num * factor)
		n.put(t.to, v.derived(number, strconv.FormatFloat(ms, 'f', -1, 64)))
		if ms > 600_000 && t.to == "timeoutMs" && !n.has("maxTimeoutMs") {
			n.put("maxTimeoutMs", v.derived(number, strconv.FormatFloat(ms, 'f', -1, 64)))
		}
	}
}

// normalizeSecrets converts the keys for secrets, in which Codex writes names of
// variables.
func normalizeSecrets(n *node, report func(*node, string)) {
	if v := n.take("bearer_token_env_var"); v != nil {
		rename(n, v.derived(str, "${"+v.text+"}"), "authorization_token", report)
	}
	rename(n, n.take("bearerToken"), "authorization_token", report)
	if vars := n.take("env_http_headers"); vars != nil && vars.kind == object {
		headers := n.section("headers", vars)
		for _, m := range vars.members {
			headers.put(m.name, m.value.derived(str, "${"+m.value.text+"}"))
		}
	}
	// Codex lists the names of variables to pass on.
	if v := n.take("env_vars"); v != nil && v.kind == array {
		env := n.section("env", v)
		for _, e := range v.elems {
			if e.kind == str && env.kind == object && !env.has(e.text) {
				env.put(e.text, e.derived(str, "${"+e.text+":-}"))
			}
		}
	}
}

// normalizeOAuth converts Cursor's auth, and the keys of Claude Code's and
// Gemini CLI's oauth that differ from ours.
func normalizeOAuth(n *node, report func(*node, string), note func(string, *node, string)) {
	if a := n.take("auth"); a != nil {
		for from, to := range map[string]string{"CLIENT_ID": "clientId", "CLIENT_SECRET": "clientSecret"} {
			if v := a.take(from); v != nil {
				a.put(to, v)
			}
		}
		rename(n, a, "oauth", report)
	}
	o := n.get("oauth")
	if o == nil {
		return
	}
	if o.kind == boolean {
		// true is the default, and false cannot turn off the login of a server
		// that requires one.
		n.take("oauth")
		note("oauth", o, "has no effect as a boolean: Junctor detects whether a server requires a sign-in; set oauth to an object to configure the login")
		return
	}
	for _, name := range []string{"enabled", "audiences", "tokenParamName", "registrationUrl", "authServerMetadataUrl"} {
		if v := o.take(name); v != nil && name != "enabled" {
			note("oauth."+name, v, "has no effect here: Junctor uses the server's metadata")
		}
	}
	if s := o.get("scopes"); s != nil && s.kind == str {
		o.take("scopes")
		list := s.derived(array, "")
		for _, word := range strings.Fields(strings.ReplaceAll(s.text, ",", " ")) {
			list.elems = append(list.elems, s.derived(str, word))
		}
		o.put("scopes", list)
	}
}
