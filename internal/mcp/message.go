package mcp

import (
	"encoding/json"
	"fmt"
)

// ID is the id of a request as raw JSON: a number or a quoted string. The zero
// ID is that of a notification.
type ID string

// Message is one JSON-RPC message. Its envelope has been read; Params, Result
// and Error.Data are the bytes that came. A request has Method and ID, a
// notification Method alone, a response ID and one of Result and Error.
type Message struct {
	ID     ID
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *Error

	fields *requestFields // what was read of Params; nil before

	lead []byte // members that go in front of those of Result, each with a comma behind it

	// Of a message decoded with Limits.Repair.
	Repaired bool // invalid UTF-8 was replaced by U+FFFD
	Deep     bool // nested deeper than Limits.MaxDepth
}

// IsRequest reports whether m wants an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != "" }

// IsNotification reports whether m is a notification.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == "" }

// IsResponse reports whether m answers a request.
func (m *Message) IsResponse() bool { return m.Method == "" }

// Error is a JSON-RPC error object, as one side of a connection sent it.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (JSON-RPC %d)", e.Message, e.Code) }

// Error codes of JSON-RPC and of MCP that Junctor itself sends or looks at.
const (
	CodeParseError          = -32700
	CodeInvalidRequest      = -32600
	CodeMethodNotFound      = -32601
	CodeInvalidParams       = -32602
	CodeInternalError       = -32603
	CodeResourceNotFound    = -32002
	CodeURLElicitation      = -32042
	CodeHeaderMismatch      = -32020
	CodeMissingCapability   = -32021
	CodeUnsupportedProtocol = -32022
)

// The protocol versions that Junctor speaks, oldest first.
const (
	Version20241105 = "2024-11-05"
	Version20250326 = "2025-03-26"
	Version20250618 = "2025-06-18"
	Version20251125 = "2025-11-25"
	Version20260728 = "2026-07-28"
)
