package llm

import (
	"encoding/json"
	"strings"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Role is the author of a message.
type Role string

// The roles. The system prompt is not a message: see [Request.System].
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool" // results of the calls in the message before
)

// Message is one message of a conversation, in a provider-independent form.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`

	// Native is the assistant's turn as sent by its provider. It is used if the
	// same model continues, and ignored otherwise.
	Native *Native `json:"-"`
}

// Native is an assistant's turn in the format of its provider.
type Native struct {
	// By identifies the API and the model that created it, see [NativeBy].
	By   string          `json:"by"`
	Data json.RawMessage `json:"data"`
}

// Part is one part of a message. Exactly one field is set.
type Part struct {
	Text      string      `json:"text,omitempty"`
	Reasoning string      `json:"reasoning,omitempty"` // the part of its reasoning that the model shows
	Image     *Image      `json:"image,omitempty"`
	File      *File       `json:"file,omitempty"`
	Call      *ToolCall   `json:"call,omitempty"`
	Result    *ToolResult `json:"result,omitempty"`
}

// Image is an image provided by the user.
type Image struct {
	MIME string `json:"mime"`
	Data []byte `json:"data"`
}

// File is a file provided by the user: text, or a PDF document.
type File struct {
	Name string `json:"name"`
	MIME string `json:"mime"`
	Size int    `json:"size"` // in bytes
	Data []byte `json:"data,omitempty"`
}

// MIMEPDF is the type of a PDF document.
const MIMEPDF = "application/pdf"

// asText returns a text file as text for the model.
func (f *File) asText() string {
	fence := "```"
	for strings.Contains(string(f.Data), fence) {
		fence += "`"
	}
	return "\n\nFile " + f.Name + ":\n" + fence + "\n" + strings.TrimRight(string(f.Data), "\n") + "\n" + fence + "\n"
}

// WithTextFiles returns the message with the content of text files inlined. PDF
// documents stay files if documents is true, and are replaced by a note
// otherwise.
func (m Message) WithTextFiles(documents bool) Message {
	out := m
	out.Parts = nil
	for _, p := range m.Parts {
		switch {
		case p.File == nil || p.File.MIME == MIMEPDF && documents:
		case p.File.MIME == MIMEPDF:
			p = Part{Text: "\n\n(The file " + p.File.Name + " is a PDF document, which you cannot read.)"}
		default:
			p = Part{Text: p.File.asText()}
		}
		out.Parts = append(out.Parts, p)
	}
	return out
}

// TakesDocuments reports whether the models of a provider read PDF documents.
func (p Provider) TakesDocuments() bool { return p == Gemini || p == OpenAI || p == Anthropic }

// ToolCall is a call requested by the model.
type ToolCall struct {
	ID string `json:"id"`
	// Name is the tool name that the model used, which need not be a declared
	// one.
	Name string `json:"name"`
	// Tool is the tool that Name refers to; absent if there is none.
	Tool tool.Name `json:"tool,omitzero"`
	// Arguments is a JSON object. If the declaration differs from the tool's own
	// schema, the arguments are converted to that schema.
	Arguments json.RawMessage `json:"arguments"`
	// Malformed is the text received as arguments if it was not a JSON object.
	// Arguments is then empty, so that every provider accepts the history.
	Malformed string `json:"malformed,omitempty"`
	// Problem describes what is wrong with Malformed.
	Problem string `json:"problem,omitempty"`

	bare bool // no arguments were received, not even an empty object
}

// ToolResult is the result of a call.
type ToolResult struct {
	CallID string `json:"callId"` // the id of the ToolCall
	Name   string `json:"name"`   // the name in the ToolCall
	// Content is an MCP CallToolResult.
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"isError,omitempty"`
	TookMs  int64           `json:"tookMs,omitempty"` // duration of the call in milliseconds
}

// Text returns a message with one text part.
func Text(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Text: text}}}
}

// Text returns the text of the message, without reasoning and calls.
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

// TextResult returns a result with one text, for messages to a model in place
// of a tool's result.
func TextResult(call *ToolCall, text string, isError bool) *ToolResult {
	content := rawjson.MarshalOrNull(map[string]any{
		"content": []any{map[string]string{"type": "text", "text": text}},
		"isError": isError,
	})
	return &ToolResult{CallID: call.ID, Name: call.Name, Content: content, IsError: isError}
}

// NativeBy returns the identifier of the native turns of an API and a model.
// The model is included because signatures of one model are invalid for
// another.
func NativeBy(api, model string) string { return api + ":" + model }
