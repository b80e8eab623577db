// Package upstreamtest provides MCP servers for tests, correct and faulty ones:
// in the process, as a child process, and over HTTP.
//
// A [Script] specifies how a server behaves. With an empty script a server is
// correct, supports both eras of the protocol and has the tools of [Tools].
// Faults happen on a real connection: nothing here is a mock.
package upstreamtest

import (
	"encoding/json"
	"fmt"

	"junctor/internal/rawjson"
)

// Script specifies how a server behaves. It can be encoded as JSON, because
// child processes receive it in their environment.
type Script struct {
	Name         string `json:"name,omitempty"` // "test" when empty
	Version      string `json:"version,omitempty"`
	Instructions string `json:"instructions,omitempty"`

	// OldEra makes server/discover an unknown method.
	OldEra bool `json:"oldEra,omitempty"`

	// Tools are the definitions that are listed, as they are; nil means
	// those of the function Tools. Calls are answered by name whether the
	// tool is listed or not.
	Tools    []json.RawMessage `json:"tools,omitempty"`
	PageSize int               `json:"pageSize,omitempty"` // of tools/list; 0 means one page

	// EndlessPages makes every page of tools/list point to another.
	EndlessPages bool `json:"endlessPages,omitempty"`

	// NoTools leaves tools out of the capabilities and refuses tools/list.
	NoTools bool `json:"noTools,omitempty"`

	// ToolsError is the message of the error that tools/list answers.
	ToolsError string `json:"toolsError,omitempty"`

	// Guidance is the text of the prompt tool-descriptions; GuidanceRaw, the
	// whole result of prompts/get, is for wrong ones.
	Guidance    string          `json:"guidance,omitempty"`
	GuidanceRaw json.RawMessage `json:"guidanceRaw,omitempty"`

	// Mute is a method that is never answered, until cancelled.
	Mute string `json:"mute,omitempty"`

	// What goes wrong on a connection of a child or in the process.
	StartDelayMs int      `json:"startDelayMs,omitempty"` // before anything is read
	Exit         int      `json:"exit,omitempty"`         // end at once with this code
	LeaveOn      string   `json:"leaveOn,omitempty"`      // end when a request of this method comes
	Hang         bool     `json:"hang,omitempty"`         // read, and never answer
	WrongIDs     bool     `json:"wrongIds,omitempty"`     // answer with ids that nobody used
	Stray        []string `json:"stray,omitempty"`        // lines on stdout before everything else
	Stderr       []string `json:"stderr,omitempty"`       // lines on stderr
	Deaf         bool     `json:"deaf,omitempty"`         // do not end when stdin does
}

// Tools returns the definitions of the tools that every server here supports:
//
//	echo      answers with its arguments as text
//	whoami    answers with a number that is unique to the session
//	fail      answers with a result that is an error
//	refuse    answers with a JSON-RPC error
//	progress  sends n progress notifications, then answers
//	ask       elicits a name from the caller and answers with the response
//	sample    asks the caller's model and answers with the response
//	silent    never answers, until cancelled
//	die       ends the server or the connection during the call
//	huge      answers with bytes bytes of text
//	stray     prints a line that is not a message, then answers
//	change    adds a tool and sends list_changed, then answers
//	environ   answers with the environment and the folder of the process
//	headers   answers with the HTTP headers of the request
func Tools() []json.RawMessage {
	names := []string{"echo", "whoami", "fail", "refuse", "progress", "ask", "sample", "silent", "die", "huge", "stray", "change", "environ", "headers"}
	tools := make([]json.RawMessage, len(names))
	for i, name := range names {
		tools[i] = Tool(name, "the tool "+name)
	}
	return tools
}

// Tool returns a definition of a tool that accepts any object.
func Tool(name, description string) json.RawMessage {
	b, err := json.Marshal(map[string]any{
		"name": name, "description": description, "inputSchema": map[string]any{"type": "object"},
		"annotations": map[string]any{"readOnlyHint": name == "echo" || name == "whoami"},
	})
	if err != nil {
		panic(fmt.Sprintf("upstreamtest: %v", err)) // strings always marshal
	}
	return b
}

// Text returns a result with one text block, like those of the tools here.
func Text(s string) json.RawMessage {
	b, err := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": s}}})
	if err != nil {
		panic(fmt.Sprintf("upstreamtest: %v", err))
	}
	return b
}

// TextOf returns the text of the first block of a result.
func TextOf(result json.RawMessage) string {
	for block := range rawjson.Elements(rawjson.Field(result, "content")) {
		return rawjson.FieldString(block, "text")
	}
	return ""
}
