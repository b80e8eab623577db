package store

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"junctor/internal/tool"
)

// ParseCallQuery parses the parameters of a request for calls: server, tool,
// api (or face), caller, session, status, parent, text, after and before
// (sequence numbers), from (or since) and to (or until), and limit.
func ParseCallQuery(v url.Values) (CallQuery, error) {
	q := CallQuery{
		Server: v.Get("server"), Tool: v.Get("tool"), Face: cmp.Or(v.Get("api"), v.Get("face")), Caller: v.Get("caller"),
		Session: v.Get("session"), Status: Status(v.Get("status")), Parent: v.Get("parent"), Text: v.Get("text"),
	}
	var err error
	invalid := func(name, text, is string) {
		if err == nil {
			err = &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("%s %q is %s", name, tool.Shorten(text, 64), is)}
		}
	}
	switch q.Status {
	case "", StatusOK, StatusError, StatusFailed, StatusNotOK:
	case "success":
		q.Status = StatusOK
	default:
		invalid("status", string(q.Status), "none of ok, error, failed, notok")
	}
	number := func(name string, min int64, is string) (n int64) {
		if text := v.Get(name); text != "" {
			var wrong error
			if n, wrong = strconv.ParseInt(text, 10, 64); wrong != nil || n < min {
				invalid(name, text, is)
			}
		}
		return n
	}
	q.AfterSeq, q.BeforeSeq = number("after", 0, "not the seq of a record"), number("before", 0, "not the seq of a record")
	q.Limit = int(min(number("limit", 1, "not a number above 0"), MaxLimit))
	for i, name := range [...]string{"from", "since", "to", "until"} {
		if text := v.Get(name); text != "" {
			into, ok := &q.Since, false
			if i >= 2 {
				into = &q.Until
			}
			if *into, ok = parseTime(text); !ok {
				invalid(name, text, "not a time like 2026-01-31T12:00:00Z")
			}
		}
	}
	return q, err
}

// parseTime parses ISO 8601 with or without a time of day.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
