package agentify

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"junctor/internal/rawjson"
	"junctor/internal/schema"
	"junctor/internal/tool"
)

// Task is a task that a client requests.
type Task struct {
	// Query describes the task in plain language.
	Query   string  `json:"query"`
	Context Context `json:"context,omitzero"`

	// DryRun returns only the plan and makes no call.
	DryRun bool `json:"dryRun,omitempty"`

	// Explain adds the plan and the steps that led to it to the result.
	Explain bool `json:"explain,omitempty"`
}

// Context is the context of the user's editor.
type Context struct {
	ActiveDocumentURI       string `json:"activeDocumentURI,omitempty"`
	CurrentWorkingDirectory string `json:"currentWorkingDirectory,omitempty"`
	SelectionText           string `json:"selectionText,omitempty"`
}

// taskSchema is the input schema of the tool orchestrate_task. Every task is
// validated against it, whatever the protocol. It also bounds the size of a
// task.
const taskSchema = `{"type":"object","properties":{` +
	`"query":{"type":"string","pattern":"\\S","maxLength":65536,"description":"What is to be done, in plain words"},` +
	`"context":{"type":"object","description":"What the user is looking at","properties":{` +
	`"activeDocumentURI":{"type":"string","maxLength":8192,"description":"The open document, such as file:///home/me/app/main.go"},` +
	`"currentWorkingDirectory":{"type":"string","maxLength":4096,"description":"Where relative paths start"},` +
	`"selectionText":{"type":"string","maxLength":1048576,"description":"The selected text"}}},` +
	`"dryRun":{"type":"boolean","description":"Return the planned call without making it"},` +
	`"explain":{"type":"boolean","description":"Return plan, steps and result instead of the result alone"}},` +
	`"required":["query"]}`

// ParseTask parses and validates a task. All violations are reported in one
// error of the kind InvalidArguments. Unknown members are ignored, because
// editors add their own.
func (f *Face) ParseTask(raw json.RawMessage) (Task, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage(`{}`)
	}
	for _, path := range [][]string{{"context", "activeDocumentURI"}, {"context", "currentWorkingDirectory"}, {"context", "selectionText"}, {"context"}, {"dryRun"}, {"explain"}} {
		if string(rawjson.Field(raw, path...)) == "null" { // the same as absent
			raw = rawjson.DeleteField(raw, path...)
		}
	}
	compiled, err := f.check()
	if err != nil {
		return Task{}, err
	}
	violations, err := compiled.Check(context.Background(), raw)
	if err != nil {
		return Task{}, &tool.Error{Kind: tool.InvalidRequest, Msg: "the task is too large to check", Err: err}
	}
	var t Task
	if len(violations) == 0 {
		if err := json.Unmarshal(raw, &t); err != nil {
			violations = append(violations, schema.Violation{Message: err.Error()})
		}
	}
	if uri := rawjson.FieldString(raw, "context", "activeDocumentURI"); uri != "" {
		if u, err := url.Parse(uri); err != nil || u.Scheme == "" {
			violations = append(violations, schema.Violation{Path: "/context/activeDocumentURI", Message: "must be a URI, such as file:///home/me/app/main.go"})
		}
	}
	if len(violations) == 0 {
		return t, nil
	}
	texts := make([]string, len(violations))
	for i, v := range violations {
		if strings.HasSuffix(v.Schema, "/query/pattern") { // the pattern is not a helpful message
			v.Message = "must say in plain words what to do"
			violations[i] = v
		}
		texts[i] = strings.TrimPrefix(v.Path+": "+v.Message, ": ")
	}
	return Task{}, &tool.Error{
		Kind: tool.InvalidArguments, Msg: "the task is not valid: " + strings.Join(texts, "; "),
		Details: map[string]any{"violations": violations},
	}
}

// Plan is the single call that carries out a task.
type Plan struct {
	BackendID string          `json:"backendId"`
	Method    string          `json:"mcpMethod"`
	Params    json.RawMessage `json:"mcpParams"`

	// Reason explains the choice of the call, in the words of the model or by
	// the ranking of the search.
	Reason string `json:"reason"`

	// Approval is "ask" if a person must approve the call first; otherwise it
	// is absent.
	Approval string `json:"approval,omitempty"`

	name      tool.Name // of a tool
	arguments json.RawMessage
}

// Suggestion is a tool that came near.
type Suggestion struct {
	Tool      string  `json:"tool"`
	Summary   string  `json:"summary"`
	Relevance float64 `json:"relevance"`
}

// Refusal describes why no call could be determined; it is in the details of a
// NoAction error.
type Refusal struct {
	Query       string       `json:"query"`
	Reason      string       `json:"reason"`
	Suggestions []Suggestion `json:"suggestions"`
	Problems    []string     `json:"problems,omitempty"` // why the model's choice could not be used
	Pending     []string     `json:"pending,omitempty"`  // backends that are still starting
	Down        []string     `json:"down,omitempty"`     // backends that cannot be reached
}

// noAction returns the error of a task that leads to no call.
func noAction(r Refusal) error {
	r.Query = tool.Shorten(r.Query, 1000)
	if r.Suggestions == nil {
		r.Suggestions = []Suggestion{}
	}
	msg := "no action could be determined for the query: " + strings.TrimRight(r.Reason, ". ")
	if len(r.Suggestions) > 0 {
		var near []string
		for _, s := range r.Suggestions[:min(3, len(r.Suggestions))] {
			near = append(near, s.Tool)
		}
		msg += "; nearest: " + strings.Join(near, ", ")
	}
	if len(r.Pending) > 0 {
		msg += "; still starting: " + strings.Join(r.Pending, ", ")
	}
	return &tool.Error{Kind: tool.NoAction, Msg: msg, Details: r}
}
