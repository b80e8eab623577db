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

// Servers has the state of the upstreams and restarts them.
type Servers interface {
	Status() []upstream.Status
	Diagnose(server string) (upstream.Status, bool)
	// Await waits for the first connection of the named upstreams, or of all,
	// and returns those that are still pending.
	Await(ctx context.Context, servers ...string) (pending []string)
	StatusOf(server string) (upstream.Status, bool)
	// Info returns what the server says of itself to the caller; false if it is
	// not connected.
	Info(server, caller string) (mcpclient.ServerInfo, bool)
	Restart(server string) error
	// Watch returns a channel that receives after the state of an upstream
	// has changed.
	Watch(ctx context.Context) <-chan struct{}
}

// ErrWritten is wrapped by the errors of changes that were written into the
// file, but are not in force or were not sent to other nodes.
var ErrWritten = errors.New("the change was written into the file")

// Settings owns the configuration file. The methods return when the file is
// written; the change then takes effect automatically.
type Settings interface {
	// Show returns the configuration, secrets masked.
	Show() (Configuration, error)
	// Schema returns the JSON Schema of the configuration file.
	Schema() json.RawMessage
	// SetValues changes settings by their keys; null removes one.
	SetValues(values map[string]json.RawMessage) error
	// AddServers takes servers in any shape that clients write, and returns
	// their names.
	AddServers(raw json.RawMessage, replace bool) ([]string, error)
	// Server returns a server's entry in the file, marks in place of its
	// secrets; SetServer replaces the entry, and takes the marks as the
	// secrets that they stand for.
	Server(name string) (json.RawMessage, error)
	SetServer(name string, entry json.RawMessage) error
	SetEnabled(name string, enabled bool) error
	RemoveServer(name string) error
	// SetTool turns a tool on or off, and says whether a person is asked
	// before its calls. What is nil stays as it is.
	SetTool(name tool.Name, enabled *bool, approval *catalog.Approval) error
}

// Server is an upstream as the page and the command line show it.
type Server struct {
	upstream.Status
	Description  string   `json:"description,omitempty"`
	Instructions string   `json:"instructions,omitempty"`
	Tags         []string `json:"tags,omitempty"`
	EnabledTools int      `json:"enabledTools"`
}

func (c *Control) newServer(caller *tool.Caller, st upstream.Status) Server {
	s := c.Tools.Describe(c.Tools.Snapshot(), caller, st)
	v := Server{Status: s.Status, EnabledTools: s.Enabled}
	if s.Known != nil {
		v.Description, v.Tags, v.Instructions = s.Known.Description, s.Known.Tags, s.Known.Instructions
	}
	return v
}

// awaitServers waits for the first connection of the named upstreams, or of all, as
// far as the caller may see them.
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

// hideProcess keeps from callers with limits what a server's process prints:
// it may be about the work of others.
func hideProcess(caller *tool.Caller, s *upstream.Status) {
	if !caller.Admin && caller.Limited() {
		s.PID, s.Stderr, s.LastStray = 0, nil, ""
	}
}

// addServers takes {"servers": <any client's JSON>, "replace": false}.
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

// serverConfig answers with a server's entry in the configuration file.
func (c *Control) serverConfig(r *http.Request) (any, error) {
	entry, err := c.Settings.Server(r.PathValue("name"))
	if err != nil {
		return nil, asInvalid(err)
	}
	return map[string]any{"server": entry}, nil
}

// setServer takes {"server": <entry>}, as serverConfig answered it.
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

// edit does something to the server of the path.
func (c *Control) edit(r *http.Request, action string, do func(name string) error) (any, error) {
	name := r.PathValue("name")
	caller := tool.CallerFrom(r.Context())
	if _, ok := c.Servers.StatusOf(name); !ok {
		return nil, c.Tools.ServerNotFoundError(&caller, name)
	}
	return okBody, c.finishEdit(r, do(name), action, nil, name)
}

// finishEdit records an administrator's change, also one that is not in force
// everywhere yet, and returns the error to answer with.
func (c *Control) finishEdit(r *http.Request, err error, action string, detail any, targets ...string) error {
	if err == nil || errors.Is(err, ErrWritten) {
		for _, target := range targets {
			c.Audit(r.Context(), action, target, detail)
		}
	}
	return asInvalid(err)
}

// asInvalid returns the error of an administrator's edit with its message:
// administrators may see what is wrong with the file.
func asInvalid(err error) error {
	if err == nil || tool.KindOf(err) != tool.Internal {
		return err
	}
	return &tool.Error{Kind: tool.InvalidArguments, Msg: err.Error()}
}
