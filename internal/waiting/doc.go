// Package waiting keeps one record for each call that waits: for its result, for
// an approval, or for the answer to a question. Tasks, questions and approvals
// are views of these records.
//
// A record is in the store, so that every node can read it, answer it and
// cancel it. The process that executes the call owns the record and is the only
// one that continues the call: an answer is data for the owner and never causes
// a second execution. If the owner dies before the call has ended, readers get
// the status failed. But if the call waits for a task that a server keeps,
// another process takes the record over and waits for the task. If the store is
// not available when a call ends, the owner keeps the record until it is
// stored.
//
// The owner:
//
//	call, err := calls.Start(ctx, waiting.StartOptions{Caller: c, Tool: name, Arguments: args})
//	ctx, stop := call.Context(ctx)        // cancelled when the record is cancelled
//	defer stop()
//	answer, err := call.Ask(ctx, waiting.Input{Kind: "approval", Params: p})
//	call.Finish(ctx, result, err)         // stores the result for the time to live
//	call.Release(ctx)                     // or deletes the record: the client has the result
//
// Code that runs with the context finds the record with [From], so that a call
// has only one record, however many things it waits for.
//
// All others use [Service.Get], [Service.List], [Service.Await] (until a record
// changes), [Service.Answer] and [Service.Cancel]. These check only what their
// comments say. The HTTP handlers let the caller of a call read, answer and
// cancel it, and administrators see approvals. Others get "not found".
//
// Records are limited: in number per caller, in the bytes of arguments, questions,
// answers and results, and in time.
package waiting

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"junctor/internal/tool"
)

// Status is the state of a waiting call.
type Status string

// The states, with the names of MCP tasks. The last three are final.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
)

// Final reports whether the status can no longer change.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Cancelled }

// KindApproval is the kind of an input that is the approval of the call. The
// kinds of questions are their MCP methods, such as elicitation/create.
const KindApproval = "approval"

// Input is a question or an approval that a call waits for.
type Input struct {
	ID      string          `json:"id"`               // unique in the call; assigned by Ask
	Kind    string          `json:"kind"`             // approval, or the MCP method of the question
	Params  json.RawMessage `json:"params,omitempty"` // parameters of the question
	Asked   time.Time       `json:"asked"`            // when the question was asked; set by Ask
	Expires time.Time       `json:"expires,omitzero"` // when the question expires; absent if it lasts as long as the call
	Answer  json.RawMessage `json:"answer,omitempty"` // the answer, until the owner of the call has received it
	By      string          `json:"by,omitempty"`     // id of the caller that answered
	ByName  string          `json:"byName,omitempty"` // name of the caller that answered
}

// Failure is the reason why a call failed, as in the body of an error response.
type Failure struct {
	Code    tool.Kind       `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Record is the state of one waiting call.
type Record struct {
	ID         string          `json:"id"`
	Status     Status          `json:"status"`
	Message    string          `json:"statusMessage,omitempty"` // description of the status, such as that of the server's task
	Tool       string          `json:"tool"`                    // server:tool
	Arguments  json.RawMessage `json:"arguments,omitempty"`     // redacted; long arguments are a shortened text
	Caller     string          `json:"caller"`                  // id of the caller
	CallerName string          `json:"callerName,omitempty"`
	Face       string          `json:"face,omitempty"` // API through which the call was made
	Session    string          `json:"session,omitempty"`
	Created    time.Time       `json:"created"`
	Updated    time.Time       `json:"updated"`
	Expires    time.Time       `json:"expires"` // when the record is deleted
	TTL        time.Duration   `json:"-"`       // how long it is kept after the call
	Inputs     []Input         `json:"inputs,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`  // MCP result of a completed call; absent in lists
	IsError    bool            `json:"isError,omitempty"` // the tool reported a failure
	Error      *Failure        `json:"error,omitempty"`   // only if the call failed

	Profiles []string        `json:"-"`       // with which the call was made
	Owner    string          `json:"-"`       // the process that executes the call
	Task     tool.ServerTask `json:"-"`       // that the call waits for, if another process can too
	Version  int64           `json:"version"` // increases with every change of the record
}

// MadeBy reports whether the record is of a call of the caller. A caller with
// profiles has only the calls that were made with all of them.
func (r *Record) MadeBy(c *tool.Caller) bool {
	return r.Caller == c.ID && !slices.ContainsFunc(c.Profiles.Names(), func(name string) bool { return !slices.Contains(r.Profiles, name) })
}

// Input returns the input with the id, or the first one if the id is empty. It
// returns nil if there is none.
func (r *Record) Input(id string) *Input {
	for i := range r.Inputs {
		if r.Inputs[i].ID == id || id == "" {
			return &r.Inputs[i]
		}
	}
	return nil
}

// StartOptions describe the call for which a record is created.
type StartOptions struct {
	Caller    tool.Caller
	Face      string
	Session   string
	Tool      string
	Arguments json.RawMessage // as they may be shown: redacted
	TTL       time.Duration   // how long the result is kept; 0 means defaultTTL
	Task      tool.ServerTask // as for Call.SetTask
}

// The limits of records.
const (
	defaultTTL = time.Hour
	MaxTTL     = 24 * time.Hour

	maxOpen      = 100      // calls of one caller that wait at a time in one process
	maxInputs    = 16       // of one call at a time
	maxArguments = 16 << 10 // bytes that are shown
	maxParams    = 64 << 10 // bytes of a question
	maxAnswer    = 256 << 10
	maxDetails   = 16 << 10 // bytes of an error
	maxTask      = 4 << 10  // bytes of the name of a task
	maxResult    = 4 << 20
	maxKept      = 64 << 20 // bytes of results that one process stores for one caller
	maxEnded     = 1000     // ended calls that one process stores for one caller
)

type contextKey struct{}

// From returns the record of the call that ctx belongs to, or nil.
func From(ctx context.Context) *Call {
	c, _ := ctx.Value(contextKey{}).(*Call)
	return c
}
