package tool

import (
	"context"
	"encoding/json"
	"time"
)

// Caller is who asked for a call.
type Caller struct {
	ID    string // stable and unique: "local", "key:<name>", "jwt:<issuer>|<subject>"
	Name  string // for people and logs
	Admin bool   // may change the configuration

	// Servers and Tools are globs that limit what the caller may see and
	// call, matched against the server's name and against server:tool. Nil
	// means no limit.
	Servers []string
	Tools   []string

	// Rate limits the caller's calls; zero means no limit.
	Rate Rate
}

// Rate is a number of calls in a span of time.
type Rate struct {
	Calls int           `json:"calls"`
	Per   time.Duration `json:"per"`
}

// Local is the caller of the command line, of stdio, and of open loopback.
var Local = Caller{ID: "local", Name: "local", Admin: true}

// Exchange is the caller's end of a call in flight. The zero Exchange is a
// caller that hears nothing and can be asked nothing.
type Exchange struct {
	// Notify receives the notifications that belong to the call (progress,
	// logging), in order, before its result. It must not block for long.
	Notify func(method string, params json.RawMessage)

	// Ask puts an upstream's request (elicitation/create,
	// sampling/createMessage, roots/list) to the caller and returns its
	// result. Nil means that the caller cannot be asked.
	Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

	// Capabilities are the MCP client capabilities of the caller, as it
	// declared them; nil when it declared none.
	Capabilities json.RawMessage
}

// Call is one execution of a tool, as a face asks for it.
type Call struct {
	ID        string // correlation id; made by the executor when empty
	Face      string // discovery, tools, broker, chat, agentify, cli
	Caller    Caller
	Session   string // chat or MCP session, for the record; may be empty
	Server    string // may be empty when Tool is qualified or unique
	Tool      string // bare or qualified
	Arguments json.RawMessage
	Meta      json.RawMessage // the _meta object to hand on; may be nil
	Timeout   time.Duration   // 0 means the upstream's own
	Exchange  Exchange
}

// Request is one MCP request on its way to an upstream: what remains of a
// call when names, rights and arguments have been settled.
type Request struct {
	Method   string
	Params   json.RawMessage
	Caller   string // Caller.ID, for upstreams with a session per caller
	Exchange Exchange
}

// Result is what a tool answered: a CallToolResult byte for byte.
type Result struct {
	Raw     json.RawMessage
	IsError bool // the tool itself reports failure
}
