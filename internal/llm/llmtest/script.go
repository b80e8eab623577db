package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// Script defines the behaviour of the model. The zero Script sends the default
// reply to every request.
type Script struct {
	// Rules are tried in order; the first match is used.
	Rules []Rule `json:"rules"`
	// Default is the reply if no rule matches. An empty one echoes the user's
	// message.
	Default *Reply `json:"default,omitempty"`

	// Key, when set, is the only API key that is accepted.
	Key string `json:"key,omitempty"`
	// Models, when set, are the only models that exist.
	Models []string `json:"models,omitempty"`
	// ContextWindow, when set, is the number of tokens (4 bytes each) that a
	// request may have.
	ContextWindow int `json:"contextWindow,omitempty"`
	// Chunk is the number of characters in one streamed piece, 6 when 0.
	Chunk int `json:"chunk,omitempty"`
	// Reject names top-level request fields that are rejected as unknown, as
	// OpenAI-compatible servers do with fields they do not support.
	Reject []string `json:"reject,omitempty"`
}

// Rule is a condition and its reply.
type Rule struct {
	When  When  `json:"when"`
	Reply Reply `json:"reply"`
	// Times limits how often the rule is used; 0 means no limit. It counts over
	// all conversations, so do not set it if several run concurrently.
	Times int `json:"times,omitempty"`
}

// When is a condition on a request. Every field that is set must match.
type When struct {
	// User is text that the last user message contains, ignoring case.
	User string `json:"user,omitempty"`
	// Match is a regular expression for the last user message. Its groups are
	// available as $1, $2 … in the reply.
	Match string `json:"match,omitempty"`
	// System is text that the system prompt contains.
	System string `json:"system,omitempty"`
	// Results is the number of tool results since the last user message.
	Results *int `json:"results,omitempty"`
	// Result is text that the latest tool result contains.
	Result string `json:"result,omitempty"`
	// History is text that any message contains.
	History string `json:"history,omitempty"`
	// Tool is a tool that must be declared, see [Call].
	Tool string `json:"tool,omitempty"`
	// Model and API must be equal when set; API is chat, responses,
	// anthropic or gemini.
	Model string `json:"model,omitempty"`
	API   string `json:"api,omitempty"`

	match *regexp.Regexp
}

// Reply is the reply of the model. In Text and in the strings of Args these
// placeholders are expanded: $1 (a group of Match), {{user}} (the last user
// message), {{result}} (the latest tool result), {{results}} (all since the
// last user message), {{tools}} (the declared names), {{model}}.
type Reply struct {
	Reasoning string `json:"reasoning,omitempty"`
	Text      string `json:"text,omitempty"`
	// Repeat sends Text that many times.
	Repeat int `json:"repeat,omitempty"`
	// Calls are the parallel tool calls of one turn.
	Calls []Call `json:"calls,omitempty"`
	// Error is sent as an HTTP error instead of a reply.
	Error *Failure `json:"error,omitempty"`
	// DelayMS is the delay before the first byte, in milliseconds.
	DelayMS int `json:"delayMs,omitempty"`
	// GapMS is the delay before each further event, in milliseconds, so that a
	// test can act during a reply.
	GapMS int `json:"gapMs,omitempty"`
	// CutAfter closes the connection after this number of events.
	CutAfter int `json:"cutAfter,omitempty"`
	// StallAfter sends nothing more after this number of events, until the
	// client disconnects; -1 sends nothing at all.
	StallAfter int `json:"stallAfter,omitempty"`
	// BreakAfter sends an error event in the provider's format after this
	// number of events.
	BreakAfter int `json:"breakAfter,omitempty"`
	// Stop replaces the stop reason: "length" or "filter".
	Stop string `json:"stop,omitempty"`
}

// Call is one tool call. Tool is the declared name, or server:tool, or the
// tool's own name; names that the program under test derives from it
// (server__tool, mcp__junctor__tool …) are found. A tool that is not declared
// is called anyway, to simulate a hallucination.
type Call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"`
	// ID, if set, is the id of the call, to simulate a service with duplicate
	// ids.
	ID string `json:"id,omitempty"`
	// Raw, if set, is sent as the arguments unchanged, for example broken JSON.
	// Gemini sends arguments as an object, so there it becomes a
	// MALFORMED_FUNCTION_CALL.
	Raw string `json:"raw,omitempty"`
}

// Failure is an HTTP error.
type Failure struct {
	Status int `json:"status"`
	// Code is the provider's code or type; if empty, one that matches the
	// status.
	Code       string `json:"code,omitempty"`
	Message    string `json:"message,omitempty"`
	RetryAfter string `json:"retryAfter,omitempty"` // the header, as it is
}

// ParseScript parses a script and reports everything that is wrong with it.
func ParseScript(data []byte) (Script, error) {
	var s Script
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Script{}, fmt.Errorf("script: %w", err)
	}
	return s, s.compile()
}

func (s *Script) compile() error {
	var errs []error
	for i := range s.Rules {
		r := &s.Rules[i]
		if r.When.Match != "" {
			re, err := regexp.Compile(r.When.Match)
			if err != nil {
				errs = append(errs, fmt.Errorf("rule %d: match: %w", i, err))
			}
			r.When.match = re
		}
		for j, c := range r.Reply.Calls {
			if c.Tool == "" {
				errs = append(errs, fmt.Errorf("rule %d: call %d names no tool", i, j))
			}
		}
		if e := r.Reply.Error; e != nil && (e.Status < 400 || e.Status > 599) {
			errs = append(errs, fmt.Errorf("rule %d: error status %d is not a failure", i, e.Status))
		}
	}
	return errors.Join(errs...)
}

// N returns a pointer to n, for When.Results.
func N(n int) *int { return &n }
