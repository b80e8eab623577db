package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"junctor/docs"
	"junctor/internal/catalog"
	"junctor/internal/clients"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/jsonedit"
	"junctor/internal/tool"
)

// settings lets administrators read and change the configuration file. Changes
// take effect when the file is reloaded. They are serialized: no other change
// is made until one is applied and published to the other nodes.
type settings struct{ app *App }

// Show returns the effective settings with their sources, the file, and the
// settings that need a restart.
func (s settings) Show() (control.Configuration, error) {
	cfg := s.app.config.Load()
	shown := control.Configuration{Place: cfg.Place(), Settings: cfg.Effective(), Values: map[string]json.RawMessage{}, Restart: config.NeedRestart(s.app.opts.Config, cfg)}
	text, values, err := config.ReadFile(s.app.opts.Reload)
	if err != nil {
		return shown, err
	}
	for key, value := range values {
		if shown.Values[key], err = clients.HideSettingSecrets(key, value); err != nil {
			return shown, err
		}
	}
	text, err = clients.MaskFile(s.app.opts.Reload, text, values)
	shown.Text = s.app.opts.Redactor.String(string(text))
	return shown, err
}

// Schema returns the JSON Schema of the configuration file.
func (s settings) Schema() json.RawMessage { return docs.ConfigSchema }

// SetValues changes settings by key; null removes a setting from the file.
// Plain-text secrets are moved to the .env file next to it.
func (s settings) SetValues(values map[string]json.RawMessage) error {
	s.app.editing.Lock()
	defer s.app.editing.Unlock()
	_, old, err := config.ReadFile(s.app.opts.Reload)
	if err != nil {
		return err
	}
	keys := slices.Sorted(maps.Keys(values))
	plain := make([]json.RawMessage, len(keys))
	var wanted, edits, shared []config.Edit
	for i, key := range keys {
		path := strings.Split(key, ".")
		before := old[path[0]]
		if len(path) > 1 {
			before, _ = jsonedit.Get(before, path[1:]...)
		}
		plain[i] = clients.ShowSettingSecrets(key, values[key], before)
		wanted = append(wanted, config.SetValue(key, plain[i]))
		if config.AppliesLive(key) { // the others are specific to a node
			shared = append(shared, wanted[i])
		}
	}
	if err := config.Check(s.app.opts.Reload, wanted...); err != nil {
		return err // before secrets are written
	}
	for i, key := range keys {
		kept, err := clients.KeepSettingSecrets(s.app.opts.Reload, key, plain[i])
		if err != nil {
			return err
		}
		edits = append(edits, config.SetValue(key, kept))
	}
	return s.editShared(edits, shared)
}

// AddServers adds servers in any format that clients use: a whole file, its
// map of servers, or one named server.
func (s settings) AddServers(raw json.RawMessage, replace bool) ([]string, error) {
	entries := config.ServersIn(raw)
	if len(entries) == 0 {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: `the body contains no server; send {"mcpServers": {"name": {"command": "npx", "args": ["…"]}}}`}
	}
	names := slices.Sorted(maps.Keys(entries))
	s.app.editing.Lock()
	defer s.app.editing.Unlock()
	for _, name := range names {
		if _, taken := s.app.config.Load().Server(name); taken && !replace {
			return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("a server named %q already exists", name)}
		}
	}
	write := config.Add
	if replace {
		write = config.Set
	}
	return names, s.setServers(entries, write)
}

// setServers writes servers to the file and their secrets to the .env file
// next to it. Other nodes have their own .env file, so they get the entries
// with the secrets, encrypted, and extract them there.
func (s settings) setServers(entries map[string]json.RawMessage, write func(string, json.RawMessage) config.Edit) error {
	names := slices.Sorted(maps.Keys(entries))
	var wanted, edits, shared []config.Edit
	for _, name := range names {
		wanted, shared = append(wanted, write(name, entries[name])), append(shared, config.Set(name, entries[name]))
	}
	if err := config.Check(s.app.opts.Reload, wanted...); err != nil {
		return refusal(err) // before secrets are written
	}
	kept, err := clients.KeepSecrets(s.app.opts.Reload, entries)
	if err != nil {
		return err
	}
	for _, name := range names {
		edits = append(edits, write(name, kept[name]))
	}
	return s.editShared(edits, shared)
}

// Server returns the entry of a server in the file, with placeholders for its
// secrets.
func (s settings) Server(name string) (json.RawMessage, error) {
	entry, err := s.entry(name)
	if err != nil {
		return nil, err
	}
	return clients.HideSecrets(name, entry)
}

// SetServer replaces the entry of a server. Placeholders from Server are
// replaced by the current secrets.
func (s settings) SetServer(name string, entry json.RawMessage) error {
	s.app.editing.Lock()
	defer s.app.editing.Unlock()
	old, err := s.entry(name)
	if err != nil {
		return err
	}
	return s.setServers(map[string]json.RawMessage{name: clients.ShowSecrets(name, entry, old)}, config.Set)
}

func (s settings) entry(name string) (json.RawMessage, error) {
	own, err := clients.Own(s.app.opts.Reload)
	if err != nil {
		return nil, err
	}
	for _, e := range own {
		if e.Name == name {
			return e.Server, nil
		}
	}
	return nil, &tool.Error{Kind: tool.ServerNotFound, Msg: fmt.Sprintf("the server %q is not in the configuration file", name)}
}

// SetEnabled enables or disables a server.
func (s settings) SetEnabled(name string, enabled bool) error {
	patch, err := json.Marshal(map[string]any{"enabled": enabled, "disabled": nil})
	if err != nil {
		return err
	}
	return s.edit(config.Merge(name, patch))
}

// SetTool enables or disables a tool and sets whether its calls need approval;
// nil leaves a setting unchanged.
func (s settings) SetTool(name tool.Name, enabled *bool, approval *catalog.Approval) error {
	patch := map[string]any{}
	if enabled != nil {
		patch["enabled"] = *enabled
	}
	if approval != nil {
		patch["approval"] = *approval
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return s.edit(config.Rule(name.String(), data))
}

// RemoveServer removes a server from the file.
func (s settings) RemoveServer(name string) error { return s.edit(config.Remove(name)) }

func (s settings) edit(edits ...config.Edit) error {
	s.app.editing.Lock()
	defer s.app.editing.Unlock()
	return s.editShared(edits, edits)
}

// editShared applies edits to the local file and publishes shared, the
// corresponding edits for other nodes.
func (s settings) editShared(edits, shared []config.Edit) error {
	if _, err := config.Apply(s.app.opts.Reload, edits...); err != nil {
		return refusal(err)
	}
	invalid := s.reload() // fails if the file was invalid already
	if err := s.app.edits.Publish(shared); err != nil {
		return fmt.Errorf("%w of this node only; repeat it when the database is available: %w", control.ErrWritten, err)
	}
	if invalid != nil {
		return fmt.Errorf("%w but takes effect only when the file is valid: %w", control.ErrWritten, invalid)
	}
	return nil
}

// refusal converts the error of a rejected edit to one for the caller.
func refusal(err error) error {
	switch {
	case errors.Is(err, config.ErrServerExists): // concurrently added by another program
		return &tool.Error{Kind: tool.InvalidArguments, Msg: err.Error(), Err: err}
	case errors.Is(err, config.ErrNoServer):
		return &tool.Error{Kind: tool.ServerNotFound, Msg: "the server is not in the configuration file", Err: err}
	}
	return err
}

// applyFile reloads the file after edits that were made elsewhere.
func (s settings) applyFile() error {
	s.app.editing.Lock()
	defer s.app.editing.Unlock()
	return s.reload()
}

// reload applies the file immediately, without waiting for the watcher.
func (s settings) reload() error {
	cfg, _, err := config.Load(s.app.opts.Reload)
	if err != nil {
		return err
	}
	s.app.apply(context.Background(), cfg)
	return nil
}
