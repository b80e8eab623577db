package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/schema"
	"junctor/internal/tool"
)

// Limits of the questions of servers.
const (
	maxQuestion      = 64 << 10 // bytes of one question
	maxQuestionText  = 8 << 10  // bytes of its message
	maxOpenQuestions = 16       // per reply at a time
	maxFields        = 100      // per form
)

// clientCapabilities are the MCP capabilities of a chat client.
var clientCapabilities = json.RawMessage(`{"elicitation":{"form":{},"url":{}},"sampling":{}}`)

// question is an open question.
type question struct {
	wire.QuestionPayload
	fits   func(wire.Answer) error
	answer chan wire.Answer
}

// refused returns the error for a question that is not shown to the user.
func refused(format string, args ...any) error {
	return &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// questionOf returns the payload of a question during a call.
func questionOf(c, target *llm.ToolCall) wire.QuestionPayload {
	return wire.QuestionPayload{CallID: c.ID, Tool: target.Tool.String(), Server: target.Tool.Server}
}

// serverAsks handles an elicitation or sampling request of a server during a
// call.
func (s *Session) serverAsks(ctx context.Context, t *turn, about wire.QuestionPayload, method string, params json.RawMessage) (json.RawMessage, error) {
	switch method {
	case mcp.MethodElicit:
		return s.elicit(ctx, t, about, params)
	case mcp.MethodSample:
		return s.sample(ctx, t, about, params)
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "the chat does not answer " + tool.Shorten(method, 80)}
}

// elicitation holds the parameters of elicitation/create that are used.
type elicitation struct {
	Mode            string          `json:"mode"`
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
	URL             string          `json:"url"`
}

// elicit asks the user to fill in a form or to open a URL, and returns the MCP
// result.
func (s *Session) elicit(ctx context.Context, t *turn, about wire.QuestionPayload, params json.RawMessage) (json.RawMessage, error) {
	q, err := newElicitation(about, params)
	if err != nil {
		return nil, err
	}
	a, err := s.askUser(ctx, t, q)
	if err != nil {
		return nil, err
	}
	result := wire.Answer{Action: a.Action}
	switch {
	case a.Action == wire.Accept && q.Kind == wire.QuestionForm:
		result.Content = a.Content
	case a.Action != wire.Accept && a.Action != wire.Decline:
		result.Action = wire.Cancel
	}
	return json.Marshal(result)
}

// CheckElicitation returns an error for an elicitation that cannot be shown to a
// user safely.
func (h *Host) CheckElicitation(params json.RawMessage) error {
	_, err := newElicitation(wire.QuestionPayload{}, params)
	return err
}

// newElicitation parses an elicitation. It refuses requests that cannot be
// shown safely.
func newElicitation(about wire.QuestionPayload, params json.RawMessage) (*question, error) {
	var in elicitation
	if len(params) > maxQuestion {
		return nil, refused("the question has %d bytes; %d are allowed", len(params), maxQuestion)
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, refused("the question cannot be read")
	}
	q := &question{QuestionPayload: about}
	q.Message = tool.Shorten(in.Message, maxQuestionText)
	switch in.Mode {
	case "", "form":
		q.Kind, q.Schema = wire.QuestionForm, in.RequestedSchema
		if rawjson.FieldString(in.RequestedSchema, "type") != "object" {
			return nil, refused(`"requestedSchema" must be a schema of type object`)
		}
		if err := checkFlatForm(in.RequestedSchema); err != nil {
			return nil, err
		}
		form, err := schema.Compile(in.RequestedSchema)
		if err != nil {
			return nil, refused(`"requestedSchema" is not a supported schema`)
		}
		q.fits = func(a wire.Answer) error { return validateForm(form, a) }
	case "url":
		u, err := url.Parse(in.URL)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
			return nil, refused(`"url" must be an address with http or https, a host and no password`)
		}
		q.Kind, q.URL = wire.QuestionURL, u.String()
	default:
		return nil, refused("unknown elicitation mode %q; use form or url", tool.Shorten(in.Mode, 40))
	}
	return q, nil
}

// checkFlatForm returns an error for a form that is not a list of plain fields,
// as the protocol requires. Nested or recursive forms could not be rendered in
// bounded time.
func checkFlatForm(form json.RawMessage) error {
	n := 0
	for name, field := range rawjson.Members(rawjson.Field(form, "properties")) {
		if n++; n > maxFields {
			return refused("the form has more than %d fields", maxFields)
		}
		kind := rawjson.FieldString(field, "type")
		if kind == "array" {
			items := rawjson.Field(field, "items")
			if kind = rawjson.FieldString(items, "type"); kind == "" && (rawjson.Field(items, "anyOf") != nil || rawjson.Field(items, "enum") != nil) {
				kind = "string" // a choice
			}
		}
		switch kind {
		case "string", "number", "integer", "boolean":
		default:
			return refused("the field %q must be a string, a number, a boolean or a choice of strings", tool.Shorten(name, 80))
		}
	}
	return nil
}

// validateForm validates the user's input, so that mistakes are reported to the
// user instead of the server.
func validateForm(form *schema.Schema, a wire.Answer) error {
	if a.Action != wire.Accept {
		return nil
	}
	wrong, err := form.Check(context.Background(), a.Content)
	if err != nil || len(wrong) == 0 { // a form that cannot be validated is left to the server
		return nil
	}
	return &tool.Error{Kind: tool.InvalidArguments, Msg: "the answer does not fit: " + schema.Summary(wrong)}
}

// askUser shows a question to all watchers and waits for the first answer. The
// watchers always get the outcome.
func (s *Session) askUser(ctx context.Context, t *turn, q *question) (wire.Answer, error) {
	wait := s.host.ApprovalTimeout()
	q.QuestionID, q.Expires = newID("ask"), time.Now().Add(wait).UTC()
	q.answer = make(chan wire.Answer, 1)
	var full bool
	s.changeWaiting(func() {
		if full = len(t.questions) >= maxOpenQuestions; !full {
			t.questions[q.QuestionID] = q
		}
	})
	if full {
		return wire.Answer{}, &mcp.Error{Code: mcp.CodeInternalError, Message: "too many questions wait for the person's answer"}
	}
	s.emit(wire.TypeQuestion, q.QuestionPayload)
	a, err := await(ctx, t, q.answer, wait)
	switch {
	case errors.Is(err, errNoAnswer):
		a, err = wire.Answer{Action: wire.Expired}, nil
	case err != nil:
		a.Action = wire.Withdrawn
	}
	s.changeWaiting(func() { delete(t.questions, q.QuestionID) })
	s.emit(wire.TypeAnswered, wire.AnsweredPayload{QuestionID: q.QuestionID, CallID: q.CallID, Action: a.Action})
	return a, err
}

// await waits for a value from the user. If the gateway stops meanwhile, the
// turn ends.
func await[T any](ctx context.Context, t *turn, answer <-chan T, timeout time.Duration) (T, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var none T
	select {
	case a := <-answer:
		return a, nil
	case <-timer.C:
		return none, errNoAnswer
	case <-t.session.host.stopping.Done():
		t.cancel(tool.ErrStopping)
		return none, tool.ErrStopping
	case <-ctx.Done():
		if err := context.Cause(ctx); errors.Is(err, tool.ErrStopping) {
			t.cancel(err)
		}
		return none, context.Cause(ctx)
	}
}

// Answer answers a question. An invalid answer leaves it open.
func (s *Session) Answer(ctx context.Context, questionID string, a wire.Answer) error {
	s.mu.Lock()
	t := s.turn
	var q *question
	if t != nil {
		q = t.questions[questionID]
	}
	elsewhere, seen := t == nil && s.foreign, s.seen()
	s.mu.Unlock()
	if elsewhere && s.host.command(ctx, s.id, command{Seen: seen, QuestionID: questionID, Answer: &a}) {
		return nil
	}
	gone := &tool.Error{Kind: wire.CodeNoQuestion, Msg: "there is no longer a question with this questionId"}
	if q == nil {
		return gone
	}
	if q.fits != nil {
		if err := q.fits(a); err != nil {
			return err
		}
	}
	s.mu.Lock()
	_, open := t.questions[questionID] // another answer may have arrived first
	delete(t.questions, questionID)
	s.mu.Unlock()
	if !open {
		return gone
	}
	q.answer <- a
	return nil
}

// requiredURLs returns the URLs that the user has to open before the server
// executes a call. In the 2025-11-25 protocol this is an error that ends the
// call.
func requiredURLs(err error, about wire.QuestionPayload) []*question {
	wire, ok := errors.AsType[*mcp.Error](err)
	if first := mcp.SignInRequired(err); first != nil {
		wire, ok = first, true
	}
	if !ok || wire.Code != mcp.CodeURLElicitation {
		return nil
	}
	var out []*question
	for e := range rawjson.Elements(rawjson.Field(wire.Data, "elicitations")) {
		q, err := newElicitation(about, rawjson.SetField(e, json.RawMessage(`"url"`), "mode"))
		if err != nil || len(out) == maxOpenQuestions {
			return nil // a URL that cannot be opened: the call cannot continue
		}
		q.Retry = true
		out = append(out, q)
	}
	return out
}

// openURLs asks the user to open the URLs, one after the other, and reports
// whether all were opened.
func (s *Session) openURLs(ctx context.Context, t *turn, questions []*question) bool {
	for _, q := range questions {
		if a, err := s.askUser(ctx, t, q); err != nil || a.Action != wire.Accept {
			return false
		}
	}
	return len(questions) > 0
}
