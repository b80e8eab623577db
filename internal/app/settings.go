package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tailscale/hujson"

	"junctor/internal/config"
	"junctor/internal/tool"
)

// settings lets administrators see and change the configuration file. What
// they change takes effect when the file is read again.
type settings struct{ app *App }

// Show returns what holds and where it is from.
func (s settings) Show() any {
	cfg := s.app.config.Load()
	return map[string]any{"place": cfg.Place(), "settings": cfg.Effective()}
}

// AddServers adds servers in any shape that clients write: a whole file, its
// map of servers, or one server with a name.
func (s settings) AddServers(raw json.RawMessage, replace bool) ([]string, error) {
	entries := serverEntries(raw)
	if len(entries) == 0 {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: `there is no server in it; send {"mcpServers": {"name": {"command": "npx", "args": ["…"]}}}`}
	}
	var edits []config.Edit
	names := slices.Sorted(maps.Keys(entries))
	for _, name := range names {
		if _, taken := s.app.config.Load().Server(name); taken && !replace {
			return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("there is a server named %q already", name)}
		}
		edits = append(edits, config.Set(name, entries[name]))
	}
	return names, s.edit(edits...)
}

// serverEntries finds the servers in what a person pasted.
func serverEntries(raw json.RawMessage) map[string]json.RawMessage {
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
			return serverEntries(inner)
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
			delete(top, name) // a word of the client's own beside its servers
		}
	}
	return top
}

// SetEnabled turns a server on or off.
func (s settings) SetEnabled(name string, enabled bool) error {
	patch, err := json.Marshal(map[string]any{"enabled": enabled, "disabled": nil})
	if err != nil {
		return err
	}
	return s.edit(config.Merge(name, patch))
}

// RemoveServer takes a server out of the file.
func (s settings) RemoveServer(name string) error { return s.edit(config.Remove(name)) }

func (s settings) edit(edits ...config.Edit) error {
	_, err := config.Apply(s.app.opts.Reload, edits...)
	switch {
	case errors.Is(err, config.ErrNoServer):
		return &tool.Error{Kind: tool.ServerNotFound, Msg: "the server is not in the configuration file", Err: err}
	case err != nil:
		return err
	}
	if err := s.reload(); err != nil {
		return err
	}
	return s.app.edits.Publish(edits)
}

// reload puts the file into force at once, without waiting for its watcher.
func (s settings) reload() error {
	cfg, _, err := config.Load(s.app.opts.Reload)
	if err != nil {
		return err
	}
	s.app.apply(context.Background(), cfg)
	return nil
}
