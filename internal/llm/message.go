package llm

import (
	"encoding/json"
	"strings"

	"junctor/internal/tool"
)

// Role is who speaks in a message.
type Role string

// The roles. The system prompt is not a message: see [Request.System].
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool" // results of the calls in the message before
)

// Message is one entry of a conversation, in a form that every provider can
// be given.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`

	// Native is the assistant's turn as its provider sent it. It is used when
	// the same model goes on, and passed over otherwise.
	Native *Native `json:"-"`
}

// Native is an assistant's turn in its provider's own form.
type Native struct {
	// By names the interface and the model that spoke, see [NativeBy].
	By   string          `json:"by"`
	Data json.RawMessage `json:"data"`
}

// Part is a piece of a message; exactly one field is set.
type Part struct {
	Text      string      `json:"text,omitempty"`
	Reasoning string      `json:"reasoning,omitempty"` // what the model shows of its thinking
	Image     *Image      `json:"image,omitempty"`
	Call      *ToolCall   `json:"call,omitempty"`
	Result    *ToolResult `json:"result,omitempty"`
}

// Image is a picture that a person gave.
type Image struct {
	MIME string `json:"mime"`
	Data []byte `json:"data"`
}

// ToolCall is a call that the model asks for.
type ToolCall struct {
	ID string `json:"id"`
	// Name is the declared name, which a model may also have invented.
	Name string `json:"name"`
	// Tool is the tool that the name leads to; zero when there is none.
	Tool tool.Name `json:"tool,omitzero"`
	// Arguments are a JSON object, mended where the declaration had to differ
	// from the tool's own schema.
	Arguments json.RawMessage `json:"arguments"`
	// Malformed is what came when it was not a JSON object. Arguments are
	// then empty, so that the history stays one that every provider accepts.
	Malformed string `json:"malformed,omitempty"`
	// Problem says what is wrong with Malformed.
	Problem string `json:"problem,omitempty"`
}

// ToolResult answers a call.
type ToolResult struct {
	CallID string `json:"callId"`
	Name   string `json:"name"` // the declared name, as in the call
	// Content is an MCP CallToolResult.
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"isError,omitempty"`
}

// Text returns a message of one text.
func Text(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Text: text}}}
}

// Text returns what the message says, without reasoning and calls.
func (m Message) Text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Calls returns the tool calls of the message.
func (m Message) Calls() []*ToolCall {
	var calls []*ToolCall
	for _, p := range m.Parts {
		if p.Call != nil {
			calls = append(calls, p.Call)
		}
	}
	return calls
}

// Results returns the tool results of the message.
func (m Message) Results() []*ToolResult {
	var results []*ToolResult
	for _, p := range m.Parts {
		if p.Result != nil {
			results = append(results, p.Result)
		}
	}
	return results
}

// TextResult returns a result of one text, for what is said to a model in
// place of a tool's own answer.
func TextResult(call *ToolCall, text string, isError bool) *ToolResult {
	content, err := json.Marshal(map[string]any{
		"content": []any{map[string]string{"type": "text", "text": text}},
		"isError": isError,
	})
	if err != nil { // a map of strings always marshals
		content = json.RawMessage(`{"content":[]}`)
	}
	return &ToolResult{CallID: call.ID, Name: call.Name, Content: content, IsError: isError}
}

// NativeBy returns the name under which an interface and a model keep their
// native turns. The model is part of it because signatures of one model are
// no use to another.
func NativeBy(api, model string) string { return api + ":" + model }
