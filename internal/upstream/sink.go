package upstream

import (
	"context"
	"encoding/json"
	"net/http"

	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

// Sink receives the tools and states of upstreams. Calls about one
// upstream come one after the other; they must not block for long and must
// not call the Supervisor, except for its Status.
type Sink interface {
	// ToolsChanged replaces the tools of an upstream: when it has connected, and
	// when its tools or its guidance changed.
	ToolsChanged(ToolSet)

	// Removed is called when an upstream was removed or disabled.
	Removed(server string)

	// StatusChanged is called when an upstream's state or details changed.
	StatusChanged(Status)

	// Notified is called for a notification that belongs to no call. It is for
	// the sessions of one caller, or for all subscribers if caller is "".
	Notified(server, caller, method string, params json.RawMessage)
}

// ToolSet is the list of tools of an upstream with its guidance.
type ToolSet struct {
	Config Config
	// Callers are those that each tool was listed for, where callers have
	// logins of their own; nil otherwise. The lists are equal for equal sets.
	Callers  map[string][]string
	Info     mcpclient.ServerInfo
	Tools    []tool.Definition
	Guidance tool.Guidance
	Problems []string
}

// Authorizer supplies credentials for remote upstreams that have no static
// ones.
type Authorizer interface {
	// Authorize adds credentials to r. refused is nil at first; after a 401,
	// or a 403 that names a missing scope, it is that answer, and the request
	// is sent once more when Authorize returns nil. When a person's consent
	// is needed it returns a *tool.Error of the kind UpstreamAuthRequired.
	// The context's caller is whose request it is; nobody ("") for what no
	// caller asked for.
	Authorize(ctx context.Context, l Login, r *http.Request, refused *mcpclient.HTTPError) error

	// Generation identifies a login until it is replaced; "" while there is
	// none.
	Generation(ctx context.Context, l Login) (string, error)

	// SignIn returns the error of a call that needs consent first. Its
	// Details, as JSON, have the address that the context's caller has to
	// open as "url", where the caller may.
	SignIn(ctx context.Context, server string) error
}

// Dialer makes a connection to a server inside the process.
type Dialer func(ctx context.Context) (mcpclient.Transport, error)

// discardSink is the Sink of a Supervisor without one.
type discardSink struct{}

func (discardSink) ToolsChanged(ToolSet)                             {}
func (discardSink) Removed(string)                                   {}
func (discardSink) StatusChanged(Status)                             {}
func (discardSink) Notified(string, string, string, json.RawMessage) {}
