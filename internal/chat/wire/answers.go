package wire

import (
	"encoding/json"

	"junctor/internal/approval"
)

// Scope is how long an approval applies.
type Scope = approval.Scope

// The scopes.
const (
	Once       = approval.Once
	ForSession = approval.ForSession
	Always     = approval.Always
)

// Decision is a user's answer to an approval request.
type Decision struct {
	Approve bool   `json:"approve"`
	Scope   Scope  `json:"scope,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// The kinds of question.
const (
	QuestionForm  = "form"  // fill in a form
	QuestionURL   = "url"   // open a URL
	QuestionModel = "model" // let the server use the model
)

// Action is the outcome of a question.
type Action string

// The actions. The answer of a user is one of the first three.
const (
	Accept    Action = "accept"
	Decline   Action = "decline"
	Cancel    Action = "cancel"
	Expired   Action = "expired"   // not answered in time
	Withdrawn Action = "withdrawn" // the server or the call ended first
)

// Answer is a user's answer to a question.
type Answer struct {
	Action  Action          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"` // of a form
	Scope   Scope           `json:"scope,omitempty"`   // of the use of the model
}
