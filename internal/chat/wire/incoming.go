package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"junctor/internal/tool"
)

// The messages from clients.
type (
	// SendMessage sends a message to the model.
	SendMessage struct {
		Text  string `json:"text"`
		Model string `json:"model"` // from now on; empty: as before
		// Edit is the id of the user's message that this one replaces, on a new
		// branch.
		Edit string
		// Again is the id of the message to answer again, or of its reply. Text
		// is empty then.
		Again       string
		Attachments []Attachment
	}
	// SwitchMessage makes the branch of a message the current one.
	SwitchMessage struct{ MessageID string }
	// PreferMessage replaces the preferences of the conversation.
	PreferMessage struct{ Preferences Preferences }
	// AbortMessage stops the reply.
	AbortMessage struct{}
	// DecideMessage answers an approval.
	DecideMessage struct {
		CallID   string
		Decision Decision
	}
	// AnswerMessage answers a server's question.
	AnswerMessage struct {
		QuestionID string
		Answer     Answer
	}
	// HistoryRequest requests the history.
	HistoryRequest struct{}
)

// Parse parses a client's message and returns one of the types above. The error
// describes what is wrong with it.
func Parse(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, &tool.Error{Kind: tool.ParseFailed, Msg: "the message is not valid UTF-8"}
	}
	var in Incoming
	if err := json.Unmarshal(data, &in); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &tool.Error{Kind: tool.ParseFailed, Msg: "the message is not JSON"}
		}
		return nil, invalid(`a message must be an object with "type" and "payload"`)
	}
	payload := in.Payload
	if len(payload) == 0 || string(payload) == "null" {
		payload = json.RawMessage("{}")
	}
	if trimmed := bytes.TrimSpace(payload); trimmed[0] != '{' {
		return nil, invalid(`"payload" must be an object`)
	}
	var p struct {
		Text   *string `json:"text"`
		Model  string  `json:"model"`
		CallID string  `json:"callId"`
		Scope  Scope   `json:"scope"`
		Reason string  `json:"reason"`

		Edit        string       `json:"edit"`
		MessageID   string       `json:"messageId"`
		Attachments []Attachment `json:"attachments"`
		Preferences

		QuestionID string          `json:"questionId"`
		Action     Action          `json:"action"`
		Content    json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, invalid("a field of the payload has the wrong type; see docs/chat.md")
	}
	switch in.Type {
	case "message":
		if p.Text == nil {
			return nil, invalid(`"payload.text" is missing`)
		}
		return SendMessage{Text: *p.Text, Model: p.Model, Edit: p.Edit, Attachments: p.Attachments}, nil
	case "regenerate", "branch":
		if p.MessageID == "" {
			return nil, invalid(`"payload.messageId" is missing`)
		}
		if in.Type == "branch" {
			return SwitchMessage{MessageID: p.MessageID}, nil
		}
		return SendMessage{Again: p.MessageID, Model: p.Model}, nil
	case "preferences":
		return PreferMessage{Preferences: p.Preferences}, nil
	case "abort":
		return AbortMessage{}, nil
	case "history":
		return HistoryRequest{}, nil
	case "approve", "deny":
		if p.CallID == "" {
			return nil, invalid(`"payload.callId" is missing`)
		}
		d := Decision{Approve: in.Type == "approve", Scope: p.Scope, Reason: tool.Shorten(p.Reason, 500)}
		if d.Approve && d.Scope == "" {
			d.Scope = Once
		}
		if d.Approve && d.Scope != Once && d.Scope != ForSession && d.Scope != Always {
			return nil, invalid(`"payload.scope" must be once, session or always`)
		}
		return DecideMessage{CallID: p.CallID, Decision: d}, nil
	case "answer":
		return parseAnswer(p.QuestionID, Answer{Action: p.Action, Content: p.Content, Scope: p.Scope})
	case "":
		return nil, invalid(`"type" is missing`)
	}
	return nil, invalid(fmt.Sprintf("%q is not a type of message; use message, regenerate, branch, preferences, abort, approve, deny, answer or history", tool.Shorten(in.Type, 40)))
}

func parseAnswer(questionID string, a Answer) (any, error) {
	switch {
	case questionID == "":
		return nil, invalid(`"payload.questionId" is missing`)
	case a.Action != Accept && a.Action != Decline && a.Action != Cancel:
		return nil, invalid(`"payload.action" must be accept, decline or cancel`)
	case a.Scope != "" && a.Scope != Once && a.Scope != ForSession:
		return nil, invalid(`"payload.scope" must be once or session`)
	}
	if len(a.Content) > 0 && a.Content[0] != '{' {
		return nil, invalid(`"payload.content" must be an object`)
	}
	if a.Action == Accept && len(a.Content) == 0 {
		a.Content = json.RawMessage("{}") // a form without required fields
	}
	return AnswerMessage{QuestionID: questionID, Answer: a}, nil
}

// Attachment is a file that a message brings along.
type Attachment struct {
	Name string `json:"name"`
	MIME string `json:"mimeType"`
	Data string `json:"data,omitempty"` // base64
	Size int    `json:"size,omitempty"`
}
