package llm

import (
	"context"
	"errors"
	"iter"
)

// Model is one language model.
type Model interface {
	// Info says which model this is and what it takes.
	Info() Info

	// Stream asks for the next turn. Events arrive as the model speaks; the
	// last one has Turn set. An error ends the stream; what was said before
	// it stands. Breaking off the loop or ending ctx aborts the request.
	Stream(ctx context.Context, req Request) iter.Seq2[Event, error]
}

// Info describes a model.
type Info struct {
	ID            string // by which a session chooses it
	Provider      Provider
	Model         string
	ContextWindow int  // tokens
	MaxTokens     int  // tokens of one reply; 0 when the provider decides
	PromptTools   bool // tools go into the prompt
	SystemPrompt  string
}

// Request is what a model is asked.
type Request struct {
	System   string
	Guidance string // how to use the tools, in the words of their servers
	Messages []Message
	Tools    *Toolset // nil: none

	Choice Choice // whether a tool must be called
	Only   string // with Required: the declared name of the tool to call; empty: any
	Single bool   // no parallel calls, where the provider can be told so

	MaxTokens int    // 0: the model's own
	CacheKey  string // something stable per conversation, for the provider's cache
}

// Choice says whether the model may call tools.
type Choice string

// The choices. The zero Choice is Auto.
const (
	Auto     Choice = ""
	None     Choice = "none"
	Required Choice = "required"
)

// Event is one step of a reply; exactly one field is set.
type Event struct {
	Text      string    // more of the text
	Reasoning string    // more of the thinking that the model shows
	Start     *ToolCall // a call has begun: ID and Name are known, the arguments still come
	Call      *ToolCall // a call is complete
	Turn      *Turn     // the end
}

// Turn is a whole reply.
type Turn struct {
	Message Message
	Stop    Stop
	Detail  string // the provider's own word for an unusual end
	Usage   Usage
}

// Stop is why a reply ended.
type Stop string

// The reasons for an end.
const (
	StopEnd       Stop = "end"       // the model has said what it wanted to
	StopCalls     Stop = "calls"     // it waits for the results of its calls
	StopLength    Stop = "length"    // it ran into the limit of tokens
	StopFilter    Stop = "filter"    // it refused, or the provider withheld the reply
	StopMalformed Stop = "malformed" // it tried to call a tool and failed to write the call
	StopPause     Stop = "pause"     // the provider wants to be asked to go on
	StopOther     Stop = "other"
)

// Usage counts tokens, as the provider did.
type Usage struct {
	Input     int `json:"input"`               // the prompt, cached parts included
	Cached    int `json:"cached,omitempty"`    // of the prompt, what came from the provider's cache
	Output    int `json:"output"`              // the reply, reasoning included
	Reasoning int `json:"reasoning,omitempty"` // of the reply, what was thinking
}

// Add returns the sum of two counts.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Cached + v.Cached, u.Output + v.Output, u.Reasoning + v.Reasoning}
}

// Collect reads a stream to its end and returns the turn. Each event but the
// last goes to on, which may be nil. After an error the turn holds what had
// been said; calls that were not complete are not in it, and it has no
// native form, because half a turn has none.
func Collect(stream iter.Seq2[Event, error], on func(Event)) (Turn, error) {
	var said Builder
	for ev, err := range stream {
		if err != nil {
			return Turn{Message: said.Message()}, err
		}
		switch {
		case ev.Turn != nil:
			return *ev.Turn, nil
		case ev.Text != "":
			said.Text(ev.Text)
		case ev.Reasoning != "":
			said.Reasoning(ev.Reasoning)
		case ev.Call != nil:
			said.Call(ev.Call, true)
		}
		if on != nil {
			on(ev)
		}
	}
	return Turn{Message: said.Message()}, errors.New("llm: the stream ended without a turn")
}
