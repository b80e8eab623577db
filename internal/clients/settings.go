package clients

import (
	"encoding/json"
	"slices"
	"strings"

	"junctor/internal/config"
	"junctor/internal/jsonedit"
)

// settings are the settings of servers outside of their entries in a client's
// file.
type settings struct {
	inputs   map[string]input // VS Code's inputs, by id
	allowed  []string         // the only servers that Gemini CLI uses; nil for all
	excluded []string         // the servers that Gemini CLI does not use
}

// input is a value that VS Code asks for when it starts a server.
type input struct {
	ID       string `json:"id"`
	Default  any    `json:"default"`
	Password bool   `json:"password"`
}

func settingsIn(c Client, f File, data []byte) settings {
	var s settings
	if f.Format != JSON {
		return s
	}
	read := func(into any, keys ...string) {
		if raw, ok := jsonedit.Get(data, keys...); ok {
			_ = json.Unmarshal(raw, into) // the client ignores values of another type, too
		}
	}
	if c.style == envColon {
		var inputs []input
		read(&inputs, append(slices.Clone(f.keys[:len(f.keys)-1]), "inputs")...)
		s.inputs = map[string]input{}
		for _, in := range inputs {
			s.inputs[in.ID] = in
		}
	}
	if c.ID == "gemini-cli" {
		read(&s.allowed, "allowMCPServers") // the older, ungrouped settings
		read(&s.excluded, "excludeMCPServers")
		read(&s.allowed, "mcp", "allowed")
		read(&s.excluded, "mcp", "excluded")
	}
	return s
}

// disable disables a server that its client does not use.
func (set settings) disable(server json.RawMessage, s *Server) (json.RawMessage, error) {
	has := func(list []string) bool { return slices.Contains(list, s.Original) }
	if has(set.excluded) || len(set.allowed) > 0 && !has(set.allowed) {
		var err error
		if server, err = jsonedit.Set(server, json.RawMessage("false"), "enabled"); err != nil {
			return nil, err
		}
	}
	if v, ok := member(server, "enabled"); ok && string(v) == "false" {
		s.Disabled = true
		s.Notes = append(s.Notes, "is disabled in the client and stays disabled")
	}
	return server, nil
}

// translate returns the replacement for a value that the client asks for: a
// variable, with the default if there is one. A default that is secret, or
// that cannot be part of a variable, is used literally.
func (in input) translate(id string, note func(string, ...any)) string {
	name := config.VariableName(id)
	value, _ := in.Default.(string)
	switch {
	case value == "":
		note("asks for %q when it starts; set the variable %s instead", id, name)
		return "${" + name + "}"
	case in.Password || strings.ContainsAny(value, "{}") || config.LooksSecret(id, value):
		note("asks for %q when it starts; its default is used", id)
		return strings.ReplaceAll(value, "${", "$${")
	}
	note("asks for %q when it starts; its default is used unless the variable %s is set", id, name)
	return "${" + name + ":-" + value + "}"
}
