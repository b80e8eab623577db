package config

import (
	"cmp"
	"encoding/json"

	"github.com/tailscale/hujson"
)

// ServersIn returns, by name, the servers in JSON of any client: a whole file,
// its map of servers, or a single server with a name.
func ServersIn(raw json.RawMessage) map[string]json.RawMessage {
	plain, err := hujson.Standardize(raw)
	if err != nil {
		return nil
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(plain, &top) != nil {
		return nil
	}
	for _, key := range []string{"mcpServers", "servers", "context_servers", "mcp"} {
		if inner, ok := top[key]; ok {
			return ServersIn(inner)
		}
	}
	var one struct {
		Name, ID, Command, URL string
	}
	if json.Unmarshal(plain, &one) == nil && (one.Command != "" || one.URL != "") {
		name := cmp.Or(one.Name, one.ID)
		if name == "" {
			return nil
		}
		delete(top, "name")
		delete(top, "id")
		entry, err := json.Marshal(top)
		if err != nil {
			return nil
		}
		return map[string]json.RawMessage{name: entry}
	}
	for name, entry := range top {
		if len(entry) == 0 || entry[0] != '{' {
			delete(top, name) // not a server but a setting of the client
		}
	}
	return top
}
