package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/httpstream"
	"junctor/internal/rawjson"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// listCalls returns the newest records of the call log, or streams new ones.
// Arguments and results are omitted, because lists may be long; showCall
// returns a complete record.
func (c *Control) listCalls(w http.ResponseWriter, r *http.Request) error {
	q, err := ownCalls(r)
	if err != nil {
		return err
	}
	if format := httpstream.Accepted(r); format != httpstream.None {
		return c.followCalls(w, r, q, format)
	}
	// Read before the records, so that a client that follows from here misses
	// none.
	last, err := c.Log.LastSeq(r.Context())
	if err != nil {
		return err
	}
	if q.BeforeSeq == 0 {
		q.BeforeSeq = last + 1
	}
	caller := tool.CallerFrom(r.Context())
	calls, err := store.VisibleCalls(r.Context(), c.Log, q, &caller)
	if err != nil {
		return err
	}
	httperr.Reply(w, map[string]any{"calls": calls, "last": last})
	return nil
}

// ownCalls parses the query of a request. Callers other than operators only
// select their own calls.
func ownCalls(r *http.Request) (store.CallQuery, error) {
	q, err := store.ParseCallQuery(r.URL.Query())
	q.Brief = true
	if caller := tool.CallerFrom(r.Context()); !caller.IsOperator() {
		q.Caller = caller.ID
	}
	return q, err
}

// callStats returns the number and the durations of calls, by server, tool,
// caller and API, in a time range. intervals divides the range, which then
// requires a start; it ends now unless to is set.
func (c *Control) callStats(r *http.Request) (any, error) {
	q, err := ownCalls(r)
	if text := r.URL.Query().Get("intervals"); err == nil && text != "" {
		q.Intervals, err = readIntervals(text, &q)
	}
	if err != nil {
		return nil, err
	}
	caller := tool.CallerFrom(r.Context())
	return store.VisibleStats(r.Context(), c.Log, q, &caller)
}

func readIntervals(text string, q *store.CallQuery) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > store.MaxIntervals {
		return 0, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("intervals %q is not a number from 1 to %d", tool.Shorten(text, 40), store.MaxIntervals)}
	}
	if q.Until.IsZero() {
		q.Until = time.Now()
	}
	if q.Since.IsZero() || !q.Since.Before(q.Until) {
		return 0, &tool.Error{Kind: tool.InvalidArguments, Msg: `intervals requires a time range; set "from" to a time before "to"`}
	}
	return n, nil
}

// exportCalls writes all matching records as JSON lines, oldest first,
// including arguments and results.
func (c *Control) exportCalls(w http.ResponseWriter, r *http.Request) error {
	q, err := ownCalls(r)
	if err != nil {
		return err
	}
	// Stop at the current record: otherwise the export would not end while
	// records are added faster than they are read.
	last, err := c.Log.LastSeq(r.Context())
	if err != nil {
		return err
	}
	q.BeforeSeq, q.Brief, q.Forward, q.Limit = last+1, false, true, exportPage
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	caller := tool.CallerFrom(r.Context())
	for first := true; ; first = false {
		calls, err := c.Log.Calls(r.Context(), q)
		if err != nil && first {
			return err
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the only way to signal that the response is incomplete
		}
		if first {
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.Header().Set("Content-Disposition", `attachment; filename="calls.jsonl"`)
			w.Header().Set("Cache-Control", "no-store")
		}
		for _, call := range calls {
			if call.VisibleTo(&caller) && enc.Encode(call) != nil {
				return nil // the client has disconnected
			}
			q.AfterSeq = call.Seq
		}
		if len(calls) < exportPage {
			return nil
		}
	}
}

// exportPage is the number of records that an export reads per query.
const exportPage = 500

// followCalls streams the records after the query's AfterSeq as they are
// committed.
func (c *Control) followCalls(w http.ResponseWriter, r *http.Request, q store.CallQuery, format httpstream.Format) error {
	if !r.URL.Query().Has("after") {
		last, err := c.Log.LastSeq(r.Context())
		if err != nil {
			return err
		}
		q.AfterSeq = last
	}
	q.BeforeSeq, q.Limit = 0, 0
	stream, ctx := httpstream.New(r.Context(), w, format)
	defer stream.End()
	send := func(event string, v any) { stream.Send(event, rawjson.MarshalOrNull(v)) }
	caller := tool.CallerFrom(r.Context())
	send("open", map[string]int64{"after": q.AfterSeq}) // tells the page immediately that it is connected
	for call, err := range store.Tail(ctx, c.Log, q) {
		if err != nil {
			body, _ := httperr.New(ctx, err)
			send("error", body)
			break
		}
		if call.VisibleTo(&caller) {
			send("call", call)
		}
	}
	return nil
}

// showCall returns a complete record, including the trace of the call. A
// waiting call, and one whose result is fetched later, has a separate record.
func (c *Control) showCall(w http.ResponseWriter, r *http.Request) error {
	if waiting.IsID(r.PathValue("id")) {
		c.Waiting.Show(w, r)
		return nil
	}
	call, err := c.Log.Call(r.Context(), r.PathValue("id"))
	caller := tool.CallerFrom(r.Context())
	if err == nil && !caller.IsOperator() && call.Caller != caller.ID {
		call, err = c.ownCall(r.Context(), caller.ID, r.PathValue("id"))
	}
	if err == nil && !call.VisibleTo(&caller) {
		err = store.ErrNotFound
	}
	if errors.Is(err, store.ErrNotFound) {
		err = &tool.Error{Kind: tool.MethodNotFound, Msg: "there is no record of this call; old records are deleted"}
	}
	if err == nil {
		httperr.Reply(w, call)
	}
	return err
}

// ownCall returns the caller's newest record with a request id that another
// caller has used later.
func (c *Control) ownCall(ctx context.Context, caller, requestID string) (store.Call, error) {
	calls, err := c.Log.Calls(ctx, store.CallQuery{Caller: caller, Limit: store.MaxLimit, Brief: true})
	if err != nil {
		return store.Call{}, err
	}
	for _, call := range slices.Backward(calls) {
		if call.RequestID == requestID {
			return c.Log.Call(ctx, call.ID)
		}
	}
	return store.Call{}, store.ErrNotFound
}
