package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/store"
	"junctor/internal/tool"
)

func TestCallPassesThrough(t *testing.T) {
	r := newFixture(t)
	const answer = `{"content":[{"type":"new-kind","n":12345678901234567890}],"x":1}`
	var sent tool.Request
	r.do = func(_ context.Context, server string, req tool.Request) (json.RawMessage, error) {
		sent = req
		return json.RawMessage(answer), nil
	}
	c := call("read", `{"path":"a","n":12345678901234567890}`)
	c.Meta = json.RawMessage(`{"progressToken":7}`)
	c.Session = "s1"
	res, err := r.Call(t.Context(), c)
	if err != nil || string(res.Raw) != answer || res.IsError {
		t.Fatalf("Call = %s, %v", res.Raw, err)
	}
	if want := `{"name":"read","arguments":{"path":"a","n":12345678901234567890},"_meta":{"progressToken":7}}`; string(sent.Params) != want {
		t.Errorf("sent %s, want %s", sent.Params, want)
	}
	if sent.Method != "tools/call" || sent.Caller != "local" {
		t.Errorf("sent %+v", sent)
	}
	if r.InFlight() != 0 {
		t.Errorf("%d calls are in flight", r.InFlight())
	}
	rec := r.only(t)
	if rec.ID == "" || rec.Server != "fs" || rec.Tool != "read" || rec.Status != store.StatusOK || rec.Session != "s1" ||
		rec.Node != "n1" || rec.Method != "tools/call" || rec.ResultBytes != len(answer) || len(rec.Stages) == 0 {
		t.Errorf("record = %+v", rec)
	}
	if n := strings.Count(r.out.String(), "\n"); n != 1 || !strings.Contains(r.out.String(), "tool=read") {
		t.Errorf("%d lines in the log, want one with the tool: %s", n, r.out.String())
	}
}

func TestParamsAreForwardedUnchanged(t *testing.T) {
	r := newFixture(t)
	var sent string
	r.do = func(_ context.Context, _ string, req tool.Request) (json.RawMessage, error) {
		sent = string(req.Params)
		return json.RawMessage(`{}`), nil
	}
	c := call("write", "")
	c.Params = json.RawMessage(`{ "name":"write", "task":{"ttl":1} }`)
	if _, err := r.Call(t.Context(), c); err != nil || sent != string(c.Params) {
		t.Errorf("sent %s, %v", sent, err)
	}
	// The arguments that the gateway checked are sent, not those of the params.
	c = call("fs:write", `{"a":1}`)
	c.Meta = json.RawMessage(`{"progressToken":2}`)
	c.Params = json.RawMessage(`{"name":"alias","arguments":{"a":2},"task":{},"_meta":{}}`)
	if _, err := r.Call(t.Context(), c); err != nil || sent != `{"name":"write","arguments":{"a":1},"task":{},"_meta":{"progressToken":2}}` {
		t.Errorf("sent %s, %v", sent, err)
	}
	c.Arguments, c.Meta = nil, nil
	if _, err := r.Call(t.Context(), c); err != nil || sent != `{"name":"write","task":{}}` {
		t.Errorf("sent %s, %v", sent, err)
	}
	c = call("write", "")
	if _, err := r.Call(t.Context(), c); err != nil || sent != `{"name":"write","arguments":{}}` {
		t.Errorf("without arguments sent %s, %v", sent, err)
	}
}

func TestRefusedCalls(t *testing.T) {
	off := false
	for name, tt := range map[string]struct {
		call tool.Call
		kind tool.Kind
		says string
	}{
		"unknown tool":       {call("reed", `{}`), tool.ToolNotFound, "fs:read"},
		"disabled":           {call("write", `{}`), tool.ToolDisabled, "toolRules"},
		"missing argument":   {call("read", `{}`), tool.InvalidArguments, "path"},
		"no object":          {call("read", `[1]`), tool.InvalidArguments, "JSON object"},
		"not JSON":           {call("read", `{"path"`), tool.InvalidArguments, "JSON"},
		"every violation":    {call("read", `{"n":"x","y":1}`), tool.InvalidArguments, "at /n"},
		"hidden by its key":  {tool.Call{Caller: tool.Caller{ID: "k", Servers: []string{"other"}}, Server: "fs", Tool: "read"}, tool.ServerNotFound, "no server"},
		"ambiguous is final": {call("twice", `{}`), tool.InvalidArguments, "ambiguous"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.offer(t, "a", `{"name":"twice","inputSchema":{}}`)
			r.offer(t, "b", `{"name":"twice","inputSchema":{}}`)
			r.catalog.Configure(catalog.Settings{Rules: []catalog.ToolRule{{Pattern: []string{"fs:write"}, Enabled: &off}}}, nil)
			_, err := r.Call(t.Context(), tt.call)
			if tool.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error = %v of kind %s, want %s that says %q", err, tool.KindOf(err), tt.kind, tt.says)
			}
			rec := r.only(t)
			if rec.Status != store.StatusFailed || rec.Kind != string(tt.kind) || rec.Error == "" {
				t.Errorf("record = %+v", rec)
			}
			if r.calls != 0 {
				t.Error("the upstream was called all the same")
			}
		})
	}
}

func TestFailuresOfUpstreams(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		kind tool.Kind
	}{
		"cut connection":       {io.ErrUnexpectedEOF, tool.UpstreamFailed},
		"its own JSON-RPC":     {&mcp.Error{Code: -32000, Message: "quota", Data: json.RawMessage(`{"a":1}`)}, tool.UpstreamFailed},
		"blames the arguments": {fmt.Errorf("x: %w", &mcp.Error{Code: mcp.CodeInvalidParams, Message: "bad"}), tool.InvalidArguments},
		"knows no such method": {&mcp.Error{Code: mcp.CodeMethodNotFound, Message: "no"}, tool.MethodNotFound},
		"down":                 {&tool.Error{Kind: tool.UpstreamFailed, Msg: "fs is down"}, tool.UpstreamFailed},
		"consent":              {&tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "log in"}, tool.UpstreamAuthRequired},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) { return nil, tt.err }
			_, err := r.Call(t.Context(), call("write", `{}`))
			if tool.KindOf(err) != tt.kind || !errors.Is(err, tt.err) {
				t.Errorf("error = %v of kind %s, want %s", err, tool.KindOf(err), tt.kind)
			}
			r.only(t)
		})
	}
}

func TestToolErrorIsAResult(t *testing.T) {
	r := newFixture(t)
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"no such file"}],"isError":true}`), nil
	}
	for range 10 {
		res, err := r.Call(t.Context(), call("write", `{}`))
		if err != nil || !res.IsError {
			t.Fatalf("Call = %+v, %v", res, err)
		}
	}
	if s := r.Stats(tool.Name{Server: "fs", Tool: "write"}); s.Circuit != Closed || s.Calls != 10 || s.Successes != 0 || s.Failures != 10 {
		t.Errorf("tool errors moved the circuit, or count as successes: %+v", s)
	}
	if r.records[0].Status != store.StatusError {
		t.Errorf("recorded as %s", r.records[0].Status)
	}
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"\"isError\":true"}]}`), nil
	}
	if res, _ := r.Call(t.Context(), call("write", `{}`)); res.IsError {
		t.Error("a text about errors was taken for one")
	}
}

func TestForward(t *testing.T) {
	r := newFixture(t)
	var sent tool.Request
	r.do = func(_ context.Context, server string, req tool.Request) (json.RawMessage, error) {
		sent = req
		return json.RawMessage(`{"x-unknown": 1}`), nil
	}
	c := tool.Forward{Face: "broker", Caller: tool.Local, Server: "fs", Method: "x/unknown", Params: json.RawMessage(`{"a" : 1}`)}
	raw, err := r.Forward(t.Context(), c)
	if err != nil || string(raw) != `{"x-unknown": 1}` || string(sent.Params) != `{"a" : 1}` || sent.Method != "x/unknown" {
		t.Errorf("Forward = %s, %v; sent %+v", raw, err, sent)
	}
	if rec := r.only(t); rec.Method != "x/unknown" || rec.Tool != "" || string(rec.Arguments) != `{"a" : 1}` {
		t.Errorf("record = %+v", rec)
	}
	if _, err := r.Forward(t.Context(), tool.Forward{Caller: tool.Local, Server: "fs", Method: "tools/call"}); tool.KindOf(err) != tool.InvalidRequest {
		t.Errorf("a tool call was forwarded: %v", err)
	}
	c.Caller = tool.Caller{ID: "k", Servers: []string{"none"}}
	if _, err := r.Forward(t.Context(), c); tool.KindOf(err) != tool.ServerNotFound {
		t.Errorf("a hidden server was reached: %v", err)
	}
	c.Caller = tool.Caller{ID: "k2", Rate: tool.Rate{Calls: 1, Per: time.Hour}}
	if _, err := r.Forward(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Forward(t.Context(), c); tool.KindOf(err) != tool.RateLimited {
		t.Errorf("the key's rate does not hold: %v", err)
	}
}

func TestOnlyIdempotentCallsAreRetried(t *testing.T) {
	for name, tt := range map[string]struct {
		tool, args string
		err        error
		want       int
	}{
		"read-only, connection cut":   {"read", `{"path":"a"}`, io.EOF, 2},
		"not marked, connection cut":  {"write", `{}`, io.EOF, 1},
		"read-only, upstream's error": {"read", `{"path":"a"}`, &mcp.Error{Code: -32000, Message: "no"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFixture(t)
				r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
					if r.calls == 1 {
						return nil, tt.err
					}
					return json.RawMessage(`{}`), nil
				}
				_, err := r.Call(t.Context(), call(tt.tool, tt.args))
				if r.calls != tt.want || (err == nil) != (tt.want == 2) {
					t.Errorf("%d attempts, error %v; want %d attempts", r.calls, err, tt.want)
				}
				r.only(t)
			})
		})
	}
}
