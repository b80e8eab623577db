package agentify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"junctor/internal/httperr"
	"junctor/internal/listing"
	"junctor/internal/mcp"
	"junctor/internal/mcptrace"
	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/wsconn"
)

// Debug serves the backends, the log and the traffic with the backends, as
// lists and as streams. Requests are already authenticated. Only operators see
// the log and the traffic of other callers.
type Debug struct {
	Trace *mcptrace.Trace
	Logs  *telemetry.Ring[telemetry.LogEntry] // nil shows no log
	Tools *listing.Service

	watchers atomic.Int32
}

// Limits of the debug interface.
const (
	maxWatchers    = 64
	initialEntries = 100              // default number of entries
	pingInterval   = 30 * time.Second // on a stream
	writeTimeout   = 30 * time.Second // then a client that reads nothing is disconnected
)

// Routes mounts the endpoints.
func (d *Debug) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/backends", httperr.JSON(d.backends))
	mux.HandleFunc("GET /api/logs", httperr.JSON(d.logs))
	mux.HandleFunc("GET /api/mcptrace", httperr.JSON(d.trace))
	mux.HandleFunc("GET /ws/logs", httperr.Handler(d.watchLogs))
	mux.HandleFunc("GET /ws/mcptrace", httperr.Handler(d.watchTrace))
}

// Backend is a server in the debug interface.
type Backend struct {
	ID          string         `json:"id"`
	DisplayName string         `json:"displayName,omitempty"`
	IsReady     bool           `json:"isReady"` // the server is connected
	Status      upstream.State `json:"status"`
	Reason      string         `json:"statusMessage,omitempty"` // why the server is not connected; absent if it is
	Transport   string         `json:"transport"`
	Tools       int            `json:"tools"`          // number of tools
	InFlight    int            `json:"inFlight"`       // number of requests in progress
	PID         int            `json:"pid,omitempty"`  // process id of a local server
	Since       time.Time      `json:"since,omitzero"` // when the status last changed
}

func (d *Debug) backends(r *http.Request) (any, error) {
	caller := tool.CallerFrom(r.Context())
	list := []Backend{}
	for _, st := range d.Tools.Servers(&caller) {
		b := Backend{
			ID: st.Name, DisplayName: st.Title, IsReady: st.State == upstream.Connected, Status: st.State, Reason: st.Reason,
			Transport: string(st.Transport), Tools: st.Tools, InFlight: st.InFlight, PID: st.PID, Since: st.Since,
		}
		list = append(list, b)
	}
	return list, nil
}

func (d *Debug) logs(r *http.Request) (any, error) {
	limit, keep, err := d.logQuery(r)
	if err != nil {
		return nil, err
	}
	list := []telemetry.LogEntry{}
	if d.Logs != nil {
		list = slices.DeleteFunc(d.Logs.Latest(0), func(e telemetry.LogEntry) bool { return !keep(e) })
	}
	return list[max(0, len(list)-limit):], nil
}

func (d *Debug) logQuery(r *http.Request) (limit int, keep func(telemetry.LogEntry) bool, err error) {
	if caller := tool.CallerFrom(r.Context()); !caller.IsOperator() {
		return 0, nil, &tool.Error{Kind: tool.Denied, Msg: "the log is for administrators; use a key made with junctor keys add NAME --admin"}
	}
	if limit, err = limitOf(r); err != nil {
		return 0, nil, err
	}
	levels := []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}
	minLevel := 0
	if word := r.URL.Query().Get("level"); word != "" {
		minLevel = slices.IndexFunc(levels, func(l string) bool { return strings.EqualFold(l, word) })
		if minLevel < 0 {
			return 0, nil, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("level %q is not one of trace, debug, info, warn, error, fatal", tool.Shorten(word, 40))}
		}
	}
	return limit, func(e telemetry.LogEntry) bool { return slices.Index(levels, e.Level) >= minLevel }, nil
}

func (d *Debug) trace(r *http.Request) (any, error) {
	limit, keep, err := d.traceQuery(r)
	if err != nil {
		return nil, err
	}
	list := []mcptrace.Entry{}
	records := slices.DeleteFunc(d.Trace.Records().Latest(0), func(rec mcptrace.Record) bool { return !keep(rec) })
	for _, rec := range records[max(0, len(records)-limit):] {
		list = append(list, d.Trace.Show(rec))
	}
	return list, nil
}

func (d *Debug) traceQuery(r *http.Request) (limit int, keep func(mcptrace.Record) bool, err error) {
	if limit, err = limitOf(r); err != nil {
		return 0, nil, err
	}
	caller := tool.CallerFrom(r.Context())
	all := caller.IsOperator()
	backend := r.URL.Query().Get("backend")
	return limit, func(rec mcptrace.Record) bool {
		return (all || mayRead(&rec, &caller)) && (backend == "" || rec.Server == backend)
	}, nil
}

// mayRead reports whether a caller that is not an operator may see a record.
// The caller's ID is not enough: programs of one user share the user's ID, but
// each may have its own profile.
func mayRead(rec *mcptrace.Record, caller *tool.Caller) bool {
	switch {
	case rec.Caller != caller.ID:
		return false
	case !caller.Limited():
		return true
	case rec.Server == "": // the steps of a task do not record its profile
		return len(caller.Profiles) == 0 && caller.MaySee("")
	case rec.Method == mcp.MethodToolsList: // the server's list, including tools that the caller may not see
		return false
	}
	return caller.MayUse(tool.Name{Server: rec.Server, Tool: rec.Tool})
}

func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return initialEntries, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("limit %q is not a number of entries", tool.Shorten(text, 40))}
	}
	return n, nil
}

func (d *Debug) watchLogs(w http.ResponseWriter, r *http.Request) error {
	limit, keep, err := d.logQuery(r)
	if err != nil {
		return err
	}
	ring := d.Logs
	if ring == nil {
		ring = telemetry.NewRing[telemetry.LogEntry](1)
	}
	return watch(d, w, r, ring, limit, keep, func(e telemetry.LogEntry) any { return e }, func(n int64) any {
		return telemetry.LogEntry{Timestamp: time.Now().UnixMilli(), Level: "WARN", Message: fmt.Sprintf("%d lines were dropped because this connection is too slow", n)}
	})
}

func (d *Debug) watchTrace(w http.ResponseWriter, r *http.Request) error {
	limit, keep, err := d.traceQuery(r)
	if err != nil {
		return err
	}
	return watch(d, w, r, d.Trace.Records(), limit, keep, func(rec mcptrace.Record) any { return d.Trace.Show(rec) }, func(n int64) any {
		return mcptrace.Entry{Timestamp: time.Now().UnixMilli(), Direction: "INCOMING_TO_GATEWAY", Method: "agentify/missed", Payload: json.RawMessage(strconv.FormatInt(n, 10))}
	})
}

// watch sends the newest entries of a ring and then new ones as they arrive,
// one JSON object per message, until the client disconnects.
func watch[T any](d *Debug, w http.ResponseWriter, r *http.Request, ring *telemetry.Ring[T], first int, keep func(T) bool, show func(T) any, missed func(int64) any) error {
	if d.watchers.Add(1) > maxWatchers {
		d.watchers.Add(-1)
		return &tool.Error{Kind: tool.RateLimited, Msg: "too many log and trace streams are open; close another window", RetryAfter: 30 * time.Second}
	}
	defer d.watchers.Add(-1)
	// The gate in front of all faces has checked the origin.
	conn, err := wsconn.Accept(w, r)
	if err != nil {
		return nil // Accept has sent the response
	}
	defer func() { _ = conn.CloseNow() }()
	// The request's context ends with the gateway or with the caller's credential.
	// The client then gets a close frame before the connection is closed.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	ctx = conn.CloseRead(ctx)
	defer context.AfterFunc(r.Context(), func() {
		defer cancel()
		if context.Cause(r.Context()) == tool.ErrCredentialEnded {
			_ = conn.CloseEnded()
			return
		}
		_ = conn.CloseWithin(time.Second, websocket.StatusGoingAway, "")
	})()
	send := func(v any) bool {
		if r.Context().Err() != nil { // nothing more is sent
			<-ctx.Done()
			return false
		}
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return conn.Write(ctx, websocket.MessageText, rawjson.MarshalOrNull(v)) == nil
	}
	latest, more, lost := ring.Follow(ctx, 0)
	latest = slices.DeleteFunc(latest, func(e T) bool { return !keep(e) })
	for _, e := range latest[max(0, len(latest)-first):] {
		if !send(show(e)) {
			return nil
		}
	}
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.Context().Done():
			<-ctx.Done()
			return nil
		case e := <-more:
			if keep(e) && !send(show(e)) {
				return nil
			}
			if n := lost(); n > 0 && !send(missed(n)) {
				return nil
			}
		case <-ping.C:
			alive, cancel := context.WithTimeout(ctx, writeTimeout)
			err := conn.Ping(alive)
			cancel()
			if err != nil {
				return nil
			}
		}
	}
}
