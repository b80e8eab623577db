package chat

import (
	"encoding/json"
	"time"

	"junctor/internal/llm"
	"junctor/internal/tool"
)

// The messages that go out. docs/chat.md has a schema for each.
const (
	TypeConnection = "connection"
	TypeHistory    = "history"
	TypeMessage    = "message" // what the person said, for everyone who watches
	TypeText       = "text"
	TypeReasoning  = "reasoning"
	TypeStatus     = "status"
	TypeApproval   = "approval"
	TypeQuestion   = "question" // a server asks the person something
	TypeAnswered   = "answered"
	TypeUsage      = "usage"
	TypeError      = "error"
	TypeSession    = "session"
)

// Outgoing is one message to a client.
type Outgoing struct {
	Type string `json:"type"`
	// Seq numbers the messages of a session. One that is for a single
	// connection (connection, history, some errors) repeats the number of
	// the last that was for all, so that a client may always come back with
	// the latest number it saw.
	Seq     int64 `json:"seq"`
	Payload any   `json:"payload"`
}

// ConnectionPayload tells a client where it is.
type ConnectionPayload struct {
	State     string `json:"state"` // connected, reconnecting (it was here before), error
	Message   string `json:"message"`
	SessionID string `json:"sessionId"`
	Title     string `json:"title,omitempty"`
	Model     string `json:"model,omitempty"`
	// Active says that a reply is in progress.
	Active bool `json:"active,omitempty"`
	// Unavailable are the servers whose tools cannot be used now.
	Unavailable []ServerState `json:"unavailable,omitempty"`
}

// MessagePayload is what a person said.
type MessagePayload struct {
	ID   string    `json:"id"`
	Text string    `json:"text"`
	Time time.Time `json:"time"`
}

// ContentPayload is more of a text.
type ContentPayload struct {
	Content string `json:"content"`
}

// StatusPayload is how far a reply, or one call of it, has come. Without a
// tool it is about the reply as a whole.
type StatusPayload struct {
	State   string      `json:"state"` // processing, complete
	Tool    string      `json:"tool,omitempty"`
	Message string      `json:"message"`
	Data    *StatusData `json:"data,omitempty"`
}

// StatusData are the facts of a status.
type StatusData struct {
	CallID    string          `json:"callId,omitempty"`
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

// ApprovalPayload asks the person whether a call may be made.
type ApprovalPayload struct {
	CallID    string          `json:"callId"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Message   string          `json:"message"`
	Expires   time.Time       `json:"expires"`
}

// QuestionPayload is what a server asks the person in the middle of a call.
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
	// Retry says that the call is made again once the person has been at URL.
	Retry  bool         `json:"retry,omitempty"`
	Prompt []PromptLine `json:"prompt,omitempty"` // what the model would be asked
	Model  string       `json:"model,omitempty"`  // which model that is
}

// PromptLine is one message of what a server wants to ask the model.
type PromptLine struct {
	Role string `json:"role"` // system, user, assistant
	Text string `json:"text"`
}

// AnsweredPayload says what became of a question. One to which the model
// spoke is told of twice: when it was allowed, and with what the model said.
type AnsweredPayload struct {
	QuestionID string `json:"questionId"`
	CallID     string `json:"callId"`
	Action     Action `json:"action"`
	Text       string `json:"text,omitempty"`
}

// UsagePayload counts tokens after a reply.
type UsagePayload struct {
	Model   string    `json:"model"`
	Turn    llm.Usage `json:"turn"`
	Session llm.Usage `json:"session"`
	// Context is how full the model's window was with the last request.
	Context       int `json:"context"`
	ContextWindow int `json:"contextWindow"`
}

// ErrorPayload says what went wrong and what to do.
type ErrorPayload struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	RetryAfter int64  `json:"retryAfterMs,omitempty"`
	// CallID is the approval that the error is about, QuestionID the question.
	CallID     string `json:"callId,omitempty"`
	QuestionID string `json:"questionId,omitempty"`
}

// SessionPayload tells of a change to the session itself.
type SessionPayload struct {
	Title string `json:"title"`
	Model string `json:"model,omitempty"`
}

// HistoryPayload is the conversation so far.
type HistoryPayload struct {
	Title    string           `json:"title"`
	Model    string           `json:"model,omitempty"`
	Messages []HistoryMessage `json:"messages"`
}

// HistoryMessage is one message of a history.
type HistoryMessage struct {
	ID     string     `json:"id"`
	Seq    int64      `json:"seq"`
	Role   llm.Role   `json:"role"`
	Time   time.Time  `json:"time"`
	Parts  []llm.Part `json:"parts"`
	Model  string     `json:"model,omitempty"`
	Usage  *llm.Usage `json:"usage,omitempty"`
	Notice string     `json:"notice,omitempty"` // interrupted, aborted, fallback
}

// ServerState is a server whose tools cannot be used now.
type ServerState struct {
	Server string `json:"server"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// Incoming is one message from a client.
type Incoming struct {
	Type    string          `json:"type"` // message, abort, approve, deny, answer, history
	Payload json.RawMessage `json:"payload"`
}

// The codes of errors that are the chat's own; the rest are kinds of
// [tool.Error].
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
