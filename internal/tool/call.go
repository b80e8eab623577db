package tool

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Caller is who asked for a call.
type Caller struct {
	ID    string // stable, unique and never used again: "local", "key:<key id>", "sub:<issuer>|<subject>", "client:<issuer>|<client id>"
	Name  string // for people and logs; another caller may have had it
	Admin bool   // may change the configuration

	// Servers and Tools are globs that limit what the caller may see and
	// call, matched against the server's name and against server:tool. Those
	// that begin with "!" exclude. Nil means no limit.
	Servers []string
	Tools   []string

	// Grants, where there are any, limit the caller to what one of them
	// allows, as several rules do that each name servers and tools.
	Grants []Grant

	// Profiles limit the caller further: all of them must allow what it does.
	Profiles Profiles `json:",omitempty"`

	// Rate limits the caller's calls; zero means no limit.
	Rate Rate

	// Chat is the right to use models: to chat, and to have tasks planned.
	Chat bool
	// TokensPerDay limits the tokens of models; zero means no limit.
	TokensPerDay int64
}

// PermitChat reports, as an error that says why, when the caller has no right
// to use models.
func (c *Caller) PermitChat() error {
	if c.Chat {
		return nil
	}
	return &Error{Kind: Denied, Msg: "this key may not use models (chat, tasks in plain words); an administrator can make one that may: junctor keys add NAME --chat, or chat: true in auth.keys and auth.jwt.rules"}
}

// Grant is one set of globs over servers and tools; nil means no limit. Its
// profiles limit it further.
type Grant struct {
	Servers, Tools []string
	Profiles       Profiles `json:",omitempty"`
}

// Rate is a number of calls in a span of time.
type Rate struct {
	Calls int           `json:"calls"`
	Per   time.Duration `json:"per"`
}

// Local is the caller of the command line, of stdio, and of open loopback.
var Local = Caller{ID: "local", Name: "local", Admin: true, Chat: true}

// AnonymousID is the ID of [Anonymous].
const AnonymousID = "anonymous"

// Anonymous is a caller that is not authenticated, and the caller of a context
// without one. It has no rights. Its globs exclude everything, because some of the
// gateway's own tools are allowed unless they are excluded.
var Anonymous = Caller{ID: AnonymousID, Name: AnonymousID, Servers: []string{"!*"}, Tools: []string{"!*"}}

// Exchange is the caller's end of a call in flight. The zero Exchange is a
// caller that receives no notifications and can be asked nothing.
type Exchange struct {
	// Notify receives the notifications that belong to the call (progress,
	// logging), in order, before its result. It must not block for long.
	Notify func(method string, params json.RawMessage)

	// Ask puts an upstream's request (elicitation/create,
	// sampling/createMessage, roots/list) to the caller and returns its
	// result. Nil means that the caller cannot be asked.
	Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

	// Approve asks the person behind the caller whether the tool may run
	// with these arguments. Nil means that a rule's question goes out by
	// elicitation, where Ask and Capabilities allow that.
	Approve func(ctx context.Context, name Name, arguments json.RawMessage) (bool, error)

	// ApproveInInbox lets the question of Approve stand in the inbox too, where
	// somebody else may answer it. Approve's context then ends.
	ApproveInInbox bool

	// AwaitPerson is called when the call begins to wait for an approval, and
	// what it returns when the wait is over. It may be nil.
	AwaitPerson func() (over func())

	// Capabilities are the MCP client capabilities of the caller, as it
	// declared them; nil when it declared none.
	Capabilities json.RawMessage

	// Protocol is the version of MCP that the caller speaks; "" for a caller of
	// another API.
	Protocol string

	// Transparent means that the caller sees this one server and nothing else:
	// its capabilities, extensions included, are declared to the server, and
	// the server is spoken to in the caller's era where it has it.
	Transparent bool

	// PassInput lets a result that asks for input (resultType
	// input_required, of the 2026-07-28 era) through to a caller that knows
	// how to go on from it, instead of answering it through Ask.
	PassInput bool

	// Memory is where a large result may be read to; nil for new memory.
	Memory *ResultMemory

	// Task is called once when the server makes a task of the call, which the
	// upstream then waits for. It may be nil.
	Task func(ServerTask)

	// TaskStatus is called with the status of that task, and again when it or
	// its message has changed. It may be nil.
	TaskStatus func(TaskStatus)

	// Resume has a tasks/result wait for the task in either era of the
	// protocol: the gateway continues a call whose process has ended.
	Resume bool

	// Queued is called with true when the request must wait for its turn at
	// the upstream, and with false when it waits no more: until then the
	// upstream has not seen it. It may be nil.
	Queued func(waiting bool)

	// Repaired is called before the request returns when its answer was not
	// valid UTF-8 and the invalid bytes were replaced by U+FFFD. It may be nil.
	Repaired func()
}

// TaskStatus is the status of a task that has not ended.
type TaskStatus struct {
	Status  string `json:"status"`            // working or input_required
	Message string `json:"message,omitempty"` // of the server
}

// Progress returns the status as the params of a progress notification without
// a token.
func (s TaskStatus) Progress() json.RawMessage {
	text := strings.ReplaceAll(s.Status, "_", " ")
	if s.Message != "" {
		text += ": " + s.Message
	}
	quoted, err := json.Marshal(text)
	if err != nil { // cannot happen: a string can be marshalled
		return nil
	}
	return json.RawMessage(`{"progress":0,"message":` + string(quoted) + `}`)
}

// ServerTask is a task of a server that other processes can wait for too; it is
// empty where they cannot, because the server ends with this process.
type ServerTask struct {
	Server string `json:"server"`
	ID     string `json:"id"`
}

// Call is one execution of a tool, as a face asks for it.
type Call struct {
	ID        string // unique; made by the executor
	RequestID string // given by the caller (X-Request-Id), and may come twice; empty means that of the context
	Parent    string // ID of the call that caused this one; empty means that of the context
	Face      string // discovery, tools, broker, chat, agentify, control, app
	Origin    Origin
	Caller    Caller // one without an ID is Anonymous
	Session   string // chat or MCP session, for the record; may be empty
	Server    string // may be empty when Tool is qualified or unique
	Tool      string // bare or qualified
	Arguments json.RawMessage
	Meta      json.RawMessage // the _meta object to hand on; may be nil

	// Params are those of the MCP request that the call came in; nil for a
	// call that came otherwise. Tool, Arguments and Meta take precedence over
	// what they say of the same; every other member is sent on as it came.
	Params json.RawMessage

	// Select is a jq expression for the part of the result that the caller
	// wants; empty means all.
	Select string

	Timeout  time.Duration // 0 means the upstream's own
	Exchange Exchange
}

// Forward is one MCP request other than tools/call that a face sends on to a
// server.
type Forward struct {
	RequestID string // as in Call
	Face      string
	Caller    Caller // as in Call
	Session   string
	Server    string
	Method    string
	Params    json.RawMessage
	Exchange  Exchange
}

// Request is one MCP request on its way to an upstream: what remains of a
// call when names, rights and arguments have been resolved.
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
