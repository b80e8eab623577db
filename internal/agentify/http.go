package agentify

import (
	"encoding/json"
	"net/http"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/httpstream"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Routes mounts POST /api/orchestrate.
func (f *Face) Routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /api/orchestrate", httperr.Handler(f.serveTask))
}

// Answer is the outcome of a task. In a stream it is the last message, after
// the steps and notifications.
type Answer struct {
	Type string `json:"type"` // always result
	Outcome
	RequestID  string  `json:"requestId,omitempty"`
	DurationMs float64 `json:"durationMs"`
}

// serveTask executes a task. If the client accepts events or JSON lines, it
// streams steps and notifications before the result.
func (f *Face) serveTask(w http.ResponseWriter, r *http.Request) error {
	raw, err := httperr.ReadBody(r)
	if err != nil {
		return err
	}
	if len(raw) > 0 && !json.Valid(raw) {
		return &tool.Error{Kind: tool.ParseFailed, Msg: "the body is not JSON"}
	}
	t, err := f.ParseTask(raw)
	if err != nil {
		return err
	}
	begun := time.Now()
	req := Request{ID: httperr.RequestID(r.Context()), Caller: tool.CallerFrom(r.Context())}
	final := func(out Outcome) Answer {
		return Answer{Type: "result", Outcome: out, RequestID: req.ID, DurationMs: float64(time.Since(begun).Microseconds()) / 1000}
	}
	format := httpstream.Accepted(r)
	if format == httpstream.None {
		out, err := f.Do(r.Context(), t, req)
		if err != nil {
			return err
		}
		httperr.Reply(w, final(out))
		return nil
	}
	stream, ctx := httpstream.New(r.Context(), w, format)
	defer stream.End()
	send := func(a any) { stream.Send("message", rawjson.MarshalOrNull(a)) }
	req.Meta = json.RawMessage(`{"progressToken":1}`)
	req.Exchange.Notify = func(method string, params json.RawMessage) {
		send(map[string]any{"type": "notification", "method": method, "params": params})
	}
	req.OnStep = func(s Step) { send(map[string]any{"type": "step", "step": s}) }
	out, err := f.Do(ctx, t, req)
	switch {
	case err == nil:
		send(final(out))
	case stream.Started():
		body, _ := httperr.New(r.Context(), err)
		send(map[string]any{"type": "error", "error": body, "requestId": req.ID})
	default:
		return err
	}
	return nil
}
