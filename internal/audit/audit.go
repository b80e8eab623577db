// Package audit stores the log of who created, changed, used or revoked what:
// keys, servers, rules, approvals, sign-ins. Calls of tools are in the call
// log.
//
// Entries are values of the store, in one space per month, so that both stores
// have them and a backup includes them. They are deleted after a year.
package audit

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Entry is one action in the audit log.
type Entry struct {
	ID     string          `json:"id"` // ids are in chronological order
	Time   time.Time       `json:"time"`
	Actor  string          `json:"actor"`            // id of the caller
	Name   string          `json:"name,omitempty"`   // name of the caller
	Action string          `json:"action"`           // such as key.add
	Target string          `json:"target,omitempty"` // name or id of the object of the action
	Detail json.RawMessage `json:"detail,omitempty"`
}

const (
	spacePrefix  = "audit/"
	retention    = 366 * 24 * time.Hour
	months       = 14 // the latest months, which may have entries
	writeTimeout = 10 * time.Second
	maxDetail    = 8 << 10
	defaultLimit = 100
	maxLimit     = 1000
)

// Log is the audit log. It is safe for concurrent use.
type Log struct {
	store  store.Values
	redact func(json.RawMessage) json.RawMessage
	log    *slog.Logger
}

// New returns a Log. redact is applied to details; nil changes nothing.
func New(s store.Values, redact func(json.RawMessage) json.RawMessage, log *slog.Logger) *Log {
	return &Log{store: s, redact: redact, log: log.With(telemetry.KeyComponent, "audit")}
}

func space(t time.Time) string { return spacePrefix + t.UTC().Format("2006-01") }

// Audit records an action of the caller in ctx. The action is named
// object.verb, such as key.add; detail is stored as JSON and must not contain
// secrets. If the entry cannot be stored the error is only logged, because the
// action has already happened.
func (l *Log) Audit(ctx context.Context, action, target string, detail any) {
	caller, now := tool.CallerFrom(ctx), time.Now().UTC()
	e := Entry{
		ID: now.Format("20060102T150405.000000000Z") + "-" + rand.Text()[:8], Time: now,
		Actor: caller.ID, Name: caller.Name, Action: action, Target: tool.Shorten(target, 500),
	}
	var err error
	if detail != nil {
		if e.Detail, err = json.Marshal(detail); err == nil && l.redact != nil {
			e.Detail = l.redact(e.Detail)
		}
		if len(e.Detail) > maxDetail {
			e.Detail, err = json.Marshal(map[string]int{"bytes": len(e.Detail)})
		}
	}
	var data []byte
	if err == nil {
		data, err = json.Marshal(e)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		_, err = l.store.PutValue(ctx, store.Value{Space: space(now), Name: e.ID, Data: data, Expires: now.Add(retention)}, 0)
	}
	if err != nil {
		l.log.ErrorContext(ctx, "cannot write an audit entry", "action", action, "target", e.Target, "actor", e.Actor, "err", err)
	}
}

// Query selects entries.
type Query struct {
	Before string // an entry's id; only older entries are returned
	Limit  int    // 0 means 100
	Actor  string // Caller.ID or name
	Action string // the whole action, or only its object such as key
}

func (q Query) matches(e *Entry) bool {
	return (q.Before == "" || e.ID < q.Before) && (q.Actor == "" || q.Actor == e.Actor || q.Actor == e.Name) &&
		(q.Action == "" || q.Action == e.Action || len(e.Action) > len(q.Action) && e.Action[:len(q.Action)+1] == q.Action+".")
}

// Entries returns the newest entries that match, newest first.
func (l *Log) Entries(ctx context.Context, q Query) ([]Entry, error) {
	limit := min(cmp.Or(max(q.Limit, 0), defaultLimit), maxLimit)
	out := []Entry{}
	now := time.Now().UTC()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	for range months {
		values, err := l.store.Values(ctx, space(month))
		if err != nil {
			return nil, err
		}
		for _, v := range slices.Backward(values) {
			var e Entry
			if json.Unmarshal(v.Data, &e) == nil && q.matches(&e) {
				if out = append(out, e); len(out) == limit {
					return out, nil
				}
			}
		}
		month = month.AddDate(0, -1, 0)
	}
	return out, nil
}

// Routes mounts the endpoint, for administrators.
func (l *Log) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/audit", httperr.JSON(func(r *http.Request) (any, error) {
		if caller := tool.CallerFrom(r.Context()); !caller.Admin {
			return nil, &tool.Error{Kind: tool.Denied, Msg: "the audit log is for administrators"}
		}
		v := r.URL.Query()
		limit, err := strconv.Atoi(cmp.Or(v.Get("limit"), "0"))
		if err != nil || limit < 0 {
			return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: "limit must be a number above 0"}
		}
		list, err := l.Entries(r.Context(), Query{Before: v.Get("before"), Limit: limit, Actor: v.Get("actor"), Action: v.Get("action")})
		return map[string]any{"entries": list}, err
	}))
}
