package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"junctor/internal/telemetry"
)

// ordered is a JSON object that keeps the order of its members, so that the
// schema reads like the reference.
type ordered []pair

type pair struct {
	name  string
	value any
}

// MarshalJSON writes the members in order.
func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, v := range []any{p.name, p.value} {
			if j > 0 {
				b.WriteByte(':')
			}
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(v); err != nil {
				return nil, err
			}
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

const (
	// aVariable matches a string with a variable in it, which may stand for a
	// value of any plain type.
	aVariable = `\$\{.+\}`
	// aServerName matches the names of servers.
	aServerName = `^[A-Za-z0-9_-]{1,64}$`
	// applyKey says when a changed setting takes effect: live or restart. It is
	// at the top-level settings, and below where it differs. Other names of
	// settings do not have it.
	applyKey = "x-apply"
	// aComment matches the keys that people use for comments in plain JSON.
	aComment = `^(_|//|#|comment$)`
)

// generateSchema returns the JSON Schema (2020-12) of the file, indented. It is
// made from the structs that the loader fills, so it cannot disagree with them.
func generateSchema() []byte {
	var props ordered
	var server []field
	for _, f := range describeConfig() {
		switch f.key {
		case "mcpServers":
			server = f.fields
			props = append(props, pair{f.key, servers(f.doc)})
			props = append(props,
				pair{"servers", servers("Another name for mcpServers, used by VS Code.")},
				pair{"backends", servers("Another name for mcpServers: a list of backends with an id. Their programs inherit Junctor's whole environment unless inheritEnv is set.")},
				pair{"context_servers", servers("Another name for mcpServers, used by Zed.")},
				pair{"mcp_servers", servers("Another name for mcpServers, used by Codex.")},
				pair{"mcp", ordered{{"type", "object"}, {"description", "Contains the servers in VS Code's settings.json."}}})
		case "llm":
			one := f.object()
			props = append(props, pair{f.key, ordered{{"description", f.doc}, {"anyOf", []any{one, ordered{{"type", "array"}, {"items", one}}}}}})
		case "cors":
			props = append(props, pair{f.key, ordered{{"description", f.doc}, {"anyOf", []any{f.object(), stringList()}}}})
		case "log":
			level := f.fields[slices.IndexFunc(f.fields, func(f field) bool { return f.key == "level" })]
			props = append(props, pair{f.key, ordered{{"description", f.doc}, {"anyOf", []any{f.object(), level.schema()}}}})
		case "discovery":
			obj := f.schema()
			props = append(props, pair{f.key, addProperty(obj, "toolRules", ordered{{"$ref", "#/properties/toolRules"}, {"description", "The same as toolRules at the top level."}})})
		default:
			props = append(props, pair{f.key, f.schema()})
		}
		if last := &props[len(props)-1]; last.name == f.key { // not an alias
			last.value = append(last.value.(ordered), pair{applyKey, f.apply})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(foreignTop)) {
		if foreignTop[name] != "" {
			props = append(props, pair{name, ordered{{"description", "Another program's key: " + foreignTop[name] + "."}, {"deprecated", true}}})
		} else {
			props = append(props, pair{name, true})
		}
	}
	props = append(props,
		pair{"logLevel", ordered{{"$ref", "#/properties/log"}, {"description", "Another name for log.level."}}},
		pair{"DEBUG_PORT", ordered{{"type", []string{"integer", "null"}}, {"description", "Another name for debugPort."}}})
	for _, name := range apiKeys {
		props = append(props, pair{name, ordered{{"type", "string"}, {"description", "Used as the variable of this name if the environment does not have it."}}})
	}
	list := serverList()
	schema := ordered{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "Junctor configuration"},
		{"description", "The configuration of Junctor. Comments and trailing commas are allowed; ${VAR} and ${VAR:-default} are expanded in every string."},
		{"anyOf", []any{
			ordered{{"type", "object"}},
			list,
		}},
		{"properties", props},
		{"patternProperties", ordered{{aComment, true}}},
		{"additionalProperties", false},
		{"$defs", ordered{{"server", serverSchema(server)}}},
	}
	var out bytes.Buffer
	raw, err := schema.MarshalJSON()
	if err == nil {
		err = json.Indent(&out, raw, "", "  ")
	}
	if err != nil {
		panic("config: the schema cannot be written: " + err.Error()) // only strings and numbers are in it
	}
	out.WriteByte('\n')
	return out.Bytes()
}

func servers(doc string) ordered {
	byName := ordered{
		{"type", "object"},
		{"propertyNames", ordered{{"pattern", `[A-Za-z0-9_-]`}}}, // what else a name has is left out of it
		{"additionalProperties", ordered{{"$ref", "#/$defs/server"}}},
	}
	return ordered{{"description", doc}, {"anyOf", []any{byName, serverList()}}}
}

func serverList() ordered {
	return ordered{
		{"type", "array"},
		{"items", ordered{
			{"$ref", "#/$defs/server"},
			{"anyOf", []any{ordered{{"required", []string{"name"}}}, ordered{{"required", []string{"id"}}}}},
		}},
	}
}

// serverSchema is the schema of one server: our own keys, those that mean the
// same, and those that are known to mean nothing.
func serverSchema(fields []field) ordered {
	var props ordered
	own := map[string]field{}
	for _, f := range fields {
		own[f.key] = f
		s := f.schema()
		switch f.key {
		case "command":
			s = ordered{{"description", f.doc}, {"type", []string{"string", "array", "object"}}}
		case "authorization_token":
			s = ordered{{"description", f.doc}, {"type", []string{"string", "null"}}}
		case "transport":
			s = ordered{{"description", f.doc}, {"anyOf", []any{s, ordered{{"type", "object"}}}}}
		case "oauth":
			s = ordered{{"description", f.doc}, {"type", []string{"object", "boolean"}}}
			s = append(s, f.object()[2:]...)                 // without its description and type
			s[len(s)-1] = pair{"additionalProperties", true} // Gemini CLI and Claude Code have keys of their own
		}
		props = append(props, pair{f.key, s})
	}
	note := func(doc string, s ordered) ordered { return append(ordered{{"description", doc}}, s...) }
	props = append(props, pair{"id", note("The same as name.", ordered{{"type", "string"}, {"pattern", aServerName}})})
	for _, k := range convertedKeys() {
		props = append(props, pair{k.name, note(k.doc, k.schema)})
	}
	for _, name := range slices.Sorted(maps.Keys(serverAliases)) {
		a := serverAliases[name]
		props = append(props, pair{name, note(a.doc+" The same as "+a.to+".", aliasType(own, a.to))})
	}
	for _, name := range slices.Sorted(maps.Keys(foreignServer)) {
		props = append(props, pair{name, ordered{{"description", "Another program's key: " + foreignServer[name] + "."}, {"deprecated", true}}})
	}
	return ordered{
		{"type", "object"},
		{"description", "One MCP server: command starts a program, url connects to a running server."},
		{"properties", props},
		{"patternProperties", ordered{{aComment, true}}},
		{"additionalProperties", false},
	}
}

// convertedKey is a server's key of another program whose value is converted
// into that of ours.
type convertedKey struct {
	name, to, doc string
	schema        ordered
}

func convertedKeys() []convertedKey {
	text, number, object := ordered{{"type", "string"}}, ordered{{"type", "number"}}, ordered{{"type", "object"}}
	unclear := append(number[:1:1], pair{"deprecated", true})
	return []convertedKey{
		{"type", "transport", "The transport; url and remote mean auto.", words(transportNames())},
		{"disabled", "enabled", "The opposite of enabled.", ordered{{"type", "boolean"}}},
		{"envFile", "env", "A file with NAME=value lines for the program's environment. env takes precedence.", text},
		{"auth", "oauth", "Cursor's name for oauth.", object},
		{"timeout", "timeoutMs", "In seconds up to 3600, in milliseconds above that.", unclear},
		{"networkTimeout", "timeoutMs", "In seconds up to 3600, in milliseconds above that.", unclear},
		{"connectionTimeout", "startTimeoutMs", "In seconds up to 3600, in milliseconds above that.", unclear},
		{"initTimeout", "startTimeoutMs", "In seconds up to 3600, in milliseconds above that.", unclear},
		{"tool_timeout_sec", "timeoutMs", "Codex's call timeout, in seconds.", number},
		{"startup_timeout_sec", "startTimeoutMs", "Codex's start timeout, in seconds.", number},
		{"startup_timeout_ms", "startTimeoutMs", "Codex's start timeout, in milliseconds.", number},
		{"bearer_token_env_var", "authorization_token", "The name of a variable with the token, used by Codex.", text},
		{"bearerToken", "authorization_token", "The bearer token.", text},
		{"env_http_headers", "headers", "Codex's headers; each value is the name of a variable.", object},
		{"env_vars", "env", "Codex's names of variables to pass to the program.", stringList()},
	}
}

// aliasType is the type of the key that an alias stands for.
func aliasType(own map[string]field, to string) ordered {
	f, ok := own[to]
	if !ok { // inside tool_configuration: lists of tools
		return ordered{{"anyOf", []any{ordered{{"type", "string"}}, stringList()}}}
	}
	return f.schema()[1:]
}

// schema returns the schema of one setting, its description first.
func (f field) schema() ordered {
	s := ordered{{"description", f.doc}}
	switch {
	case f.typ.Kind() == reflect.Struct:
		return f.object()
	case len(f.words) > 0:
		s = append(s, words(f.words)...)
	case f.typ.Kind() == reflect.Bool:
		s = append(s, pair{"type", []string{"boolean", "string"}}, pair{"pattern", aVariable})
	case f.typ.Kind() == reflect.Int, f.typ.Kind() == reflect.Int64:
		s = append(s, pair{"type", []string{"integer", "string"}}, pair{"minimum", 0}, pair{"pattern", aVariable})
	case f.typ.Kind() == reflect.Float64:
		s = append(s, pair{"type", []string{"number", "string"}}, pair{"minimum", 0}, pair{"pattern", aVariable})
	case f.typ == rawValue: // any JSON
	case f.typ.Kind() == reflect.Map && f.fields != nil:
		s = append(s, pair{"type", "object"}, pair{"additionalProperties", f.object()[1:]})
	case f.typ.Kind() == reflect.Map && f.typ.Elem().Kind() == reflect.Slice:
		s = append(s, pair{"type", "object"}, pair{"additionalProperties", stringList()})
	case f.typ.Kind() == reflect.Map:
		s = append(s, pair{"type", "object"}, pair{"additionalProperties", ordered{{"type", "string"}}})
	case f.typ.Kind() == reflect.Slice && f.fields != nil:
		s = append(s, pair{"type", "array"}, pair{"items", f.object()[1:]})
	case f.oneOrAll:
		s = append(s, pair{"anyOf", []any{ordered{{"type", "string"}}, stringList()}})
	case f.typ.Kind() == reflect.Slice:
		s = append(s, stringList()...)
	default:
		s = append(s, pair{"type", "string"})
		if f.typ == reflect.TypeFor[telemetry.Secret]() {
			s = append(s, pair{"writeOnly", true})
		}
	}
	if f.def != nil {
		s = append(s, pair{"default", f.def})
	}
	return s
}

// object returns the schema of an object with the fields.
func (f field) object() ordered {
	var props ordered
	for _, inner := range f.fields {
		schema := inner.schema()
		if inner.apply != f.apply {
			schema = append(schema, pair{applyKey, inner.apply})
		}
		props = append(props, pair{inner.key, schema})
	}
	return ordered{
		{"description", f.doc},
		{"type", "object"},
		{"properties", props},
		{"patternProperties", ordered{{aComment, true}}},
		{"additionalProperties", false},
	}
}

func addProperty(s ordered, name string, value any) ordered {
	for i, p := range s {
		if props, ok := p.value.(ordered); ok && p.name == "properties" {
			s[i].value = append(props, pair{name, value}, pair{"sources", ordered{{"description", "Another program's key: it has no effect here."}, {"deprecated", true}}})
		}
	}
	return s
}

func words(list []string) ordered {
	return ordered{{"type", "string"}, {"anyOf", []any{ordered{{"enum", list}}, ordered{{"pattern", aVariable}}}}}
}

func stringList() ordered {
	return ordered{{"type", "array"}, {"items", ordered{{"type", "string"}}}}
}
