package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"junctor/internal/tool"
)

// Status is the outcome of a call.
type Status string

// Outcomes of a call.
const (
	StatusOK     Status = "ok"
	StatusError  Status = "error"  // the tool ran and reported failure (isError)
	StatusFailed Status = "failed" // the call did not complete; Kind says why

	// StatusNotOK selects both kinds of failure in a query; no record has it.
	StatusNotOK Status = "notok"
)

// Matches reports whether a query for s selects records of status have.
func (s Status) Matches(have Status) bool {
	return s == "" || s == have || s == StatusNotOK && have != StatusOK
}

// Call is the record of one call: a tool's execution or a forwarded request.
// Arguments and Result must be redacted and truncated before they are stored.
type Call struct {
	Seq         int64           // assigned by the store in commit order; gaps only where records were deleted
	ID          string          // assigned by Junctor, unique
	RequestID   string          // chosen by the caller (X-Request-Id); may be empty or not unique
	Parent      string          // ID of the call that caused this one; may be empty
	Time        time.Time       // when the call was received
	Duration    time.Duration   // until its response was ready
	Face        string          // discovery, tools, broker, chat, agentify, control, app
	Caller      string          // tool.Caller.ID
	CallerName  string          // tool.Caller.Name at the time of the call
	Session     string          // chat or MCP session; may be empty
	Server      string          // as resolved; empty if it was not resolved
	Tool        string          // empty for methods other than tools/call
	Method      string          // the MCP method
	Status      Status          //
	Kind        string          // tool.Kind of a failure
	Error       string          // its message
	Arguments   json.RawMessage //
	Result      json.RawMessage //
	ArgBytes    int             // size of the arguments before truncation
	ResultBytes int             // size of the result before truncation
	TraceID     string          // W3C trace id
	Node        string          // process that handled the call
	Stages      Stages          // where the time was spent
}

// CallQuery selects records of the call log. Empty fields do not limit.
type CallQuery struct {
	Server  string
	Tool    string
	Caller  string
	Session string
	Face    string
	Status  Status
	Parent  string      // ID of the call that caused them
	Tools   []tool.Name // only these; a name without a tool selects requests other than calls. Nil: no limit
	Text    string      // in the arguments, the result, the error, the names or the ids, as recorded; ASCII letters match in either case
	Since   time.Time   // inclusive
	Until   time.Time   // exclusive

	AfterSeq  int64 // exclusive; reads forward
	BeforeSeq int64 // exclusive; 0: no limit

	// Forward selects the oldest Limit records that match instead of the
	// newest. AfterSeq implies it, so that there is no gap after that record.
	Forward bool

	// Brief omits arguments, results and stages, which makes the query
	// cheaper.
	Brief bool

	Limit int // 0 means DefaultLimit; MaxLimit at most

	// Intervals is the number of intervals of equal length into which Stats
	// divides the time from Since until Until; both must be set.
	Intervals int
}

// MaxIntervals bounds CallQuery.Intervals.
const MaxIntervals = 1000

// Interval returns the length of one interval.
func (q CallQuery) Interval() time.Duration {
	return max(q.Until.Sub(q.Since)/time.Duration(max(q.Intervals, 1)), time.Microsecond)
}

// How many records one query returns.
const (
	DefaultLimit = 100
	MaxLimit     = 10_000
)

// Rows returns the effective limit.
func (q CallQuery) Rows() int {
	switch {
	case q.Limit <= 0:
		return DefaultLimit
	case q.Limit > MaxLimit:
		return MaxLimit
	}
	return q.Limit
}

// Oldest reports whether the query selects the oldest matching records.
func (q CallQuery) Oldest() bool { return q.Forward || q.AfterSeq > 0 }

// CallLog stores one record for every call.
type CallLog interface {
	// Append writes one record. When it returns nil the record is committed:
	// it is immediately visible to every process and survives the exit of this
	// one. Concurrent calls share a commit.
	Append(ctx context.Context, c Call) error

	// Available returns an error if records cannot be written, as far as is
	// known. It does not wait for a store that is known to fail.
	Available(ctx context.Context) error

	// Lost returns the number of records that this process could not write
	// although their calls were served ([FailOpen]).
	Lost() int64

	// Calls returns the records that match, newest last. Arguments and results
	// are byte for byte as appended, except that invalid UTF-8 is replaced by
	// U+FFFD.
	Calls(ctx context.Context, q CallQuery) ([]Call, error)

	// Call returns the record with the ID, or else the newest with that
	// RequestID, or ErrNotFound.
	Call(ctx context.Context, id string) (Call, error)

	// Stats summarises the records that match. It ignores the limit and the
	// sequence numbers of the query.
	Stats(ctx context.Context, q CallQuery) (CallStats, error)

	// LastSeq returns the highest sequence number assigned so far, or 0.
	LastSeq(ctx context.Context) (int64, error)
}

// Stage is one step of the processing of a call.
type Stage struct {
	Name string
	Took time.Duration
}

// Stages are the steps of a call in order. Their text form, which is also how
// they are stored, is "policy=12 validate=40 dispatch=18230", in microseconds.
type Stages []Stage

// String returns the stages as text.
func (s Stages) String() string {
	return string(s.Append(nil))
}

// Append appends the stages as text.
func (s Stages) Append(b []byte) []byte {
	for i, st := range s {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, st.Name...)
		b = append(b, '=')
		b = strconv.AppendInt(b, st.Took.Microseconds(), 10)
	}
	return b
}

// ParseStages parses the output of String.
func ParseStages(text string) (Stages, error) {
	if text == "" {
		return nil, nil
	}
	fields := strings.Fields(text)
	out := make(Stages, 0, len(fields))
	for _, f := range fields {
		name, micros, ok := strings.Cut(f, "=")
		n, err := strconv.ParseInt(micros, 10, 64)
		if !ok || name == "" || err != nil {
			return nil, fmt.Errorf("stage %q is not name=microseconds", f)
		}
		out = append(out, Stage{Name: name, Took: time.Duration(n) * time.Microsecond})
	}
	return out, nil
}

// CallJSON is the record of a call in APIs and on the command line.
type CallJSON struct {
	Seq         int64           `json:"seq"`                 // sequence number of the record
	ID          string          `json:"id"`                  // unique id of the call
	RequestID   string          `json:"requestId,omitempty"` // X-Request-Id of the request; not necessarily unique
	Parent      string          `json:"parent,omitempty"`    // id of the call that made this one
	Time        time.Time       `json:"time"`                // when the call was received
	DurationMs  float64         `json:"durationMs"`
	Face        string          `json:"face,omitempty"`       // API through which the call was made: discovery, tools, broker, chat, agentify, control or app
	Caller      string          `json:"caller,omitempty"`     // id of the caller
	CallerName  string          `json:"callerName,omitempty"` // name of the caller at the time of the call
	Session     string          `json:"sessionId,omitempty"`  // id of the chat or MCP session
	Server      string          `json:"server,omitempty"`
	Tool        string          `json:"tool,omitempty"`   // absent for MCP methods other than tools/call
	Method      string          `json:"method,omitempty"` // the MCP method
	Status      Status          `json:"status"`
	Kind        string          `json:"code,omitempty"`          // code of the error
	Error       string          `json:"error,omitempty"`         // message of the error
	Arguments   json.RawMessage `json:"arguments,omitempty"`     // redacted and truncated; absent in lists
	Result      json.RawMessage `json:"result,omitempty"`        // redacted and truncated; absent in lists
	ArgBytes    int             `json:"argumentBytes,omitempty"` // size of the arguments before truncation
	ResultBytes int             `json:"resultBytes,omitempty"`   // size of the result before truncation
	TraceID     string          `json:"traceId,omitempty"`       // W3C trace id
	Node        string          `json:"node,omitempty"`          // gateway process that handled the call
	Stages      []StageJSON     `json:"stages,omitempty"`        // where the time was spent; absent in lists
}

// StageJSON is one stage of a call.
type StageJSON struct {
	Name   string  `json:"name"`
	TookMs float64 `json:"tookMs"` // duration in milliseconds
}

// MarshalJSON writes the call as APIs and the command line show it, times in
// milliseconds.
func (c Call) MarshalJSON() ([]byte, error) {
	j := CallJSON{
		Seq: c.Seq, ID: c.ID, RequestID: c.RequestID, Parent: c.Parent, Time: c.Time, DurationMs: millis(c.Duration),
		Face: c.Face, Caller: c.Caller, CallerName: c.CallerName, Session: c.Session,
		Server: c.Server, Tool: c.Tool, Method: c.Method,
		Status: c.Status, Kind: c.Kind, Error: c.Error,
		Arguments: c.Arguments, Result: c.Result, ArgBytes: c.ArgBytes, ResultBytes: c.ResultBytes,
		TraceID: c.TraceID, Node: c.Node,
	}
	for _, s := range c.Stages {
		j.Stages = append(j.Stages, StageJSON{s.Name, millis(s.Took)})
	}
	return json.Marshal(j)
}

// UnmarshalJSON parses the output of MarshalJSON.
func (c *Call) UnmarshalJSON(b []byte) error {
	var j CallJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*c = Call{
		Seq: j.Seq, ID: j.ID, RequestID: j.RequestID, Parent: j.Parent, Time: j.Time, Duration: fromMillis(j.DurationMs),
		Face: j.Face, Caller: j.Caller, CallerName: j.CallerName, Session: j.Session,
		Server: j.Server, Tool: j.Tool, Method: j.Method,
		Status: j.Status, Kind: j.Kind, Error: j.Error,
		Arguments: j.Arguments, Result: j.Result, ArgBytes: j.ArgBytes, ResultBytes: j.ResultBytes,
		TraceID: j.TraceID, Node: j.Node,
	}
	for _, s := range j.Stages {
		c.Stages = append(c.Stages, Stage{s.Name, fromMillis(s.TookMs)})
	}
	return nil
}

// millis returns milliseconds with microsecond precision; finer is noise.
func millis(d time.Duration) float64      { return float64(d.Microseconds()) / 1000 }
func fromMillis(ms float64) time.Duration { return time.Duration(ms*1000+0.5) * time.Microsecond }
