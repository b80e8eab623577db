package toolsapi

import (
	"context"
	"fmt"
	"net/http"

	"junctor/internal/codemode"
	"junctor/internal/httperr"
	"junctor/internal/httpstream"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Scripts runs scripts.
type Scripts interface {
	Run(ctx context.Context, r codemode.Request) (codemode.Outcome, error)
}

// scriptAnswer is the response to a script.
type scriptAnswer struct {
	codemode.Outcome
	Error *scriptFailure `json:"error,omitempty"`
}

type scriptFailure struct {
	Code    tool.Kind `json:"code"`
	Message string    `json:"message"`
	Details any       `json:"details,omitempty"`
}

// maxSession bounds the name of a session, in bytes, because it is stored with
// the values of its scripts and in the record of each call.
const maxSession = 256

// runScript runs a script. If the script throws, the status is still 200 and
// the response contains the error.
func (a *API) runScript(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Code    string `json:"code"`
		Session string `json:"session"`
	}
	if err := read(r, &body); err != nil {
		return err
	}
	if body.Code == "" {
		return &tool.Error{Kind: tool.InvalidRequest, Msg: `code is missing; send {"code": "return await tools.call('server:tool', {})"}`}
	}
	if len(body.Session) > maxSession {
		return &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the session has %d bytes; at most %d are allowed", len(body.Session), maxSession)}
	}
	request := codemode.Request{Code: body.Code, Session: body.Session, Face: face, Caller: tool.CallerFrom(r.Context())}
	if format := httpstream.Accepted(r); format != httpstream.None {
		return a.streamScript(w, r, request, format)
	}
	answer, err := a.runRequest(r.Context(), request)
	if err == nil {
		writeJSON(w, http.StatusOK, answer)
	}
	return err
}

// runRequest runs a script. An error of the script itself is part of the
// answer; the returned error means that it could not be run.
func (a *API) runRequest(ctx context.Context, request codemode.Request) (scriptAnswer, error) {
	out, err := a.Scripts.Run(ctx, request)
	answer := scriptAnswer{Outcome: out}
	if err != nil {
		if tool.KindOf(err) != tool.ExecutionFailed {
			return answer, err
		}
		e := tool.AsError(err)
		answer.Error = &scriptFailure{Code: e.Kind, Message: e.Msg, Details: e.Details}
	}
	return answer, nil
}

// scriptEvent is one event of a script's stream.
type scriptEvent struct {
	Type   string         `json:"type"` // call, result or error
	Call   *codemode.Call `json:"call,omitempty"`
	Result *scriptAnswer  `json:"result,omitempty"`
	Error  any            `json:"error,omitempty"`
}

// streamScript runs a script and streams the start and the end of each call.
func (a *API) streamScript(w http.ResponseWriter, r *http.Request, request codemode.Request, format httpstream.Format) error {
	stream, ctx := httpstream.New(r.Context(), w, format)
	defer stream.End()
	send := func(e scriptEvent) { stream.Send(e.Type, rawjson.MarshalOrNull(e)) }
	request.Progress = func(c codemode.Call) { send(scriptEvent{Type: "call", Call: &c}) }
	answer, err := a.runRequest(ctx, request)
	switch {
	case err == nil:
		send(scriptEvent{Type: "result", Result: &answer})
	case stream.Started():
		body, _ := httperr.New(ctx, err)
		send(scriptEvent{Type: "error", Error: body})
	default:
		return err
	}
	return nil
}
