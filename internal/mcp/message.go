package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// ID is the id of a request as raw JSON: a number or a quoted string. The zero
// ID is that of a notification.
type ID string

// Message is one JSON-RPC message. Its envelope has been decoded; Params,
// Result and Error.Data are the received bytes. A request has Method and ID, a
// notification only Method, a response ID and one of Result and Error.
type Message struct {
	ID     ID
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *Error

	fields *ParamFields // the parsed fields of Params; nil before

	// ResultPrefix contains members that are sent in front of those of Result,
	// each followed by a comma.
	ResultPrefix []byte

	// Of a message decoded with Limits.Repair.
	Repaired bool // invalid UTF-8 was replaced by U+FFFD
	Deep     bool // nested deeper than Limits.MaxDepth
}

// IsRequest reports whether m is a request.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != "" }

// IsNotification reports whether m is a notification.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == "" }

// IsResponse reports whether m is a response.
func (m *Message) IsResponse() bool { return m.Method == "" }

// Error is a JSON-RPC error object, as one side of a connection sent it.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (JSON-RPC %d)", e.Message, e.Code) }

// Error codes of JSON-RPC and of MCP that Junctor itself sends or inspects.
const (
	CodeParseError          = -32700
	CodeInvalidRequest      = -32600
	CodeMethodNotFound      = -32601
	CodeInvalidParams       = -32602
	CodeInternalError       = -32603
	CodeResourceNotFound    = -32002
	CodeURLElicitation      = -32042
	CodeRejected            = -1 // the user declined
	CodeHeaderMismatch      = -32020
	CodeMissingCapability   = -32021
	CodeUnsupportedProtocol = -32022
)

// SignInRequired returns the error of MCP 2025-11-25 that makes a client open a
// URL before it retries the call. It returns nil unless err contains the URL at
// which the caller can sign in to a server with its own login.
func SignInRequired(err error) *Error {
	if err == nil {
		return nil
	}
	e := tool.AsError(err)
	details, _ := e.Details.(map[string]any)
	address, _ := details["url"].(string)
	caller, _ := details["caller"].(string)
	if e.Kind != tool.UpstreamAuthRequired || address == "" || caller == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(address))
	type elicitation struct {
		Mode    string `json:"mode"`
		ID      string `json:"elicitationId"`
		URL     string `json:"url"`
		Message string `json:"message"`
	}
	data := rawjson.MarshalOrNull(map[string]any{"elicitations": []elicitation{{
		"url", hex.EncodeToString(sum[:16]), address, fmt.Sprintf("%v requires you to sign in with your own account.", details["server"]),
	}}})
	return &Error{Code: CodeURLElicitation, Message: e.Msg, Data: data}
}

// ToolError converts an error into the JSON-RPC error of its kind. Its data
// contains the kind's code and the details.
func ToolError(e *tool.Error) *Error {
	data := struct {
		Code       tool.Kind `json:"code"`
		Details    any       `json:"details,omitempty"`
		RetryAfter float64   `json:"retryAfterSeconds,omitempty"`
	}{e.Kind, e.Details, e.RetryAfter.Round(time.Millisecond).Seconds()}
	raw, err := json.Marshal(data)
	if err != nil { // send the error without details that cannot be encoded
		raw, _ = json.Marshal(map[string]tool.Kind{"code": e.Kind})
	}
	return &Error{Code: e.Kind.JSONRPC(), Message: e.Msg, Data: raw}
}
