package toolsapi

import (
	"context"
	"encoding/json"
	"net/http"

	"junctor/internal/httperr"
	"junctor/internal/provider"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// asyncCapabilities are the kinds of questions that the caller of an
// asynchronous call can answer, at the call's record.
var asyncCapabilities = json.RawMessage(`{"elicitation":{"form":{},"url":{}}}`)

// executeAsync executes a call asynchronously. The result, and questions of
// the server until then, are available at /api/calls/{id}.
func (a *API) executeAsync(w http.ResponseWriter, r *http.Request, server string, call provider.Call) error {
	if a.Waiting == nil {
		return &tool.Error{Kind: tool.Unavailable, Msg: `asynchronous calls are not available here; send "wait": true`}
	}
	ctx := r.Context()
	caller, shown := tool.CallerFrom(ctx), call.Name
	if name, known := a.resolve(&caller, server, call.Name); known != nil {
		shown = name.String()
	}
	record, err := a.Waiting.Start(ctx, waiting.StartOptions{Caller: caller, Face: face, Tool: shown})
	if err != nil {
		return err
	}
	id := httperr.RequestID(ctx)
	running, cancel := record.Context(context.WithoutCancel(ctx))
	forget := tool.OnCredentialEnd(ctx, cancel)
	ex := tool.Exchange{Capabilities: asyncCapabilities, Ask: func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		in, err := record.Ask(ctx, waiting.Input{Kind: method, Params: params})
		return in.Answer, err
	}, Task: func(kept tool.ServerTask) { record.SetTask(running, kept) },
		TaskStatus: func(status tool.TaskStatus) { record.SetMessage(running, status.Message) }}
	go func() {
		defer cancel()
		defer forget()
		result, err := a.run(running, server, call, id, ex)
		_ = record.Finish(running, result, err) // retries failed writes
	}()
	state, err := a.Waiting.Get(ctx, record.ID())
	if err != nil {
		return waiting.Explain(err)
	}
	w.Header().Set("Location", "/api/calls/"+record.ID())
	writeJSON(w, http.StatusAccepted, state.Public())
	return nil
}
