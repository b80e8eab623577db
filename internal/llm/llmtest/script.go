package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// Script says how the model behaves. The zero Script answers every request
// with the default reply.
type Script struct {
	// Rules are tried in order; the first that fits answers.
	Rules []Rule `json:"rules"`
	// Default answers when no rule fits. An empty one says what was asked.
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
	// Reject names top-level request fields that are refused as unknown, as
	// OpenAI-compatible servers do with the ones they lack.
	Reject []string `json:"reject,omitempty"`
}

// Rule is one condition and the answer to it.
type Rule struct {
	When  When  `json:"when"`
	Reply Reply `json:"reply"`
	// Times limits how often the rule answers; 0 means always. It counts over
	// all conversations, so leave it alone where several run at once.
	Times int `json:"times,omitempty"`
}

// When is a condition on a request. Every field that is set must hold.
type When struct {
	// User is text that the last user message contains, in any case.
	User string `json:"user,omitempty"`
	// Match is a regular expression on the last user message. Its groups
	// stand as $1, $2 … in the reply.
	Match string `json:"match,omitempty"`
	// System is text that the system prompt contains.
	System string `json:"system,omitempty"`
	// Results is the number of tool results since the last user message.
	Results *int `json:"results,omitempty"`
	// Result is text that the latest tool result contains.
	Result string `json:"result,omitempty"`
	// History is text that any message contains.
	History string `json:"history,omitempty"`
	// Tool is a tool that must be offered, see [Call].
	Tool string `json:"tool,omitempty"`
	// Model and API must be equal when set; API is chat, responses,
	// anthropic or gemini.
	Model string `json:"model,omitempty"`
	API   string `json:"api,omitempty"`

	match *regexp.Regexp
}

// Reply is what the model answers. In Text and in the strings of Args these
// stand for parts of the request: $1 (a group of Match), {{user}} (the last
// user message), {{result}} (the latest tool result), {{results}} (all since
// the last user message), {{tools}} (the names offered), {{model}}.
type Reply struct {
	Reasoning string `json:"reasoning,omitempty"`
	Text      string `json:"text,omitempty"`
	// Repeat sends Text that many times: a reply of any length.
	Repeat int `json:"repeat,omitempty"`
	// Calls are tool calls of one turn, in parallel.
	Calls []Call `json:"calls,omitempty"`
	// Error answers with a failure before any byte of a reply.
	Error *Failure `json:"error,omitempty"`
	// Delay waits so many milliseconds before the first byte.
	DelayMS int `json:"delayMs,omitempty"`
	// GapMS waits so many milliseconds before each further event, so that a
	// reply can be caught in the middle.
	GapMS int `json:"gapMs,omitempty"`
	// CutAfter drops the connection after so many events.
	CutAfter int `json:"cutAfter,omitempty"`
	// StallAfter goes silent after so many events, until the client leaves;
	// -1 is silent from the start.
	StallAfter int `json:"stallAfter,omitempty"`
	// BreakAfter sends an error event of the provider's own form after so many events.
	BreakAfter int `json:"breakAfter,omitempty"`
	// Stop replaces the reason for the end: "length" or "filter".
	Stop string `json:"stop,omitempty"`
}

// Call is one tool call. Tool is the name as offered, or server:tool, or the
// tool's own name: whatever the program under test made of it (server__tool,
// mcp__junctor__tool …) is found. A tool that is not offered is called all
// the same: a hallucination.
type Call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"`
	// Raw, when set, is sent as the arguments as it is: broken JSON, say.
	// Gemini carries arguments as an object, so there it becomes
	// a MALFORMED_FUNCTION_CALL.
	Raw string `json:"raw,omitempty"`
}

// Failure is an HTTP error.
type Failure struct {
	Status int `json:"status"`
	// Code is the provider's code or type; a fitting one when empty.
	Code       string `json:"code,omitempty"`
	Message    string `json:"message,omitempty"`
	RetryAfter string `json:"retryAfter,omitempty"` // the header, as it is
}

// ParseScript reads a script from JSON and reports everything wrong with it.
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
