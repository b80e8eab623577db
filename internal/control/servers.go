package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"junctor/internal/catalog"
	"junctor/internal/mcpclient"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Servers provides the state of the upstreams and restarts them.
type Servers interface {
	Status() []upstream.Status
	Diagnose(server string) (upstream.Status, bool)
	// Await waits for the first connection of the named upstreams, or of all,
	// and returns those that are still pending.
	Await(ctx context.Context, servers ...string) (pending []string)
	StatusOf(server string) (upstream.Status, bool)
	// Info returns the server's description of itself to the caller; ok is
	// false if it is not connected.
	Info(server, caller string) (mcpclient.ServerInfo, bool)
	Restart(server string) error
	// Watch returns a channel that receives after the state of an upstream
	// has changed.
	Watch(ctx context.Context) <-chan struct{}
}

// ErrWritten is wrapped by the errors of changes that were written to the
// file, but are not in effect or were not sent to other nodes.
var ErrWritten = errors.New("the change was written to the file")

// Settings owns the configuration file. Its methods return after the file was
// written; the change then takes effect automatically.
type Settings interface {
	// Show returns the configuration with secrets masked.
	Show() (Configuration, error)
	// Schema returns the JSON Schema of the configuration file.
	Schema() json.RawMessage
	// SetValues changes settings by key; null removes a setting.
	SetValues(values map[string]json.RawMessage) error
	// AddServers adds servers in any format that clients use and returns their
	// names.
	AddServers(raw json.RawMessage, replace bool) ([]string, error)
	// Server returns a server's entry in the file, with placeholders for its
	// secrets. SetServer replaces the entry and the placeholders by the
	// secrets they represent.
	Server(name string) (json.RawMessage, error)
	SetServer(name string, entry json.RawMessage) error
	SetEnabled(name string, enabled bool) error
	RemoveServer(name string) error
	// SetTool enables or disables a tool and sets whether its calls need
	// approval. Nil leaves a setting unchanged.
	SetTool(name tool.Name, enabled *bool, approval *catalog.Approval) error
}

// Server is an MCP server as the page and the command line show it.
type Server struct {
	upstream.Status
	Description  string   `json:"description,omitempty"`
	Instructions string   `json:"instructions,omitempty"`
	Tags         []string `json:"tags,omitempty"`
	EnabledTools int      `json:"enabledTools"` // number of enabled tools
}

func (c *Control) newServer(caller *tool.Caller, st upstream.Status) Server {
	s := c.Tools.Describe(c.Tools.Snapshot(), caller, st)
	v := Server{Status: s.Status, EnabledTools: s.Enabled}
	if s.Known != nil {
		v.Description, v.Tags, v.Instructions = s.Known.Description, s.Known.Tags, s.Known.Instructions
	}
	return v
}

// awaitServers waits for the first connection of the named upstreams, or of
// all, limited to those that the caller may see.
func (c *Control) awaitServers(ctx context.Context, caller *tool.Caller, names []string) {
	var wait []string
	for _, s := range c.Servers.Status() {
		if caller.MaySee(s.Name) && (len(names) == 0 || slices.Contains(names, s.Name)) {
			wait = append(wait, s.Name)
		}
	}
	if len(wait) > 0 {
		c.Servers.Await(ctx, wait...)
	}
}

func (c *Control) listServers(r *http.Request) (any, error) {
	caller := tool.CallerFrom(r.Context())
	if r.URL.Query().Has("wait") {
		c.awaitServers(r.Context(), &caller, nil)
	}
	list := []Server{}
	for _, s := range c.Servers.Status() {
		if !caller.MaySee(s.Name) {
			continue
		}
		if detailed, ok := c.Servers.Diagnose(s.Name); ok {
			s = detailed
		}
		hideProcess(&caller, &s)
		list = append(list, c.newServer(&caller, s))
	}
	return map[string]any{"servers": list}, nil
}

func (c *Control) showServer(r *http.Request) (any, error) {
	name := r.PathValue("name")
	caller := tool.CallerFrom(r.Context())
	s, ok := c.Servers.Diagnose(name)
	if !ok || !caller.MaySee(name) {
		return nil, c.Tools.ServerNotFoundError(&caller, name)
	}
	hideProcess(&caller, &s)
	return c.newServer(&caller, s), nil
}

// hideProcess removes the output of a server's process for restricted callers,
// because it may concern the calls of others.
func hideProcess(caller *tool.Caller, s *upstream.Status) {
	if !caller.Admin && caller.Limited() {
		s.PID, s.Stderr, s.LastStray = 0, nil, ""
	}
}

// addServers accepts {"servers": <any client's JSON>, "replace": false}.
func (c *Control) addServers(r *http.Request, in struct {
	Servers json.RawMessage `json:"servers"`
	Replace bool            `json:"replace"`
}) (any, error) {
	names, err := c.Settings.AddServers(in.Servers, in.Replace)
	if err := c.finishEdit(r, err, "server.add", nil, names...); err != nil {
		return nil, err
	}
	return map[string]any{"added": names}, nil
}

// serverConfig returns a server's entry in the configuration file.
func (c *Control) serverConfig(r *http.Request) (any, error) {
	entry, err := c.Settings.Server(r.PathValue("name"))
	if err != nil {
		return nil, asInvalid(err)
	}
	return map[string]any{"server": entry}, nil
}

// setServer accepts {"server": <entry>}, as returned by serverConfig.
func (c *Control) setServer(r *http.Request, in struct {
	Server json.RawMessage `json:"server"`
}) (any, error) {
	if len(in.Server) == 0 || in.Server[0] != '{' {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: `send {"server": {"command": "…"}} or {"server": {"url": "…"}}`}
	}
	return c.edit(r, "server.change", func(name string) error { return c.Settings.SetServer(name, in.Server) })
}

func (c *Control) changeServer(r *http.Request, in struct {
	Enabled *bool `json:"enabled"`
}) (any, error) {
	if in.Enabled == nil {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: `send {"enabled": true} or {"enabled": false}`}
	}
	action := "server.disable"
	if *in.Enabled {
		action = "server.enable"
	}
	return c.edit(r, action, func(name string) error { return c.Settings.SetEnabled(name, *in.Enabled) })
}

func (c *Control) removeServer(r *http.Request) (any, error) {
	return c.edit(r, "server.remove", c.Settings.RemoveServer)
}

func (c *Control) restartServer(r *http.Request) (any, error) {
	return c.edit(r, "server.restart", c.Servers.Restart)
}

// edit applies a change to the server named in the path.
func (c *Control) edit(r *http.Request, action string, do func(name string) error) (any, error) {
	name := r.PathValue("name")
	caller := tool.CallerFrom(r.Context())
	if _, ok := c.Servers.StatusOf(name); !ok {
		return nil, c.Tools.ServerNotFoundError(&caller, name)
	}
	return okBody, c.finishEdit(r, do(name), action, nil, name)
}

// finishEdit records an administrator's change, even if it is not in effect
// everywhere yet, and returns the error for the response.
func (c *Control) finishEdit(r *http.Request, err error, action string, detail any, targets ...string) error {
	if err == nil || errors.Is(err, ErrWritten) {
		for _, target := range targets {
			c.Audit(r.Context(), action, target, detail)
		}
	}
	return asInvalid(err)
}

// asInvalid makes the message of an edit's error visible to the administrator,
// who may see what is wrong with the file.
func asInvalid(err error) error {
	if err == nil || tool.KindOf(err) != tool.Internal {
		return err
	}
	return &tool.Error{Kind: tool.InvalidArguments, Msg: err.Error()}
}
