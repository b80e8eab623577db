package toolsapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/httpstream"
	"junctor/internal/rawjson"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// logEntry is a record of the call log in this API.
type logEntry struct {
	Seq        int64           `json:"seq"`
	ID         string          `json:"id"`
	RequestID  string          `json:"requestId,omitempty"` // from the caller
	Timestamp  time.Time       `json:"timestamp"`
	DurationMs float64         `json:"durationMs"`
	Server     string          `json:"server,omitempty"`
	Tool       string          `json:"tool,omitempty"`
	Method     string          `json:"method,omitempty"`
	Face       string          `json:"face,omitempty"`
	Caller     string          `json:"caller,omitempty"`
	Session    string          `json:"sessionId,omitempty"`
	Status     store.Status    `json:"status"`
	Code       string          `json:"code,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      string          `json:"error,omitempty"`
}

func entryOf(c store.Call) logEntry {
	return logEntry{
		Seq: c.Seq, ID: c.ID, RequestID: c.RequestID, Timestamp: c.Time.UTC(), DurationMs: float64(c.Duration.Microseconds()) / 1000,
		Server: c.Server, Tool: c.Tool, Method: c.Method, Face: c.Face, Caller: c.Caller, Session: c.Session,
		Status: c.Status, Code: c.Kind, Input: c.Arguments, Result: c.Result, Error: c.Error,
	}
}

// logs responds with the call log, newest last, or streams it.
func (a *API) logs(w http.ResponseWriter, r *http.Request) error {
	q, err := readLogQuery(r.URL.Query())
	if err != nil {
		return err
	}
	// Records contain arguments and results, so those of other callers are only
	// for operators.
	caller := tool.CallerFrom(r.Context())
	if !caller.IsOperator() {
		q.Caller = caller.ID
	}
	if format := httpstream.Accepted(r); format != httpstream.None {
		return a.follow(w, r, q, format)
	}
	calls, err := store.VisibleCalls(r.Context(), a.Log, q, &caller)
	if err != nil {
		return err
	}
	entries := make([]logEntry, len(calls))
	for i, c := range calls {
		entries[i] = entryOf(c)
	}
	writeJSON(w, http.StatusOK, entries)
	return nil
}

// readLogQuery reads the documented parameters.
func readLogQuery(v url.Values) (store.CallQuery, error) {
	own := url.Values{}
	for _, name := range []string{"server", "tool", "status", "since", "after", "limit"} {
		own[name] = v[name]
	}
	q, err := store.ParseCallQuery(own)
	q.Forward = own.Get("after") != ""
	return q, err
}

// follow streams records as they are committed. It starts with those selected
// by since, after or limit; without them, with new records.
func (a *API) follow(w http.ResponseWriter, r *http.Request, q store.CallQuery, format httpstream.Format) error {
	last, err := a.Log.LastSeq(r.Context())
	if err != nil {
		return err
	}
	caller := tool.CallerFrom(r.Context())
	var past []store.Call
	if q.Forward {
		last = q.AfterSeq
	} else if q.Limit > 0 || !q.Since.IsZero() {
		old := q
		old.BeforeSeq = last + 1
		if past, err = store.VisibleCalls(r.Context(), a.Log, old, &caller); err != nil {
			return err
		}
	}
	stream, ctx := httpstream.New(r.Context(), w, format)
	defer stream.End()
	send := func(event string, v any) { stream.Send(event, rawjson.MarshalOrNull(v)) }
	send("open", map[string]int64{"after": last}) // lets the client know immediately that it is connected
	for _, c := range past {
		send("call", entryOf(c))
	}
	q.AfterSeq, q.Limit = last, 0
	for c, err := range store.Tail(ctx, a.Log, q) {
		if err != nil {
			body, _ := httperr.New(ctx, err)
			send("error", body)
			return nil
		}
		if c.VisibleTo(&caller) {
			send("call", entryOf(c))
		}
	}
	return nil
}
