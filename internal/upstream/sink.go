package upstream

import (
	"context"
	"encoding/json"
	"net/http"

	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

// Sink receives the tools and states of upstreams. Calls of ToolsChanged and
// Removed about one upstream are sequential; the other methods may be called
// concurrently. The methods must not block for long and must not call the
// Supervisor, except for its Status.
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
	// or a 403 that names a missing scope, it is that response, and the
	// request is retried once if Authorize returns nil. If a person's consent
	// is needed it returns a *tool.Error of the kind UpstreamAuthRequired.
	// The context's caller is the one that made the request; its ID is "" for
	// the gateway's own requests.
	Authorize(ctx context.Context, l Login, r *http.Request, refused *mcpclient.HTTPError) error

	// Generation returns an identifier of a login that changes when the login
	// is replaced, or "" if there is none.
	Generation(ctx context.Context, l Login) (string, error)

	// SignIn returns the error of a call that needs consent first. Its
	// Details, as JSON, contain as "url" the address that the context's caller
	// has to open, if the caller may sign in.
	SignIn(ctx context.Context, server string) error
}

// Dialer connects to a server inside the process.
type Dialer func(ctx context.Context) (mcpclient.Transport, error)

// discardSink is the Sink of a Supervisor without one.
type discardSink struct{}

func (discardSink) ToolsChanged(ToolSet)                             {}
func (discardSink) Removed(string)                                   {}
func (discardSink) StatusChanged(Status)                             {}
func (discardSink) Notified(string, string, string, json.RawMessage) {}
