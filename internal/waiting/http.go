package waiting

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/tool"
)

// maxWait bounds how long a request waits for a change of a record.
const maxWait = time.Minute

// Routes mounts the requests that change a record. GET /api/calls/{id} is of the
// call log, which hands the ids of waiting calls to [Service.Show].
func (s *Service) Routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /api/calls/{id}", s.answer)
	mux.HandleFunc("DELETE /api/calls/{id}", s.cancel)
}

// NotFound is the error for a record that is not there, or not for this caller.
func NotFound() error {
	return &tool.Error{Kind: tool.MethodNotFound, Msg: "no call with this id is waiting; its time may be over"}
}

// Explain returns the error of a method of Service as callers see it.
func Explain(err error) error {
	switch {
	case errors.Is(err, ErrNotFound):
		return NotFound()
	case errors.Is(err, ErrAnswered):
		return &tool.Error{Kind: tool.InvalidRequest, Msg: "the call does not wait for this any more: it was answered or withdrawn, or its time is over", Err: err}
	}
	return err
}

// Show answers with a record that the caller may read. The query parameter wait
// gives the milliseconds to wait for a change, after the version in the
// parameter after.
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
			err = ErrNotFound // answered meanwhile: not for administrators any more
		}
	}
	if err != nil {
		httperr.Write(w, r, Explain(err))
		return
	}
	Write(w, record)
}

// Write writes a record without the answers in it.
func Write(w http.ResponseWriter, r Record) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(r.Public()) // a client that is gone reads nothing
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

// answer takes {"input": "<id>", "answer": {…}} from the caller of the call. The
// input may be left out when there is one only. Approvals have another endpoint,
// because the caller must not approve its own calls.
func (s *Service) answer(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Input  string          `json:"input"`
		Answer json.RawMessage `json:"answer"`
	}
	data, err := httperr.ReadBody(r)
	if err == nil && (json.Unmarshal(data, &in) != nil || len(in.Answer) == 0) {
		err = &tool.Error{Kind: tool.InvalidRequest, Msg: `send {"input": "<id>", "answer": {…}}; the answer is the result of the request in the input's params`}
	}
	if err != nil {
		httperr.Write(w, r, err)
		return
	}
	caller := tool.CallerFrom(r.Context())
	record, err := s.Answer(r.Context(), r.PathValue("id"), in.Input, caller, in.Answer, func(rec *Record, asked *Input) error {
		switch {
		case !rec.MadeBy(&caller):
			return ErrNotFound
		case asked.Kind == KindApproval:
			return &tool.Error{Kind: tool.Denied, Msg: "this call waits for the approval of an administrator (junctor approvals list, or POST /api/approvals/{id})"}
		case in.Input == "" && len(rec.Inputs) > 1:
			return &tool.Error{Kind: tool.InvalidArguments, Msg: "the call waits for several answers; send the id of the input"}
		}
		return nil
	})
	if err != nil {
		httperr.Write(w, r, Explain(err))
		return
	}
	Write(w, record)
}

func (s *Service) cancel(w http.ResponseWriter, r *http.Request) {
	caller := tool.CallerFrom(r.Context())
	record, err := s.Cancel(r.Context(), r.PathValue("id"), func(rec *Record) error {
		if !rec.MadeBy(&caller) {
			return ErrNotFound
		}
		return nil
	})
	if err != nil {
		httperr.Write(w, r, Explain(err))
		return
	}
	Write(w, record)
}
