package tool

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Caller identifies who makes a call, and what it may do.
type Caller struct {
	ID    string // stable, unique and never reused: "local", "key:<key id>", "sub:<issuer>|<subject>", "client:<issuer>|<client id>"
	Name  string // for people and logs; not unique
	Admin bool   // may change the configuration

	// Servers and Tools are globs that limit what the caller may see and
	// call, matched against the server's name and against server:tool. A glob
	// that begins with "!" excludes. Nil means no limit.
	Servers []string
	Tools   []string

	// Grants, if any, limit the caller to what at least one of them allows.
	// There is one for each rule that applies to the caller.
	Grants []Grant

	// Profiles limit the caller further: all of them must allow a call.
	Profiles Profiles `json:",omitempty"`

	// Rate limits the caller's calls; zero means no limit.
	Rate Rate

	// Chat is the right to use models, for chats and for planning tasks.
	Chat bool
	// TokensPerDay limits the tokens of models; zero means no limit.
	TokensPerDay int64
}

// PermitChat returns an error if the caller may not use models.
func (c *Caller) PermitChat() error {
	if c.Chat {
		return nil
	}
	return &Error{Kind: Denied, Msg: "this key may not use models (chat, tasks in plain words); an administrator can make one that may: junctor keys add NAME --chat, or chat: true in auth.keys and auth.jwt.rules"}
}

// Grant is a set of globs that allow servers and tools; nil means no limit. Its
// profiles limit it further.
type Grant struct {
	Servers, Tools []string
	Profiles       Profiles `json:",omitempty"`
}

// Rate is a maximum number of calls per period.
type Rate struct {
	Calls int           `json:"calls"`
	Per   time.Duration `json:"per"`
}

// Local is the caller of the command line, of stdio, and of loopback
// connections without authentication.
var Local = Caller{ID: "local", Name: "local", Admin: true, Chat: true}

// AnonymousID is the ID of [Anonymous].
const AnonymousID = "anonymous"

// Anonymous is a caller that is not authenticated, and the caller of a context
// without one. It has no rights. Its globs exclude everything, because some of the
// gateway's own tools are allowed unless they are excluded.
var Anonymous = Caller{ID: AnonymousID, Name: AnonymousID, Servers: []string{"!*"}, Tools: []string{"!*"}}

// Exchange is the caller's side of a call in flight. The zero Exchange is that
// of a caller that receives no notifications and answers no requests.
type Exchange struct {
	// Notify receives the notifications that belong to the call (progress,
	// logging), in order, before its result. It must not block for long.
	Notify func(method string, params json.RawMessage)

	// Ask sends an upstream's request (elicitation/create,
	// sampling/createMessage, roots/list) to the caller and returns the
	// result. Nil means that the caller accepts no requests.
	Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

	// Approve asks the user of the caller whether the tool may run with
	// these arguments. Nil means that approval is requested by elicitation
	// if Ask and Capabilities allow that.
	Approve func(ctx context.Context, name Name, arguments json.RawMessage) (bool, error)

	// ApproveInInbox also puts the approval into the inbox, where someone else
	// may answer it. The context of Approve is then cancelled.
	ApproveInInbox bool

	// AwaitPerson is called when the call begins to wait for an approval; the
	// function it returns is called when the wait is over. It may be nil.
	AwaitPerson func() (over func())

	// Capabilities are the MCP client capabilities that the caller declared;
	// nil if it declared none.
	Capabilities json.RawMessage

	// Protocol is the MCP version that the caller uses; "" for callers of other
	// APIs.
	Protocol string

	// Transparent means that the caller sees only this server. Its
	// capabilities, including extensions, are declared to the server, and
	// the protocol era of the caller is used if the server supports it.
	Transparent bool

	// PassInput passes a result that requires input (resultType
	// input_required, of the 2026-07-28 era) to a caller that supports it,
	// instead of obtaining the input through Ask.
	PassInput bool

	// Memory is the pooled memory for a large result; nil allocates.
	Memory *ResultMemory

	// Task is called once if the server runs the call as a task, which the
	// upstream then waits for. It may be nil.
	Task func(ServerTask)

	// TaskStatus is called with the status of that task, and again when the
	// status or its message changes. It may be nil.
	TaskStatus func(TaskStatus)

	// Resume makes tasks/result wait for the task in either era of the
	// protocol. The gateway uses it to continue a call whose process died.
	Resume bool

	// Queued is called with true when the request is queued for the upstream
	// and with false when it leaves the queue. Until then it has not been
	// sent. It may be nil.
	Queued func(waiting bool)

	// Repaired is called before the request returns if invalid UTF-8 in the
	// response was replaced by U+FFFD. It may be nil.
	Repaired func()
}

// TaskStatus is the status of an unfinished task.
type TaskStatus struct {
	Status  string `json:"status"`            // working or input_required
	Message string `json:"message,omitempty"` // from the server
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

// ServerTask identifies a task of a server, so that other processes can wait
// for it too. It is empty if they cannot, because the server ends with this
// process.
type ServerTask struct {
	Server string `json:"server"`
	ID     string `json:"id"`
}

// Call is a request of a face to execute a tool.
type Call struct {
	ID        string // unique; set by the executor
	RequestID string // from the caller (X-Request-Id), not unique; empty means that of the context
	Parent    string // ID of the call that caused this one; empty means that of the context
	Face      string // discovery, tools, broker, chat, agentify, control, app
	Origin    Origin
	Caller    Caller // without an ID it is Anonymous
	Session   string // chat or MCP session, for the record; may be empty
	Server    string // may be empty when Tool is qualified or unique
	Tool      string // bare or qualified
	Arguments json.RawMessage
	Meta      json.RawMessage // the _meta object to pass on; may be nil

	// Params are the params of the caller's MCP request; nil if the call was
	// not received as one. Tool, Arguments and Meta take precedence over the
	// same members of Params; all other members are passed on unchanged.
	Params json.RawMessage

	// Select is a jq expression for the part of the result that the caller
	// wants; empty means all.
	Select string

	Timeout  time.Duration // the idle timeout; 0 means that of the upstream
	Exchange Exchange
}

// Forward is an MCP request other than tools/call that a face forwards to a
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

// Request is an MCP request to an upstream: a call whose names, rights and
// arguments have been resolved and checked.
type Request struct {
	Method   string
	Params   json.RawMessage
	Caller   string // Caller.ID, for upstreams with a session per caller
	Exchange Exchange
}

// Result is the result of a tool: a CallToolResult byte for byte.
type Result struct {
	Raw     json.RawMessage
	IsError bool // the tool itself reports failure
}
