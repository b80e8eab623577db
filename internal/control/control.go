// Package control is the API behind the web page and the command line: what
// the gateway knows and does, and the few things about it that can be changed
// while it runs.
//
// It shows a caller only what that caller may see, and changes something only
// for an administrator. It runs tools through the executor like every other
// face, and hands edits of the configuration to whoever owns the file.
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

// Calls runs tools and knows their past.
type Calls interface {
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
	// Forward passes a request other than a call on to a server.
	Forward(ctx context.Context, r tool.Forward) (json.RawMessage, error)
	Stats(n tool.Name) executor.Stats
}

// Keys keeps API keys.
type Keys interface {
	AddKey(ctx context.Context, k store.Key) error
	Keys(ctx context.Context) ([]store.Key, error)
	RevokeKey(ctx context.Context, nameOrID string, at time.Time) (store.Key, error)
}

// Waiting keeps the records of calls that wait.
type Waiting interface {
	Show(w http.ResponseWriter, r *http.Request)
	Start(ctx context.Context, n waiting.New) (*waiting.Call, error)
	Await(ctx context.Context, id string, version int64) (waiting.Record, error)
}

// Questions reads what servers ask during a call.
type Questions interface {
	// CheckElicitation returns an error for a question that cannot be shown to
	// a person safely.
	CheckElicitation(params json.RawMessage) error
	// Sampling returns the function that sends a server's request to the
	// model, for when the person has allowed it.
	Sampling(caller *tool.Caller, params json.RawMessage) (send func(context.Context) (json.RawMessage, error), err error)
}

// Chats knows the conversations whose reply waits for the user.
type Chats interface {
	// Waiting returns the ids of those of the caller.
	Waiting(caller *tool.Caller) []string
	// WatchWaiting returns a channel that receives after they have changed.
	WatchWaiting(ctx context.Context) <-chan struct{}
}

// Options are what a Control is made of.
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
	// Questions reads what servers ask; nil lets nobody be asked.
	Questions Questions
	// Audit records who changed what.
	Audit  func(ctx context.Context, action, target string, detail any)
	Status func(ctx context.Context) any // of the gateway as a whole
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
	mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, r *http.Request) { answer(w, c.Status(r.Context())) })
	mux.HandleFunc("GET /api/events", c.events)
	mux.HandleFunc("GET /api/tools", c.listTools)
	mux.HandleFunc("GET /api/tools/{server}/{tool...}", c.showTool)
	mux.HandleFunc("PATCH /api/tools/{server}/{tool...}", c.admin(c.changeTool))
	mux.HandleFunc("POST /api/call", c.call)
	mux.HandleFunc("GET /api/servers", c.listServers)
	mux.HandleFunc("GET /api/servers/{name}", c.showServer)
	mux.HandleFunc("POST /api/servers", c.admin(c.addServers))
	mux.HandleFunc("GET /api/servers/{name}/config", c.admin(c.serverConfig))
	mux.HandleFunc("PUT /api/servers/{name}", c.admin(c.setServer))
	mux.HandleFunc("PATCH /api/servers/{name}", c.admin(c.changeServer))
	mux.HandleFunc("DELETE /api/servers/{name}", c.admin(c.removeServer))
	mux.HandleFunc("POST /api/servers/{name}/restart", c.admin(c.restartServer))
	mux.HandleFunc("POST /api/servers/{name}/request", c.request)
	mux.HandleFunc("GET /api/changes", c.admin(c.listChanges))
	mux.HandleFunc("POST /api/servers/{name}/approve", c.admin(c.approve))
	mux.HandleFunc("GET /api/import", c.admin(c.listImport))
	mux.HandleFunc("POST /api/import", c.admin(c.importServers))
	mux.HandleFunc("GET /api/calls", c.listCalls)
	mux.HandleFunc("GET /api/calls/{id}", c.showCall)
	mux.HandleFunc("GET /api/export", c.exportCalls)
	mux.HandleFunc("GET /api/stats", c.callStats)
	mux.HandleFunc("GET /api/config", c.admin(c.settings))
	mux.HandleFunc("GET /api/config/schema", c.admin(c.settingsSchema))
	mux.HandleFunc("PATCH /api/config", c.admin(c.changeSettings))
	mux.HandleFunc("GET /api/profiles", c.listProfiles)
	mux.HandleFunc("POST /api/profiles/preview", c.admin(c.previewProfile))
	mux.HandleFunc("GET /api/profiles/{name}", c.showProfile)
	mux.HandleFunc("PUT /api/profiles/{name}", c.admin(c.setProfile))
	mux.HandleFunc("DELETE /api/profiles/{name}", c.admin(c.removeProfile))
	mux.HandleFunc("GET /api/keys", c.admin(c.listKeys))
	mux.HandleFunc("POST /api/keys", c.admin(c.addKey))
	mux.HandleFunc("DELETE /api/keys/{name}", c.admin(c.revokeKey))
}

// admin lets only administrators through to h.
func (c *Control) admin(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if caller := tool.CallerFrom(r.Context()); !caller.Admin {
			httperr.Write(w, r, &tool.Error{
				Kind: tool.Denied,
				Msg:  "this is for administrators: open the page with junctor open, use the command line, or send a key made with junctor keys add NAME --admin",
			})
			return
		}
		h(w, r)
	}
}

// read decodes the body of a request into v.
func (c *Control) read(w http.ResponseWriter, r *http.Request, v any) error {
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
		return &tool.Error{Kind: tool.InvalidRequest, Msg: "the body is not what this endpoint takes: " + err.Error()}
	}
	return nil
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the values here always marshal; a client that is gone reads nothing
}
