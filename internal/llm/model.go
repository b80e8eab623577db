package llm

import (
	"context"
	"errors"
	"iter"
)

// Model is one language model.
type Model interface {
	// Info returns the model's name and limits.
	Info() Info

	// Stream requests the next turn. Events are delivered as they arrive; the
	// last one has Turn set. An error ends the stream; events before it are
	// valid. Leaving the loop or cancelling ctx aborts the request.
	Stream(ctx context.Context, req Request) iter.Seq2[Event, error]
}

// Info describes a model.
type Info struct {
	ID            string // the name by which sessions choose it
	Provider      Provider
	Model         string
	ContextWindow int // tokens
	MaxTokens     int // maximum tokens of one reply; 0 if the provider decides
	SystemPrompt  string
}

// Request is a request to a model.
type Request struct {
	System   string
	Guidance string // the servers' instructions for their tools
	Messages []Message
	Tools    *Toolset // nil means none

	Choice Choice // whether a tool must be called
	Only   string // with Required: the declared name of the tool to call; empty means any
	Single bool   // no parallel calls, if the provider supports that

	Temperature *float64 // nil means the model's own

	MaxTokens int    // 0 means the model's own limit
	CacheKey  string // stable per conversation, for the provider's prompt cache
}

// TemperatureOr returns the temperature of the request, or that of the model.
func (r Request) TemperatureOr(own *float64) *float64 {
	if r.Temperature != nil {
		return r.Temperature
	}
	return own
}

// Choice controls whether the model may or must call tools.
type Choice string

// The choices. The zero Choice is Auto.
const (
	Auto     Choice = ""
	None     Choice = "none"
	Required Choice = "required"
)

// Event is one step of a reply; exactly one field is set.
type Event struct {
	Text      string    // a piece of text
	Reasoning string    // a piece of visible reasoning
	Call      *ToolCall // a call is complete
	Turn      *Turn     // the end of the reply
}

// Turn is a complete reply.
type Turn struct {
	Message Message
	Stop    Stop
	Detail  string // the provider's reason for an unusual end
	Usage   Usage
}

// Stop is why a reply ended.
type Stop string

// The reasons for an end.
const (
	StopEnd       Stop = "end"       // the model completed the reply
	StopCalls     Stop = "calls"     // the model requires the results of its calls
	StopLength    Stop = "length"    // the token limit was reached
	StopFilter    Stop = "filter"    // the model refused, or the provider withheld the reply
	StopMalformed Stop = "malformed" // the model produced an invalid tool call
	StopPause     Stop = "pause"     // the provider paused the reply; another request continues it
	StopOther     Stop = "other"
)

// Usage is the number of tokens used, as reported by the provider.
type Usage struct {
	Input     int `json:"input"`               // tokens of the prompt, including cached ones
	Cached    int `json:"cached,omitempty"`    // tokens of the prompt read from the provider's cache
	Output    int `json:"output"`              // tokens of the reply, including reasoning
	Reasoning int `json:"reasoning,omitempty"` // tokens of the reply used for reasoning
}

// Add returns the sum of two counts.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Cached + v.Cached, u.Output + v.Output, u.Reasoning + v.Reasoning}
}

// Collect reads a stream to its end and returns the turn. It passes each event
// but the last to on, which may be nil. After an error the turn contains the
// events so far, without incomplete calls and without a native form.
func Collect(stream iter.Seq2[Event, error], on func(Event)) (Turn, error) {
	var reply Builder
	for ev, err := range stream {
		if err != nil {
			return Turn{Message: reply.Message()}, err
		}
		switch {
		case ev.Turn != nil:
			return *ev.Turn, nil
		case ev.Text != "":
			reply.Text(ev.Text)
		case ev.Reasoning != "":
			reply.Reasoning(ev.Reasoning)
		case ev.Call != nil:
			reply.Call(ev.Call, true)
		}
		if on != nil {
			on(ev)
		}
	}
	return Turn{Message: reply.Message()}, errors.New("llm: the stream ended without a turn")
}
