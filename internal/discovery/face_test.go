package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

var versions = []string{mcp.Version20241105, mcp.Version20250326, mcp.Version20250618, mcp.Version20251125, mcp.Version20260728}

// answering is the exchange of a caller that answers questions.
func answering(notes *[]string) tool.Exchange {
	var mu sync.Mutex
	return tool.Exchange{
		Capabilities: json.RawMessage(`{"elicitation":{"form":{}},"sampling":{},"roots":{}}`),
		Ask: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"action":"accept","asked":"` + method + `"}`), nil
		},
		Notify: func(method string, params json.RawMessage) {
			mu.Lock()
			defer mu.Unlock()
			if notes != nil {
				*notes = append(*notes, method+" "+string(rawjson.Field(params, "progress")))
			}
		},
	}
}

// In all combinations of eras and in every view, a question that an upstream
// asks during a call reaches the client, and the answer reaches the upstream.
func TestElicitationInAllEras(t *testing.T) {
	for _, old := range []bool{true, false} {
		d := newTestServer(anyTool("ask"), anyTool("progress"))
		d.old = old
		r := newFixture(t, map[string]*testServer{"desk": d})
		for _, version := range versions {
			for view, call := range map[View]string{
				{Mode: MetaMode}:   `{"name":"execute_tool","arguments":{"server":"desk","tool":"%s","arguments":{}},"_meta":{"progressToken":"p"}}`,
				{Mode: DirectMode}: `{"name":"desk__%s","arguments":{},"_meta":{"progressToken":"p"}}`,
				{Server: "desk"}:   `{"name":"%s","arguments":{},"_meta":{"progressToken":"p"}}`,
			} {
				t.Run(fmt.Sprintf("old upstream %v, %s, %v", old, version, view), func(t *testing.T) {
					c := r.client(version, view, func(o *mcpclient.Options) {
						o.Capabilities = mcpclient.Capabilities{ElicitationForm: true, Sampling: true, Roots: true}
					})
					result, err := c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: json.RawMessage(fmt.Sprintf(call, "ask")), Exchange: answering(nil)})
					if err != nil || !strings.Contains(string(result), `\"asked\":\"elicitation/create\"`) {
						t.Fatalf("ask = %s, %v", result, err)
					}
					var notes []string
					if _, err := c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: json.RawMessage(fmt.Sprintf(call, "progress")), Exchange: answering(&notes)}); err != nil {
						t.Fatal(err)
					}
					want := []string{"notifications/progress 0", "notifications/progress 1", "notifications/progress 2"}
					if got := slices.DeleteFunc(slices.Clone(notes), func(s string) bool { return !strings.HasPrefix(s, "notifications/progress") }); !slices.Equal(got, want) {
						t.Errorf("progress = %v", notes)
					}
				})
			}
		}
	}
}

func TestCancellationReachesTheUpstream(t *testing.T) {
	d := newTestServer(anyTool("wait"))
	r := newFixture(t, map[string]*testServer{"desk": d})
	for i, version := range []string{mcp.Version20250618, mcp.Version20260728} {
		c := r.client(version, View{})
		ctx, cancel := context.WithCancel(ctxFor(t))
		go func() {
			eventually(t, "the call is there", func() bool {
				d.mu.Lock()
				defer d.mu.Unlock()
				n := 0
				for _, s := range d.seen {
					if s == "tools/call wait" {
						n++
					}
				}
				return n == i+1
			})
			cancel()
		}()
		if _, err := c.Do(ctx, tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"execute_tool","arguments":{"server":"desk","tool":"wait","arguments":{}}}`)}); err == nil {
			t.Error("an answer")
		}
		eventually(t, "the upstream stops", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			n := 0
			for _, s := range d.seen {
				if s == "cancelled" {
					n++
				}
			}
			return n == i+1
		})
	}
}

func TestChangesReachClients(t *testing.T) {
	d := newTestServer(anyTool("one"))
	r := newFixture(t, map[string]*testServer{"desk": d})
	for _, version := range []string{mcp.Version20250618, mcp.Version20260728} {
		for name, view := range map[string]View{"direct": {Mode: DirectMode}, "transparent": {Server: "desk"}} {
			t.Run(version+" "+name, func(t *testing.T) {
				received := make(chan string, 100)
				c := r.client(version, view, func(o *mcpclient.Options) {
					o.OnNotification = func(method string, params json.RawMessage) { received <- method + rawjson.FieldString(params, "uri") }
				})
				do(t, c, "resources/subscribe", `{"uri":"note:one"}`)
				// In the stateless era the subscription is opened in parallel to
				// the call.
				eventually(t, "the resource is followed", func() bool {
					d.server.Notify("notifications/resources/updated", json.RawMessage(`{"uri":"note:one"}`))
					select {
					case got := <-received:
						return got == "notifications/resources/updatednote:one"
					default:
						return false
					}
				})
				no := false
				r.catalog.Configure(catalog.Settings{Rules: []catalog.ToolRule{{Pattern: []string{"desk:one"}, Enabled: &no}}}, nil)
				want(t, received, "notifications/tools/list_changed")
				if got := do(t, c, "tools/list", `{}`); strings.Contains(string(got), `"one"`) || strings.Contains(string(got), `desk__one"`) {
					t.Errorf("tools/list = %s", got)
				}
				r.catalog.Configure(catalog.Settings{Rules: nil}, nil)
				want(t, received, "notifications/tools/list_changed")
				d.server.Notify("notifications/prompts/list_changed", nil)
				want(t, received, "notifications/prompts/list_changed")
				d.server.Notify("notifications/resources/list_changed", nil)
				want(t, received, "notifications/resources/list_changed")
				do(t, c, "resources/unsubscribe", `{"uri":"note:one"}`)
			})
		}
	}
}

func want(t *testing.T, received <-chan string, method string) {
	t.Helper()
	ctx := ctxFor(t)
	for {
		select {
		case got := <-received:
			if got == method {
				return
			}
		case <-ctx.Done():
			t.Fatalf("never received %s", method)
		}
	}
}

// When two clients subscribe to a resource, each subscription is forwarded,
// because the upstream may have lost the earlier one. It is unsubscribed with
// the last one.
func TestSubscriptionsAreShared(t *testing.T) {
	d := newTestServer()
	d.old = true
	r := newFixture(t, map[string]*testServer{"desk": d})
	a, b := r.client(mcp.Version20250618, View{Server: "desk"}), r.client(mcp.Version20250618, View{Mode: DirectMode})
	count := func(what string) int {
		d.mu.Lock()
		defer d.mu.Unlock()
		n := 0
		for _, s := range d.seen {
			if s == what {
				n++
			}
		}
		return n
	}
	for _, c := range []*mcpclient.Client{a, b, b} {
		do(t, c, "resources/subscribe", `{"uri":"note:one"}`)
	}
	if n := count("resources/subscribe note:one"); n != 3 {
		t.Errorf("the upstream received %d subscriptions, want all 3", n)
	}
	do(t, a, "resources/unsubscribe", `{"uri":"note:one"}`)
	do(t, a, "resources/unsubscribe", `{"uri":"note:one"}`)
	if n := count("resources/unsubscribe note:one"); n != 0 {
		t.Error("the upstream was told to stop while someone follows")
	}
	b.Close() // closing ends the subscription
	eventually(t, "the upstream is told", func() bool { return count("resources/unsubscribe note:one") == 1 })
	if _, err := a.Do(ctxFor(t), tool.Request{Method: "resources/read", Params: json.RawMessage(`{"uri":"gone:x"}`)}); err == nil {
		t.Error("a resource that does not exist was read")
	}
}

func TestTransparentNotifications(t *testing.T) {
	d := newTestServer(anyTool("one"))
	d.old = true
	r := newFixture(t, map[string]*testServer{"desk": d})
	received := make(chan string, 10)
	c := r.client(mcp.Version20250618, View{Server: "desk"}, func(o *mcpclient.Options) {
		o.OnNotification = func(method string, params json.RawMessage) { received <- method + string(params) }
	})
	if err := c.Notify(ctxFor(t), "notifications/vendor", json.RawMessage(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the upstream hears it", func() bool { return d.has(`notifications/vendor {"a":1}`) })
	d.server.Notify("notifications/theirs", json.RawMessage(`{"b":2}`))
	want(t, received, `notifications/theirs{"b":2}`)
	do(t, c, "logging/setLevel", `{"level":"error"}`)
	if !d.has("logging/setLevel") {
		t.Error("the level did not reach the upstream")
	}
}

func TestListsAndResultsAreBounded(t *testing.T) {
	var many []string
	for i := range 2000 {
		many = append(many, fmt.Sprintf(`{"name":"tool_%04d","description":"Does thing number %d %s","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`, i, i, strings.Repeat("very ", 50)))
	}
	for i := range 100 { // fills a page before it has a thousand items
		many = append(many, fmt.Sprintf(`{"name":"wide_%04d","description":"%s","inputSchema":{"type":"object"}}`, i, strings.Repeat("x", 100_000)))
	}
	huge := `{"name":"huge","description":"` + strings.Repeat("words ", 40000) + `","inputSchema":{"type":"object","properties":{"a":{"type":"string","description":"` + strings.Repeat("x", 100000) + `"}}}}`
	r := newFixture(t, map[string]*testServer{"big": newTestServer(many...), "odd": newTestServer(huge)})
	eventually(t, "all tools are known", func() bool { return r.catalog.Snapshot().Len() == 2101 })
	c := r.client(mcp.Version20251125, View{})
	limit := DefaultConfig().MaxAnswerBytes
	var seen []string
	cursor := ""
	for pages := 0; ; pages++ {
		got, _ := callText(t, c, "list_tools", `{"server":"big"`+cursor+`}`)
		if len(got) > limit+1000 || pages > 100 {
			t.Fatalf("page %d has %d bytes", pages, len(got))
		}
		var page struct {
			Tools []struct {
				Tool string `json:"tool"`
			} `json:"tools"`
			Total  int    `json:"total"`
			Cursor string `json:"cursor"`
			Hint   string `json:"hint"`
		}
		if err := json.Unmarshal([]byte(got), &page); err != nil {
			t.Fatal(err)
		}
		for _, tool := range page.Tools {
			seen = append(seen, tool.Tool)
		}
		if page.Cursor == "" {
			break
		}
		if page.Total != 2100 || !strings.Contains(page.Hint, "search_tools") {
			t.Errorf("page = total %d, hint %q", page.Total, page.Hint)
		}
		cursor = `,"cursor":"` + page.Cursor + `"`
	}
	if len(seen) != 2100 || seen[1999] != "tool_1999" {
		t.Errorf("%d tools in all pages", len(seen))
	}
	for _, call := range []string{`{"server":"odd","tool":"huge"}`} {
		if got, failed := callText(t, c, "get_tool_details", call); len(got) > limit+1000 || failed || !strings.Contains(got, "left out") {
			t.Errorf("details have %d bytes: %.200s", len(got), got)
		}
	}
	if got, _ := callText(t, c, "search_tools", `{"query":"thing number","limit":1000}`); len(got) > limit+1000 {
		t.Errorf("search has %d bytes", len(got))
	}
	if _, failed := callText(t, c, "list_tools", `{"server":"big","cursor":"x"}`); !failed {
		t.Error("an odd cursor passed")
	}
	// The direct view returns all of them, in pages.
	direct := r.client(mcp.Version20251125, View{Mode: DirectMode})
	n, next := 0, ""
	for {
		result := do(t, direct, "tools/list", `{`+next+`}`)
		if len(result) > directBytes+1000 {
			t.Errorf("a page of %d bytes", len(result))
		}
		for range rawjson.Elements(rawjson.Field(result, "tools")) {
			n++
		}
		cursor := rawjson.FieldString(result, "nextCursor")
		if cursor == "" {
			break
		}
		next = `"cursor":"` + cursor + `"`
	}
	if n != 2101 {
		t.Errorf("the direct view lists %d tools", n)
	}
}

func TestInstructionsAreBounded(t *testing.T) {
	servers := map[string]*testServer{}
	for i := range 60 {
		servers[fmt.Sprintf("server-%02d", i)] = newTestServer(anyTool("x"))
	}
	r := newFixture(t, servers, func(_ *fixture, configs *[]upstream.Config) {
		for i := range *configs {
			(*configs)[i].Description = "A server that does\nthings of " + strings.Repeat("every kind ", 20)
		}
	})
	text := r.overview(&tool.Local, metaInstructions)
	if len(text) > overviewLength+100 || !strings.Contains(text, "more: list_mcp_servers") || strings.Count(text, "\n") < 5 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	limited := tool.Caller{ID: "key:x", Servers: []string{"server-07"}}
	if text := r.overview(&limited, metaInstructions); strings.Count(text, "\n") != 1 || !strings.Contains(text, "server-07") {
		t.Errorf("a limited caller reads %s", text)
	}
	if text := r.overview(&tool.Caller{ID: "key:y", Servers: []string{"none"}}, metaInstructions); !strings.Contains(text, "No server is configured") {
		t.Errorf("a caller without servers reads %s", text)
	}
}

// What a caller may not see does not exist for it in any view.
func TestHiddenToolsDoNotExistForCaller(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"open": newTestServer(anyTool("fine"), anyTool("hidden")), "closed": newTestServer(anyTool("fine"))})
	caller := tool.Caller{ID: "key:k", Servers: []string{"open"}, Tools: []string{"open:fine"}}
	ctx := tool.WithCaller(context.Background(), caller)
	if _, err := r.pick(ctx, View{Server: "closed"}); tool.KindOf(err) != tool.ServerNotFound {
		t.Errorf("the view of a hidden server: %v", err)
	}
	req := func(method, params string) *mcpserver.Request {
		return &mcpserver.Request{Method: method, Params: json.RawMessage(params), Protocol: mcp.Version20251125, Caller: caller}
	}
	for name, h := range map[string]mcpserver.Handler{"direct": r.view, "transparent": &transparentView{face: r.Face, name: "open"}} {
		got, err := h.Serve(ctx, req("tools/list", `{}`))
		if err != nil || strings.Contains(string(got), "hidden") || strings.Contains(string(got), "closed") || !strings.Contains(string(got), "fine") {
			t.Errorf("%s: tools/list = %s, %v", name, got, err)
		}
	}
	meta := &metaView{face: r.Face}
	for _, call := range []string{
		`{"name":"list_mcp_servers"}`, `{"name":"search_tools","arguments":{"query":"hidden closed"}}`,
		`{"name":"list_tools","arguments":{"server":"open","includeDisabled":true}}`,
	} {
		if got, err := meta.Serve(ctx, req("tools/call", call)); err != nil || strings.Contains(string(got), `\"hidden`) || strings.Contains(string(got), `\"closed`) {
			t.Errorf("%s = %s, %v", call, got, err)
		}
	}
	for _, call := range []string{`{"name":"list_tools","arguments":{"server":"closed"}}`, `{"name":"get_tool_details","arguments":{"server":"open","tool":"hidden"}}`, `{"name":"execute_tool","arguments":{"server":"closed","tool":"fine","arguments":{}}}`} {
		if got, err := meta.Serve(ctx, req("tools/call", call)); err != nil || !strings.Contains(string(got), "NOT_FOUND") {
			t.Errorf("%s = %s, %v", call, got, err)
		}
	}
	if _, err := r.view.Serve(ctx, req("tools/call", `{"name":"open__hidden"}`)); err == nil {
		t.Error("a hidden tool was called directly")
	}
}

func TestViewsByHTTPPath(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"desk": newTestServer(anyTool("one")), "down": nil})
	post := func(path, body string) (int, string) {
		req, _ := http.NewRequest(http.MethodPost, r.url+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`
	for path, tt := range map[string]struct {
		status int
		part   string
	}{
		"/mcp":                  {200, "search_tools"},
		"/mcp?mode=meta":        {200, "search_tools"},
		"/mcp?mode=direct":      {200, "server__name"},
		"/mcp?mode=odd":         {400, "invalid mode"},
		"/mcp/desk":             {200, `"name":"desk"`},
		"/mcp/desk?mode=direct": {400, "no mode"},
		"/mcp/dsk":              {404, "did you mean desk"},
		"/mcp/down":             {200, "out of order"},
	} {
		status, body := post(path, initialize)
		if status != tt.status || !strings.Contains(body, tt.part) && path != "/mcp/down" || path == "/mcp/down" && !strings.Contains(body, "is disconnected") {
			t.Errorf("%s = %d %s", path, status, body)
		}
	}
	mux := http.NewServeMux()
	r.Routes(mux)
	if _, pattern := mux.Handler(&http.Request{Method: "POST", URL: mustURL("/mcp/desk")}); pattern != "/mcp/{server}" {
		t.Errorf("pattern = %q", pattern)
	}
	cfg := DefaultConfig()
	cfg.Mode = DirectMode
	r.SetConfig(cfg)
	if _, body := post("/mcp", initialize); !strings.Contains(body, "server__name") {
		t.Errorf("the configured mode: %s", body)
	}
	cfg.Enabled = false
	r.SetConfig(cfg)
	if status, body := post("/mcp", initialize); status != 404 || !strings.Contains(body, "is disabled") {
		t.Errorf("switched off: %d %s", status, body)
	}
}

// Removing a server closes its views.
func TestRemovedServerEndsItsViews(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"desk": newTestServer(anyTool("one")), "other": newTestServer(anyTool("two"))})
	c := r.client(mcp.Version20250618, View{Server: "desk"})
	received := make(chan string, 10)
	r.client(mcp.Version20250618, View{Mode: DirectMode}, func(o *mcpclient.Options) {
		o.OnNotification = func(method string, _ json.RawMessage) { received <- method }
	})
	r.sup.Apply([]upstream.Config{inProcess("other")})
	<-c.Done()
	want(t, received, "notifications/tools/list_changed")
	r.Close()
	ctx := tool.WithCaller(context.Background(), tool.Local)
	if _, err := r.pick(ctx, View{Server: "other"}); tool.KindOf(err) != tool.Unavailable {
		t.Errorf("a view after Close: %v", err)
	}
	for _, args := range [][2]string{{"odd", ""}, {"", "gone"}} {
		if _, err := r.Open(ctx, args[0], args[1]); err == nil {
			t.Errorf("opened %q", args)
		}
	}
	if serve, err := r.Open(ctx, "direct", ""); err != nil || serve == nil {
		t.Errorf("Open = %v", err)
	}
	if err := r.ServeStream(ctx, View{Server: "gone"}, nil, nil); tool.KindOf(err) != tool.ServerNotFound {
		t.Errorf("a view of a server that is gone: %v", err)
	}
}

func TestParameterHeadersMustMatchArguments(t *testing.T) {
	const marked = `{"name":"marked","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`
	r := newFixture(t, map[string]*testServer{"desk": newTestServer(marked)})
	eventually(t, "the tool is known", func() bool { return r.catalog.Snapshot().Len() == 1 })
	for name, h := range map[string]mcpserver.Handler{"desk__marked": r.view, "marked": &transparentView{face: r.Face, name: "desk"}} {
		for region, ok := range map[string]bool{"eu": true, "us": false} {
			_, err := h.Serve(ctxFor(t), &mcpserver.Request{
				Method: "tools/call", Protocol: mcp.Version20260728, Caller: tool.Local, Header: http.Header{"Mcp-Param-Region": {region}},
				Params: json.RawMessage(`{"name":"` + name + `","arguments":{"region":"eu"}}`),
			})
			if (err == nil) != ok {
				t.Errorf("%s with %s: %v", name, region, err)
			}
		}
	}
}
