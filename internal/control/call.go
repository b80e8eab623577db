package control

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/httpstream"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// CallRequest is a request to run a tool.
type CallRequest struct {
	Server    string          `json:"server,omitempty"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	TimeoutMs int             `json:"timeoutMs,omitempty"`
	// Approved confirms that the caller has reviewed the call, for tools that
	// require approval. It is accepted only from administrators.
	Approved bool `json:"approved,omitempty"`
	// App is true if the call is made by a server's user interface that the
	// page shows.
	App bool `json:"app,omitempty"`
	// Ask lists the kinds of questions that the client can answer during the
	// call: elicitation, sampling, roots. Questions arrive in the stream. Answer
	// them at /api/calls/{id} with the result that MCP defines. Answer a
	// sampling request with an action, like an elicitation; accept sends it to
	// the gateway's model.
	Ask []string `json:"ask,omitempty"`
}

// CallAnswer is one message of the response to a call. A stream contains
// notifications and questions as they arrive, and finally a result or an error.
type CallAnswer struct {
	Type       string          `json:"type"` // notification, question, answered, result or error
	Method     string          `json:"method,omitempty"`
	Params     json.RawMessage `json:"params,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
	Error      *httperr.Body   `json:"error,omitempty"`
	RequestID  string          `json:"requestId,omitempty"`
	DurationMs float64         `json:"durationMs,omitempty"`

	// Call is the id of the waiting call whose record accepts the answer to a
	// question, and Input is the question. When a question is answered or
	// withdrawn, its id is sent again.
	Call  string         `json:"call,omitempty"`
	Input *waiting.Input `json:"input,omitempty"`
}

// call runs a tool. The response is a stream if the client accepts events or
// JSON lines, otherwise a single object.
func (c *Control) call(w http.ResponseWriter, r *http.Request) error {
	var in CallRequest
	if err := readBody(r, &in); err != nil {
		return err
	}
	caller := tool.CallerFrom(r.Context())
	call := tool.Call{
		RequestID: httperr.RequestID(r.Context()), Face: "control", Origin: tool.ByClient, Caller: caller,
		Server: in.Server, Tool: in.Tool, Arguments: in.Arguments,
		Timeout: time.Duration(max(in.TimeoutMs, 0)) * time.Millisecond,
		Meta:    json.RawMessage(`{"progressToken":1}`),
	}
	if in.App {
		call.Face, call.Origin = "app", tool.ByApp
	}
	if in.Approved && caller.Admin {
		call.Exchange.Approve = func(context.Context, tool.Name, json.RawMessage) (bool, error) { return true, nil }
	}
	begun := time.Now()
	format := httpstream.Accepted(r)
	if format == httpstream.None {
		result, err := c.Calls.Call(r.Context(), call)
		if err != nil {
			return err
		}
		httperr.Reply(w, resultOf(call.RequestID, result, time.Since(begun)))
		return nil
	}
	stream, ctx := httpstream.New(r.Context(), w, format)
	defer stream.End()
	send := func(a CallAnswer) {
		if b, err := rawjson.Marshal(a); err == nil {
			stream.Send("message", b)
		}
	}
	call.Exchange.Notify = func(method string, params json.RawMessage) {
		send(CallAnswer{Type: "notification", Method: method, Params: params})
	}
	call.Exchange.TaskStatus = func(status tool.TaskStatus) {
		send(CallAnswer{Type: "notification", Method: mcp.MethodProgress, Params: status.Progress()})
	}
	var result tool.Result
	err := c.runWithQuestions(ctx, &call, in.Ask, send, func(ctx context.Context) (err error) {
		result, err = c.Calls.Call(ctx, call)
		return err
	})
	switch {
	case err == nil:
		send(resultOf(call.RequestID, result, time.Since(begun)))
	case stream.Started():
		body, _ := httperr.New(r.Context(), err)
		send(CallAnswer{Type: "error", Error: &body, RequestID: call.RequestID})
	default:
		return err
	}
	return nil
}

func resultOf(id string, result tool.Result, took time.Duration) CallAnswer {
	return CallAnswer{
		Type: "result", Result: result.Raw, IsError: result.IsError, RequestID: id,
		DurationMs: float64(took.Microseconds()) / 1000,
	}
}
