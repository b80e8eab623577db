// Package wire is the messages between the chat and its clients: those of the
// WebSocket in both directions, and the sessions of the REST API, also as
// Markdown. docs/chat.md describes them.
package wire

import (
	"encoding/json"
	"time"

	"junctor/internal/llm"
	"junctor/internal/tool"
)

// The message types to clients. docs/chat.md has a schema for each.
const (
	TypeConnection = "connection"
	TypeHistory    = "history"
	TypeMessage    = "message" // a message of the user, for all watchers
	TypeText       = "text"
	TypeReasoning  = "reasoning"
	TypeStatus     = "status"
	TypeApproval   = "approval"
	TypeQuestion   = "question" // a server asks the person something
	TypeAnswered   = "answered"
	TypeUsage      = "usage"
	TypeError      = "error"
	TypeSession    = "session"
	TypeBranch     = "branch" // the conversation continues on another branch
)

// Outgoing is one message to a client.
type Outgoing struct {
	Type string `json:"type"`
	// Seq numbers the messages of a session. A message to a single connection
	// (connection, history, some errors) repeats the number of the last
	// broadcast message. That of connection is where the replay after it ends,
	// so a client resumes with the latest number of the other messages.
	Seq     int64 `json:"seq"`
	Payload any   `json:"payload"`
}

// ConnectionPayload describes the session to a new connection.
type ConnectionPayload struct {
	State     string `json:"state"` // connected, reconnecting (it was here before), error
	Message   string `json:"message"`
	SessionID string `json:"sessionId"`
	Title     string `json:"title,omitempty"`
	Model     string `json:"model,omitempty"`
	// Active means that a reply is in progress.
	Active      bool        `json:"active,omitempty"`
	Preferences Preferences `json:"preferences,omitzero"`
	// Unavailable lists the servers that cannot be used now.
	Unavailable []ServerState `json:"unavailable,omitempty"`
	Limits      Limits        `json:"limits,omitzero"`
}

// Limits are the largest message that the gateway accepts. The connection is
// closed on one that exceeds them by far, so clients check before they send.
type Limits struct {
	MessageBytes    int `json:"messageBytes"`    // of text
	AttachmentBytes int `json:"attachmentBytes"` // of all attachments, decoded
}

// MessagePayload is a message of the user.
type MessagePayload struct {
	ID   string    `json:"id"`
	Text string    `json:"text"`
	Time time.Time `json:"time"`
	// Attachments are described without their content.
	Attachments []Attachment `json:"attachments,omitempty"`
}

// BranchPayload says that the conversation continues on another branch.
type BranchPayload struct {
	// After is the id of the last message that stays; empty if none does.
	After string `json:"after"`
	// Replaces is the id of the message that is edited.
	Replaces string `json:"replaces,omitempty"`
	// Again means that the message is answered again: a reply begins.
	Again bool `json:"again,omitempty"`
	// Reload means that the whole history is another one; request it.
	Reload bool `json:"reload,omitempty"`
}

// ContentPayload is a piece of text.
type ContentPayload struct {
	Content string `json:"content"`
}

// StatusPayload is the progress of a call, or of the whole reply if it has no
// tool.
type StatusPayload struct {
	State   string      `json:"state"` // processing, complete
	Tool    string      `json:"tool,omitempty"`
	Message string      `json:"message"`
	Data    *StatusData `json:"data,omitempty"`
}

// StatusData is the data of a status.
type StatusData struct {
	CallID    string          `json:"callId,omitempty"`
	Order     int             `json:"order,omitempty"` // place of the call among those of the reply; parallel calls begin in any order
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"` // a CallToolResult, cut to the limit
	IsError   bool            `json:"isError,omitempty"`
	TookMs    int64           `json:"tookMs,omitempty"`
	Progress  json.RawMessage `json:"progress,omitempty"` // params of a progress notification
	// Stop is why a reply ended: end, length, filter, aborted, error,
	// max_steps, repetition.
	Stop        string        `json:"stop,omitempty"`
	Unavailable []ServerState `json:"unavailable,omitempty"`
}

// ApprovalPayload asks the user to approve a call.
type ApprovalPayload struct {
	CallID    string          `json:"callId"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Message   string          `json:"message"`
	Expires   time.Time       `json:"expires"`
}

// QuestionPayload is a server's question to the user during a call.
type QuestionPayload struct {
	QuestionID string    `json:"questionId"`
	CallID     string    `json:"callId"`
	Tool       string    `json:"tool"`
	Server     string    `json:"server"` // who asks
	Kind       string    `json:"kind"`   // form, url, model
	Message    string    `json:"message"`
	Expires    time.Time `json:"expires"`

	Schema json.RawMessage `json:"schema,omitempty"` // of a form
	URL    string          `json:"url,omitempty"`    // to open on purpose
	// Retry means that the call is made again after the user has opened URL.
	Retry  bool         `json:"retry,omitempty"`
	Prompt []PromptLine `json:"prompt,omitempty"` // what the model would be asked
	Model  string       `json:"model,omitempty"`  // which model that is
}

// PromptLine is one message of a server's sampling request.
type PromptLine struct {
	Role string `json:"role"` // system, user, assistant
	Text string `json:"text"`
}

// AnsweredPayload is the outcome of a question. A sampling request has two:
// when it was allowed, and with the model's reply.
type AnsweredPayload struct {
	QuestionID string `json:"questionId"`
	CallID     string `json:"callId"`
	Action     Action `json:"action"`
	Text       string `json:"text,omitempty"`
}

// UsagePayload counts the tokens of a reply.
type UsagePayload struct {
	Model   string    `json:"model"`
	Turn    llm.Usage `json:"turn"`
	Session llm.Usage `json:"session"`
	// Context is the number of tokens of the last request.
	Context       int `json:"context"`
	ContextWindow int `json:"contextWindow"`
}

// ErrorPayload describes an error and what to do about it.
type ErrorPayload struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	RetryAfter int64  `json:"retryAfterMs,omitempty"`
	// CallID is the approval that the error is about, QuestionID the question.
	CallID     string `json:"callId,omitempty"`
	QuestionID string `json:"questionId,omitempty"`
}

// SessionPayload is a change of the session's title, model or preferences.
type SessionPayload struct {
	Title       string      `json:"title"`
	Model       string      `json:"model,omitempty"`
	Preferences Preferences `json:"preferences,omitzero"`
}

// HistoryPayload is the conversation so far.
type HistoryPayload struct {
	Title    string           `json:"title"`
	Model    string           `json:"model,omitempty"`
	Messages []HistoryMessage `json:"messages"`
	// Preferences are what the user chose for this conversation.
	Preferences Preferences `json:"preferences,omitzero"`
	// Usage counts the tokens so far; Turn is empty.
	Usage *UsagePayload `json:"usage,omitempty"`
}

// NoticeFallback marks a message that the gateway sent in place of the model's
// reply.
const NoticeFallback = "fallback"

// HistoryMessage is one message of a conversation.
type HistoryMessage struct {
	ID     string     `json:"id"`
	Seq    int64      `json:"seq"`
	Role   llm.Role   `json:"role"`
	Time   time.Time  `json:"time"`
	Parts  []llm.Part `json:"parts"`
	Model  string     `json:"model,omitempty"`
	Usage  *llm.Usage `json:"usage,omitempty"`
	Notice string     `json:"notice,omitempty"` // interrupted, aborted or fallback; absent for a regular message
	// Siblings are the ids of the alternative messages at this place, one per
	// branch and including this one. Absent if there is only one branch.
	Siblings []string `json:"siblings,omitempty"`
}

// ServerState is a server that cannot be used now.
type ServerState struct {
	Server string `json:"server"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// Incoming is one message from a client.
type Incoming struct {
	Type    string          `json:"type"` // message, regenerate, branch, preferences, abort, approve, deny, answer, history
	Payload json.RawMessage `json:"payload"`
}

// Error codes specific to the chat; all others are kinds of [tool.Error].
const (
	CodeBusy        = "BUSY"
	CodeNoModel     = "NO_MODEL"
	CodeModel       = "MODEL_ERROR"
	CodeInterrupted = "INTERRUPTED"
	CodeAborted     = "ABORTED"
	CodeNoApproval  = "NO_SUCH_APPROVAL"
	CodeNoQuestion  = "NO_SUCH_QUESTION"
)

func invalid(msg string) *tool.Error { return &tool.Error{Kind: tool.InvalidRequest, Msg: msg} }
