package executor

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/tool"
)

func TestUnavailableUpstreamDoesNotOpenCircuit(t *testing.T) {
	r := newFixture(t)
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "fs is down since noon", Err: tool.ErrDown}
	}
	for i := range 20 {
		if _, err := r.Call(t.Context(), call("read", `{"path":"a"}`)); tool.KindOf(err) != tool.UpstreamFailed {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if r.calls != 20 {
		t.Errorf("20 calls were tried %d times; what is down is not tried again", r.calls)
	}
	r.do = succeed
	if _, err := r.Call(t.Context(), call("read", `{"path":"a"}`)); err != nil {
		t.Errorf("the first call after the return: %v", err)
	}
}

// TestNeverConnectedServerErrorExplainsWhy: a call to a configured server that
// was never connected gets the reason, however it names the server.
func TestNeverConnectedServerErrorExplainsWhy(t *testing.T) {
	r := newFixture(t)
	r.do = func(_ context.Context, server string, _ tool.Request) (json.RawMessage, error) {
		if server != "jira" {
			return nil, &tool.Error{Kind: tool.ServerNotFound, Msg: "no such server"}
		}
		return nil, &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "sign in", Err: tool.ErrDown}
	}
	anyone, limited := tool.Local, tool.Caller{ID: "key:k", Servers: []string{"fs"}}
	for name, tt := range map[string]struct {
		call tool.Call
		kind tool.Kind
	}{
		"by server":      {tool.Call{Caller: anyone, Server: "jira", Tool: "create"}, tool.UpstreamAuthRequired},
		"qualified":      {tool.Call{Caller: anyone, Tool: "jira:create"}, tool.UpstreamAuthRequired},
		"unknown server": {tool.Call{Caller: anyone, Server: "nope", Tool: "create"}, tool.ServerNotFound},
		"bare":           {tool.Call{Caller: anyone, Tool: "create"}, tool.ToolNotFound},
		"hidden server":  {tool.Call{Caller: limited, Server: "jira", Tool: "create"}, tool.ServerNotFound},
	} {
		if _, err := r.Call(t.Context(), tt.call); tool.KindOf(err) != tt.kind {
			t.Errorf("%s: %v, want %s", name, err, tt.kind)
		}
	}
}

// TestUnresolvedCallIsRecordedUnderItsName: the record of a call whose tool is not
// known has the server and the tool that the caller named.
func TestUnresolvedCallIsRecordedUnderItsName(t *testing.T) {
	for name, tt := range map[string]struct{ callServer, callTool, server, tool string }{
		"by server":      {"jira", "create", "jira", "create"},
		"both":           {"jira", "jira:create", "jira", "create"},
		"qualified":      {"", "jira:create", "jira", "create"},
		"unknown server": {"", "nope:ns:odd", "nope", "ns:odd"},
		"bare":           {"", "create", "", "create"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.do = func(_ context.Context, server string, _ tool.Request) (json.RawMessage, error) {
				if server != "jira" {
					return nil, &tool.Error{Kind: tool.ServerNotFound, Msg: "no such server"}
				}
				return nil, &tool.Error{
					Kind: tool.UpstreamFailed, Msg: "jira has been down since noon: it ended", Details: map[string]any{"reason": "it ended"}, Err: tool.ErrDown,
				}
			}
			_, err := r.Call(t.Context(), tool.Call{Caller: tool.Local, Server: tt.callServer, Tool: tt.callTool})
			rec := r.only(t)
			if err == nil || rec.Server != tt.server || rec.Tool != tt.tool {
				t.Errorf("%v, recorded as %q %q, want %q %q", err, rec.Server, rec.Tool, tt.server, tt.tool)
			}
		})
	}
}

// TestLookForUnknownToolIsBoundedAsACall: the request that finds out why a
// server has no such tool is limited by the call's timeout or, without one, by
// the server's timeoutMs.
func TestLookForUnknownToolIsBoundedAsACall(t *testing.T) {
	for name, tt := range map[string]struct{ own, want time.Duration }{
		"the server's":   {0, 30 * time.Second},
		"the call's own": {time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFixture(t)
				r.do = func(ctx context.Context, _ string, _ tool.Request) (json.RawMessage, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // the caller waits longer
				defer cancel()
				begun := time.Now()
				_, err := r.Call(ctx, tool.Call{Caller: tool.Local, Server: "jira", Tool: "create", Timeout: tt.own})
				if took := time.Since(begun); took != tt.want || tool.KindOf(err) != tool.Timeout || !strings.Contains(err.Error(), "jira did not answer") {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}
