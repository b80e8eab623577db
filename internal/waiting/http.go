package waiting

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/tool"
)

// maxWait bounds how long a request waits for a change of a record.
const maxWait = time.Minute

// Routes registers the handlers that list the caller's calls, and that answer
// or cancel one. GET /api/calls/{id} belongs to the call log, which passes ids
// of waiting calls to [Service.Show].
func (s *Service) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/waiting", httperr.JSON(s.list))
	mux.HandleFunc("POST /api/calls/{id}", httperr.JSON(s.answer))
	mux.HandleFunc("DELETE /api/calls/{id}", httperr.JSON(s.cancel))
}

// NotFound returns the error for a record that does not exist, or that the
// caller may not see.
func NotFound() error {
	return &tool.Error{Kind: tool.MethodNotFound, Msg: "no call with this id is waiting; it may have expired"}
}

// Explain converts an error of a method of Service to the error for callers.
func Explain(err error) error {
	switch {
	case errors.Is(err, ErrNotFound):
		return NotFound()
	case errors.Is(err, ErrAnswered):
		return &tool.Error{Kind: tool.InvalidRequest, Msg: "the call is no longer waiting for this: it was answered or withdrawn, or it has expired", Err: err}
	}
	return err
}

// Show responds with a record that the caller may read. The query parameter
// wait is the time in milliseconds to wait until the version differs from the
// parameter after, which defaults to the current version.
func (s *Service) Show(w http.ResponseWriter, r *http.Request) {
	caller := tool.CallerFrom(r.Context())
	record, err := s.Get(r.Context(), r.PathValue("id"))
	if err == nil && !Readable(&caller, &record) {
		err = ErrNotFound
	}
	q := r.URL.Query()
	if ms, numErr := strconv.Atoi(q.Get("wait")); err == nil && numErr == nil && ms > 0 {
		version := record.Version
		if after, numErr := strconv.ParseInt(q.Get("after"), 10, 64); numErr == nil {
			version = after
		}
		ctx, cancel := context.WithTimeout(r.Context(), min(time.Duration(ms)*time.Millisecond, maxWait))
		record, err = s.Await(ctx, record.ID, version)
		cancel()
		if err == nil && !Readable(&caller, &record) {
			err = ErrNotFound // answered in the meantime, so administrators may no longer read it
		}
	}
	if err != nil {
		httperr.Write(w, r, Explain(err))
		return
	}
	httperr.Reply(w, record.Public())
}

// list returns the caller's calls that wait or have ended, newest first,
// without results.
func (s *Service) list(r *http.Request) (any, error) {
	caller := tool.CallerFrom(r.Context())
	records, err := s.List(r.Context(), func(r *Record) bool { return r.MadeBy(&caller) })
	if err != nil {
		return nil, err
	}
	slices.Reverse(records)
	for i := range records {
		records[i] = records[i].Public()
	}
	return map[string]any{"calls": records}, nil
}

// Public returns the record without the answers in it, which are for the owner.
func (r Record) Public() Record {
	inputs := make([]Input, len(r.Inputs))
	for i, in := range r.Inputs {
		in.Answer = nil
		inputs[i] = in
	}
	r.Inputs = inputs
	return r
}

// answer accepts {"input": "<id>", "answer": {…}} from the caller of the call.
// The input may be omitted if there is only one. Approvals have another
// endpoint, because callers must not approve their own calls.
func (s *Service) answer(r *http.Request) (any, error) {
	var in struct {
		Input  string          `json:"input"`
		Answer json.RawMessage `json:"answer"`
	}
	data, err := httperr.ReadBody(r)
	if err == nil && (json.Unmarshal(data, &in) != nil || len(in.Answer) == 0) {
		err = &tool.Error{Kind: tool.InvalidRequest, Msg: `send {"input": "<id>", "answer": {…}}; the answer is the result of the request in the input's params`}
	}
	if err != nil {
		return nil, err
	}
	caller := tool.CallerFrom(r.Context())
	record, err := s.Answer(r.Context(), r.PathValue("id"), in.Input, caller, in.Answer, func(rec *Record, asked *Input) error {
		switch {
		case !rec.MadeBy(&caller):
			return ErrNotFound
		case asked.Kind == KindApproval:
			return &tool.Error{Kind: tool.Denied, Msg: "this call waits for the approval of an administrator (junctor approvals list, or POST /api/approvals/{id})"}
		case in.Input == "" && len(rec.Inputs) > 1:
			return &tool.Error{Kind: tool.InvalidArguments, Msg: "the call is waiting for several answers; send the id of the input"}
		}
		return nil
	})
	return record.Public(), Explain(err)
}

func (s *Service) cancel(r *http.Request) (any, error) {
	caller := tool.CallerFrom(r.Context())
	record, err := s.Cancel(r.Context(), r.PathValue("id"), func(rec *Record) error {
		if !rec.MadeBy(&caller) {
			return ErrNotFound
		}
		return nil
	})
	return record.Public(), Explain(err)
}
