package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/httpstream"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// Routes mounts the endpoints.
func (i *Inbox) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/approvals", httperr.JSON(i.list))
	mux.HandleFunc("GET /api/approvals/events", i.events)
	mux.HandleFunc("POST /api/approvals/{id}", httperr.JSON(i.decide))
	mux.HandleFunc("DELETE /api/approvals/{tool...}", httperr.JSON(i.revoke))
}

// Waiting returns the calls that wait for approval: all for an administrator,
// otherwise the caller's own.
func (i *Inbox) Waiting(ctx context.Context, caller tool.Caller) ([]waiting.Record, error) {
	list, err := i.Calls.List(ctx, func(r *waiting.Record) bool {
		return (caller.Admin || r.MadeBy(&caller)) && slices.ContainsFunc(r.Inputs, func(in waiting.Input) bool {
			return in.Kind == waiting.KindApproval && in.Answer == nil && (in.Expires.IsZero() || in.Expires.After(time.Now()))
		})
	})
	if err != nil {
		return nil, unavailable(err)
	}
	for n := range list {
		list[n] = list[n].Public()
	}
	return list, nil
}

func (i *Inbox) list(r *http.Request) (any, error) {
	caller := tool.CallerFrom(r.Context())
	standing, err := i.Standing.List(r.Context(), caller.ID)
	if err != nil {
		return nil, err
	}
	standing = slices.DeleteFunc(standing, func(a Info) bool { return !i.Standing.shows(&caller, a.Tool) })
	list, err := i.Waiting(r.Context(), caller)
	return map[string]any{"approvals": standing, "waiting": list}, err
}

// forAdmins returns an error for a caller who may not answer.
func forAdmins(caller *tool.Caller) error {
	if caller.Admin {
		return nil
	}
	return &tool.Error{Kind: tool.Denied, Msg: "administrators approve calls: open the page with junctor open, use junctor approvals, or send a key made with junctor keys add NAME --admin"}
}

// minEventInterval is the minimum time between two events.
const minEventInterval = 100 * time.Millisecond

// events streams the list of waiting calls, and again after each change. While
// the stream is open, the administrator's page counts as open.
func (i *Inbox) events(w http.ResponseWriter, r *http.Request) {
	caller := tool.CallerFrom(r.Context())
	if err := forAdmins(&caller); err != nil {
		httperr.Write(w, r, err)
		return
	}
	format := httpstream.Accepted(r)
	if format == httpstream.None {
		format = httpstream.Events
	}
	stream, ctx := httpstream.New(r.Context(), w, format)
	defer stream.End()
	defer i.attend()()
	changed := i.Calls.Watch(ctx)
	var last []byte
	for {
		list, err := i.Waiting(ctx, caller)
		if err == nil {
			now, err := json.Marshal(map[string]any{"waiting": list})
			if err == nil && !bytes.Equal(now, last) {
				stream.Send("waiting", now)
				last = now
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(minEventInterval):
		case <-ctx.Done():
			return
		}
	}
}

// decide allows or denies a call: {"action": "allow", "scope": "once"} or
// {"action": "deny", "reason": "…"}.
func (i *Inbox) decide(r *http.Request) (any, error) {
	caller := tool.CallerFrom(r.Context())
	if err := forAdmins(&caller); err != nil {
		return nil, err
	}
	invalid := &tool.Error{Kind: tool.InvalidRequest, Msg: `send {"action": "allow", "scope": "once"}, with the scope once, session or always, or {"action": "deny", "reason": "…"}`}
	var a answer
	if err := httperr.ReadJSON(r, &a, invalid); err != nil {
		return nil, err
	}
	if a.Action != "allow" && a.Action != "deny" {
		return nil, invalid
	}
	record, err := i.Decide(r.Context(), r.PathValue("id"), caller, Decision{Allow: a.Action == "allow", Scope: a.Scope, Reason: a.Reason})
	return record.Public(), waiting.Explain(err)
}

// Decide answers the approval request of the call with the id, which any node
// may own.
func (i *Inbox) Decide(ctx context.Context, id string, by tool.Caller, d Decision) (waiting.Record, error) {
	a := answer{Action: "deny", Reason: tool.Shorten(d.Reason, maxReason)}
	if d.Allow {
		a = answer{Action: "allow", Scope: d.Scope}
		if a.Scope == "" {
			a.Scope = Once
		}
	}
	data, err := json.Marshal(a)
	if err != nil {
		return waiting.Record{}, err
	}
	record, err := i.Calls.Get(ctx, id)
	if err != nil {
		return record, err
	}
	at := slices.IndexFunc(record.Inputs, func(in waiting.Input) bool { return in.Kind == waiting.KindApproval })
	if at < 0 {
		return record, waiting.ErrAnswered
	}
	var asked Request
	if err := json.Unmarshal(record.Inputs[at].Params, &asked); err != nil {
		return record, fmt.Errorf("read a request for approval: %w", err)
	}
	if d.Allow && !slices.Contains(asked.Scopes, a.Scope) {
		return record, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("the scope %q is not available for this call; use one of %v", tool.Shorten(string(a.Scope), 40), asked.Scopes)}
	}
	record, err = i.Calls.Answer(ctx, id, record.Inputs[at].ID, by, data, func(*waiting.Record, *waiting.Input) error { return nil })
	if err != nil {
		return record, err
	}
	i.Audit(ctx, "approval."+a.Action, record.Tool, map[string]any{
		"call": id, "caller": record.Caller, "scope": a.Scope, "reason": a.Reason, "argumentsHash": asked.ArgumentsHash, "fingerprint": asked.Fingerprint,
	})
	return record, nil
}

func (i *Inbox) revoke(r *http.Request) (any, error) {
	caller, name := tool.CallerFrom(r.Context()), r.PathValue("tool")
	if !i.Standing.shows(&caller, name) {
		return nil, notApproved(name)
	}
	err := i.Standing.Revoke(r.Context(), caller.ID, name)
	if err == nil {
		i.Audit(r.Context(), "approval.revoke", name, nil)
	}
	return nil, err
}
