// Package control is the API of the web page and the command line: the state of
// the gateway, calls of tools, and changes of the configuration while it runs.
//
// It shows callers only what they may see, and lets only administrators make
// changes. It runs tools through the executor like every other API, and passes
// edits of the configuration to the owner of the file ([Settings]).
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"junctor/internal/executor"
	"junctor/internal/httperr"
	"junctor/internal/listing"
	"junctor/internal/profile"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// Calls runs tools and provides their statistics.
type Calls interface {
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
	// Forward forwards a request other than a call to a server.
	Forward(ctx context.Context, r tool.Forward) (json.RawMessage, error)
	Stats(n tool.Name) executor.Stats
}

// Keys stores API keys.
type Keys interface {
	AddKey(ctx context.Context, k store.Key) error
	Keys(ctx context.Context) ([]store.Key, error)
	RevokeKey(ctx context.Context, nameOrID string, at time.Time) (store.Key, error)
}

// Waiting stores the records of waiting calls.
type Waiting interface {
	Show(w http.ResponseWriter, r *http.Request)
	Start(ctx context.Context, n waiting.StartOptions) (*waiting.Call, error)
	Await(ctx context.Context, id string, version int64) (waiting.Record, error)
}

// Questions checks the questions that servers ask during a call.
type Questions interface {
	// CheckElicitation returns an error for a question that cannot safely be
	// shown to a person.
	CheckElicitation(params json.RawMessage) error
	// Sampling returns a function that sends a server's request to the model.
	// It is called once the person has allowed it.
	Sampling(caller *tool.Caller, params json.RawMessage) (send func(context.Context) (json.RawMessage, error), err error)
}

// Chats provides the conversations whose reply waits for the user.
type Chats interface {
	// Waiting returns the ids of the caller's waiting conversations.
	Waiting(caller *tool.Caller) []string
	// WatchWaiting returns a channel that receives after the waiting
	// conversations have changed.
	WatchWaiting(ctx context.Context) <-chan struct{}
}

// Options are the settings and dependencies of a Control.
type Options struct {
	Tools    *listing.Service
	Calls    Calls
	Servers  Servers
	Settings Settings
	Keys     Keys
	Reviews  Reviews
	Profiles *profile.Set
	Log      store.Log
	Importer Importer
	Waiting  Waiting
	Chats    Chats // may be nil
	// Questions checks the questions of servers; nil if callers cannot be asked.
	Questions Questions
	// Audit records changes and who made them.
	Audit  func(ctx context.Context, action, target string, detail any)
	Status func(ctx context.Context) any // of the whole gateway
}

// Control serves the API.
type Control struct{ Options }

// New returns a Control.
func New(o Options) *Control {
	if o.Profiles == nil {
		o.Profiles = profile.New(nil, profile.Options{})
	}
	if o.Audit == nil {
		o.Audit = func(context.Context, string, string, any) {}
	}
	return &Control{o}
}

// Routes mounts the endpoints.
func (c *Control) Routes(mux *http.ServeMux) {
	handle := func(pattern string, f jsonFunc) { mux.HandleFunc(pattern, httperr.JSON(f)) }
	handle("GET /api/status", func(r *http.Request) (any, error) { return c.Status(r.Context()), nil })
	mux.HandleFunc("GET /api/events", c.events)
	handle("GET /api/tools", c.listTools)
	handle("GET /api/tools/{server}/{tool...}", c.showTool)
	handle("PATCH /api/tools/{server}/{tool...}", adminOnly(withBody(c.changeTool)))
	mux.HandleFunc("POST /api/call", httperr.Handler(c.call))
	handle("GET /api/servers", c.listServers)
	handle("GET /api/servers/{name}", c.showServer)
	handle("POST /api/servers", adminOnly(withBody(c.addServers)))
	handle("GET /api/servers/{name}/config", adminOnly(c.serverConfig))
	handle("PUT /api/servers/{name}", adminOnly(withBody(c.setServer)))
	handle("PATCH /api/servers/{name}", adminOnly(withBody(c.changeServer)))
	handle("DELETE /api/servers/{name}", adminOnly(c.removeServer))
	handle("POST /api/servers/{name}/restart", adminOnly(c.restartServer))
	handle("POST /api/servers/{name}/request", withBody(c.request))
	handle("GET /api/changes", adminOnly(c.listChanges))
	handle("POST /api/servers/{name}/approve", adminOnly(withBody(c.approve)))
	handle("GET /api/import", adminOnly(c.listImport))
	handle("POST /api/import", adminOnly(withBody(c.importServers)))
	mux.HandleFunc("GET /api/calls", httperr.Handler(c.listCalls))
	mux.HandleFunc("GET /api/calls/{id}", httperr.Handler(c.showCall))
	mux.HandleFunc("GET /api/export", httperr.Handler(c.exportCalls))
	handle("GET /api/stats", c.callStats)
	handle("GET /api/config", adminOnly(c.settings))
	handle("GET /api/config/schema", adminOnly(c.settingsSchema))
	handle("PATCH /api/config", adminOnly(withBody(c.changeSettings)))
	handle("GET /api/profiles", c.listProfiles)
	handle("POST /api/profiles/preview", adminOnly(withBody(c.previewProfile)))
	handle("GET /api/profiles/{name}", c.showProfile)
	handle("PUT /api/profiles/{name}", adminOnly(withBody(c.setProfile)))
	handle("DELETE /api/profiles/{name}", adminOnly(c.removeProfile))
	handle("GET /api/keys", adminOnly(c.listKeys))
	handle("POST /api/keys", adminOnly(withBody(c.addKey)))
	handle("DELETE /api/keys/{name}", adminOnly(c.revokeKey))
}

// jsonFunc handles a request and returns the value of the response or an
// error.
type jsonFunc = func(r *http.Request) (any, error)

// adminOnly lets only administrators through to f.
func adminOnly(f jsonFunc) jsonFunc {
	return func(r *http.Request) (any, error) {
		if caller := tool.CallerFrom(r.Context()); !caller.Admin {
			return nil, &tool.Error{
				Kind: tool.Denied,
				Msg:  "only administrators can do this: open the page with junctor open, use the command line, or send a key made with junctor keys add NAME --admin",
			}
		}
		return f(r)
	}
}

// withBody passes the decoded body of a request to f.
func withBody[T any](f func(r *http.Request, in T) (any, error)) jsonFunc {
	return func(r *http.Request) (any, error) {
		var in T
		if err := readBody(r, &in); err != nil {
			return nil, err
		}
		return f(r, in)
	}
}

// okBody is the response to a change that returns no data.
var okBody = map[string]any{"ok": true}

// readBody decodes the body of a request into v.
func readBody(r *http.Request, v any) error {
	data, err := httperr.ReadBody(r)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err = dec.Decode(v)
	if err == io.EOF {
		return &tool.Error{Kind: tool.InvalidRequest, Msg: "the body is empty"}
	}
	if err != nil {
		return &tool.Error{Kind: tool.InvalidRequest, Msg: "the body is invalid: " + err.Error()}
	}
	return nil
}
