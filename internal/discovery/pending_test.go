package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/listing"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/search"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// states are upstreams in every state.
type states struct{ list []upstream.Status }

func (s states) Status() []upstream.Status { return s.list }
func (s states) StatusOf(server string) (upstream.Status, bool) {
	for _, st := range s.list {
		if st.Name == server {
			return st, true
		}
	}
	return upstream.Status{}, false
}
func (s states) Has(server string) bool {
	_, ok := s.StatusOf(server)
	return ok
}
func (s states) Connecting() (names []string) {
	for _, st := range s.list {
		if st.State == upstream.Connecting {
			names = append(names, st.Name)
		}
	}
	return names
}
func (s states) Await(context.Context, ...string) []string {
	return []string{"slow"}
}
func (s states) Info(string, string) (mcpclient.ServerInfo, bool) {
	return mcpclient.ServerInfo{}, false
}
func (s states) Describe(context.Context, string, string, tool.Exchange) (mcpclient.ServerInfo, bool) {
	return mcpclient.ServerInfo{}, false
}
func (s states) Notify(context.Context, string, string, string, json.RawMessage) error {
	return nil
}

func TestServerStatesAreExplained(t *testing.T) {
	ups := states{[]upstream.Status{
		{Name: "slow", State: upstream.Connecting},
		{Name: "locked", State: upstream.AuthRequired, Reason: "sign in"},
		{Name: "off", State: upstream.Disabled},
		{Name: "gone", State: upstream.Disconnected, Reason: "it ended"},
	}}
	f := New(Options{Tools: listing.New(listing.Options{Catalog: catalog.New(nil, nil), Search: search.New(), Upstreams: ups}), Upstreams: ups, Config: DefaultConfig(), Log: nolog})
	v := &metaView{face: f}
	ask := func(name, arguments string) string {
		t.Helper()
		got, err := v.Serve(t.Context(), &mcpserver.Request{Method: "tools/call", Caller: tool.Local, Params: json.RawMessage(`{"name":"` + name + `","arguments":` + arguments + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(got), `\"`, `"`)
	}
	for server, parts := range map[string][]string{
		"slow":   {"UNAVAILABLE", "try again shortly"},
		"locked": {"UPSTREAM_AUTH_REQUIRED", "sign in"},
		"off":    {"TOOL_DISABLED", "disabled"},
		"gone":   {"UNAVAILABLE", "it ended"},
		"never":  {"SERVER_NOT_FOUND"},
		"gonne":  {"SERVER_NOT_FOUND", "did you mean gone?"},
	} {
		for _, call := range []string{ask("list_tools", `{"server":"`+server+`"}`), ask("get_tool_details", `{"server":"`+server+`","tool":"x"}`), ask("search_tools", `{"query":"x","server":"`+server+`"}`)} {
			for _, part := range parts {
				if !strings.Contains(call, part) || !strings.Contains(call, `"isError":true`) {
					t.Errorf("%s: no %q in %s", server, part, call)
				}
			}
		}
	}
	if got := ask("search_tools", `{"query":"anything"}`); !strings.Contains(got, `"pending":["slow"]`) {
		t.Errorf("search = %s", got)
	}
	if got := ask("list_mcp_servers", `{}`); !strings.Contains(got, `"reason":"sign in"`) || !strings.Contains(got, `"reason":"it ended"`) {
		t.Errorf("servers = %s", got)
	}
	if text := f.overview(&tool.Local, metaInstructions); !strings.Contains(text, "locked (auth_required)") {
		t.Errorf("instructions = %s", text)
	}
	for arguments, part := range map[string]string{
		`{"query":"x","limit":"many"}`:         "limit must be a number",
		`{"query":"x","limit":0.5}`:            "whole number",
		`{"query":"  "}`:                       "query is empty",
		`{"query":5,"server":{}}`:              "query must be a string; server must be a string",
		`{"query":"x","includeDisabled":true}`: "is not one of its arguments",
		`"x"`:                                  "must be an object",
	} {
		if got := ask("search_tools", arguments); !strings.Contains(got, "INVALID_ARGUMENTS") || !strings.Contains(got, part) {
			t.Errorf("search_tools %s = %s", arguments, got)
		}
	}
	for arguments, part := range map[string]string{
		`{"server":"a","tool":"b","arguments":"{broken"}`: "arguments must be an object",
		`{"server":"a","tool":"b","arguments":[1]}`:       "arguments must be an object",
		`null`: "server is missing; tool is missing",
	} {
		if got := ask("execute_tool", arguments); !strings.Contains(got, part) {
			t.Errorf("execute_tool %s = %s", arguments, got)
		}
	}
	// The transparent view of an unavailable server returns the reason.
	for server, kind := range map[string]tool.Kind{"locked": tool.UpstreamAuthRequired, "off": tool.ToolDisabled, "gone": tool.Unavailable, "never": tool.ServerNotFound} {
		s := &transparentView{face: f, name: server}
		if _, err := s.Describe(t.Context(), &mcpserver.Request{}); tool.KindOf(err) != kind {
			t.Errorf("Describe(%s) = %v", server, err)
		}
	}
	if got, err := setLevel(&mcpserver.Request{Params: json.RawMessage(`{"level":"debug"}`)}); err != nil || string(got) != "{}" {
		t.Errorf("setLevel = %s, %v", got, err)
	}
}

// The overview describes the purpose of each server, if known.
func TestOverviewDescribesServers(t *testing.T) {
	cat := catalog.New(nil, nil)
	var ups states
	put := func(name, description string, tools ...string) {
		ups.list = append(ups.list, upstream.Status{Name: name, State: upstream.Connected})
		var defs []tool.Definition
		for _, tl := range tools {
			defs = append(defs, tool.Definition{Name: tool.Name{Server: name, Tool: tl}, InputSchema: json.RawMessage(`{"type":"object"}`)})
		}
		cat.Put(catalog.Server{Name: name, Description: description}, defs)
	}
	put("told", "Talks to the moon.", "call", "hang_up")
	put("untold", "", "one", "two", "three", "four", "five")
	put("lone", "", "only")
	overview := func() string {
		f := New(Options{Tools: listing.New(listing.Options{Catalog: cat, Search: search.New(), Upstreams: ups}), Upstreams: ups, Config: DefaultConfig(), Log: nolog})
		_, list, _ := strings.Cut(f.overview(&tool.Local, metaInstructions), "Servers:\n")
		return list
	}
	if got, want := overview(), "- told: Talks to the moon. (2 tools)\n- untold: one, two, three, four (5 tools)\n- lone: only (1 tool)"; got != want {
		t.Errorf("overview:\n%s\nwant:\n%s", got, want)
	}
	for i := range overviewServers { // with many servers, names take precedence over tools
		put(fmt.Sprintf("more%02d", i), "", "x")
	}
	if got := overview(); !strings.Contains(got, "- untold (5 tools)") {
		t.Errorf("overview of many:\n%s", got)
	}
}

// The direct view includes the instructions of all servers, within limits.
func TestInstructionsOfAllServers(t *testing.T) {
	cat := catalog.New(nil, nil)
	for name, words := range map[string]string{"a": " Call a first.\n", "b": "", "c": strings.Repeat("long ", 1000), "hidden": "secret ways"} {
		cat.Put(catalog.Server{Name: name, Instructions: words}, nil)
	}
	for i := range 20 {
		cat.Put(catalog.Server{Name: fmt.Sprintf("d%02d", i), Instructions: strings.Repeat("more ", 200)}, nil)
	}
	f := New(Options{Tools: listing.New(listing.Options{Catalog: cat, Search: search.New(), Upstreams: states{}}), Upstreams: states{}, Config: DefaultConfig(), Log: nolog})
	got := f.allInstructions(&tool.Caller{ID: "x", Servers: []string{"a", "b", "c", "d*"}})
	if !strings.Contains(got, "\n\na:\nCall a first.\n\nc:\nlong ") || strings.Contains(got, "b:") || strings.Contains(got, "secret") {
		t.Errorf("instructions: %.300s", got)
	}
	if len(got) > instructionsLength+200 {
		t.Errorf("%d bytes", len(got))
	}
}

// The list of servers is bounded.
func TestListServersIsBounded(t *testing.T) {
	var ups states
	for range 3000 {
		ups.list = append(ups.list, upstream.Status{Name: "server-" + strings.Repeat("x", 40), State: upstream.Connected})
	}
	f := New(Options{Tools: listing.New(listing.Options{Catalog: catalog.New(nil, nil), Search: search.New(), Upstreams: ups}), Upstreams: ups, Config: DefaultConfig(), Log: nolog})
	v := &metaView{face: f}
	list := func() string {
		got, err := v.Serve(t.Context(), &mcpserver.Request{Method: "tools/call", Caller: tool.Local, Params: json.RawMessage(`{"name":"list_mcp_servers"}`)})
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	if got := list(); len(got) > 2*DefaultConfig().MaxAnswerBytes || !strings.Contains(got, `\"more\":`) {
		t.Errorf("%d bytes, ends %s", len(got), got[max(0, len(got)-200):])
	}
	f.opts.Tools = listing.New(listing.Options{Catalog: catalog.New(nil, nil), Upstreams: states{}})
	if got := list(); !strings.Contains(got, `\"servers\":[]`) || !strings.Contains(got, "junctor servers add") {
		t.Errorf("no server: %s", got)
	}
}

// The log level that a client of the handshake era has set is sent with its
// calls.
func TestLogLevelIsSentWithCall(t *testing.T) {
	d := newTestServer(anyTool("progress"))
	d.old = true
	r := newFixture(t, map[string]*testServer{"desk": d})
	for view, call := range map[View]string{
		{}:                 `{"name":"execute_tool","arguments":{"server":"desk","tool":"progress","arguments":{}},"_meta":{"progressToken":1}}`,
		{Mode: DirectMode}: `{"name":"desk__progress","arguments":{},"_meta":{"progressToken":1}}`,
	} {
		for level, want := range map[string]bool{"info": true, "error": false} {
			c := r.client(mcp.Version20250618, view)
			do(t, c, "logging/setLevel", `{"level":"`+level+`"}`)
			var notes []string
			if _, err := c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: json.RawMessage(call), Exchange: answering(&notes)}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(strings.Join(notes, ","), "notifications/message"); got != want {
				t.Errorf("%v, level %s: %v", view, level, notes)
			}
		}
	}
	if !d.has("logging/setLevel") {
		t.Error("the upstream was not asked for log messages")
	}
}

// unlisted are upstreams whose statuses must not be listed.
type unlisted struct {
	states
	t *testing.T
}

func (u unlisted) Status() []upstream.Status {
	u.t.Error("the status of all servers was read")
	return u.list
}

func TestRequestsLookUpOneServer(t *testing.T) {
	ups := unlisted{states{[]upstream.Status{{Name: "a", State: upstream.Connected}, {Name: "b", State: upstream.Connected}}}, t}
	f := New(Options{Tools: listing.New(listing.Options{Catalog: catalog.New(nil, nil), Search: search.New(), Upstreams: ups}), Upstreams: ups, Config: DefaultConfig(), Log: nolog})
	t.Cleanup(f.Close)
	mux := http.NewServeMux()
	f.Routes(mux)
	for path, body := range map[string]string{
		"/mcp/a": `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`,
		"/mcp":   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_tools","arguments":{"query":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
	} {
		r := httptest.NewRequestWithContext(tool.WithCaller(t.Context(), tool.Local), http.MethodPost, path, strings.NewReader(body))
		for k, v := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json", "Mcp-Protocol-Version": "2026-07-28",
			"Mcp-Method": "tools/call", "Mcp-Name": "search_tools",
		} {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), `"jsonrpc"`) || w.Code == http.StatusNotFound {
			t.Errorf("%s answered %d %s", path, w.Code, w.Body)
		}
	}
}

func (states) FollowTasks(context.Context, string, string, tool.Exchange, []string) ([]string, func(context.Context), error) {
	return nil, nil, nil
}
