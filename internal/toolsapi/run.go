package toolsapi

import (
	"context"
	"fmt"
	"net/http"

	"junctor/internal/codemode"
	"junctor/internal/httperr"
	"junctor/internal/tool"
)

// Scripts runs scripts.
type Scripts interface {
	Run(ctx context.Context, r codemode.Request) (codemode.Outcome, error)
}

// scriptAnswer is the response to a script that ran.
type scriptAnswer struct {
	codemode.Outcome
	Error *scriptFailure `json:"error,omitempty"`
}

type scriptFailure struct {
	Code    tool.Kind `json:"code"`
	Message string    `json:"message"`
	Details any       `json:"details,omitempty"`
}

// maxSession bounds the name of a session, in bytes: it is kept with what its
// scripts store, and in the record of each call.
const maxSession = 256

// runScript runs a script. One that throws is a response (200) that says so.
func (a *API) runScript(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Code    string `json:"code"`
		Session string `json:"session"`
	}
	if err := a.read(w, r, &body); err != nil {
		httperr.Write(w, r, err)
		return
	}
	if body.Code == "" {
		httperr.Write(w, r, &tool.Error{Kind: tool.InvalidRequest, Msg: `code is missing; send {"code": "return await tools.call('server:tool', {})"}`})
		return
	}
	if len(body.Session) > maxSession {
		httperr.Write(w, r, &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the session has %d bytes; at most %d are allowed", len(body.Session), maxSession)})
		return
	}
	out, err := a.Scripts.Run(r.Context(), codemode.Request{Code: body.Code, Session: body.Session, Face: face, Caller: tool.CallerFrom(r.Context())})
	answer := scriptAnswer{Outcome: out}
	if err != nil {
		if tool.KindOf(err) != tool.ExecutionFailed {
			httperr.Write(w, r, err)
			return
		}
		e := tool.AsError(err)
		answer.Error = &scriptFailure{Code: e.Kind, Message: e.Msg, Details: e.Details}
	}
	writeJSON(w, http.StatusOK, answer)
}
