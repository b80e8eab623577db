package discovery

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/listing"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// prompters are servers that have prompts. Those whose names begin with mute do
// not respond.
type prompters struct{ states }

func (p prompters) Describe(_ context.Context, server, _ string, _ tool.Exchange) (mcpclient.ServerInfo, bool) {
	return p.Info(server, "")
}

func (prompters) Info(string, string) (mcpclient.ServerInfo, bool) {
	return mcpclient.ServerInfo{Capabilities: json.RawMessage(`{"prompts":{}}`)}, true
}

func (prompters) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

func (prompters) Forward(ctx context.Context, r tool.Forward) (json.RawMessage, error) {
	if strings.HasPrefix(r.Server, "mute") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return json.RawMessage(`{"prompts":[{"name":"greet"}]}`), nil
}

func (prompters) Permit(*tool.Caller, string, string) error { return nil }

func TestUnresponsiveServerDoesNotDelayLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := prompters{states{[]upstream.Status{
			{Name: "mute1", State: upstream.Connected}, {Name: "mute2", State: upstream.Connected}, {Name: "well", State: upstream.Connected},
		}}}
		f := New(Options{Tools: listing.New(listing.Options{Catalog: catalog.New(nil, nil), Upstreams: p}), Calls: p, Upstreams: p, Config: DefaultConfig(), Log: nolog})
		began := time.Now()
		got, err := f.view.Serve(t.Context(), &mcpserver.Request{Method: "prompts/list", Caller: tool.Local})
		if err != nil || !strings.Contains(string(got), `"well__greet"`) {
			t.Errorf("prompts = %s, %v", got, err)
		}
		if took := time.Since(began); took > listTimeout {
			t.Errorf("the list took %s", took)
		}
	})
}

func TestQuotedArgumentsAreAccepted(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"desk": newTestServer(issueTool, listTool, pictureTool)})
	c := r.client(mcp.Version20250618, View{})
	if text, failed := callText(t, c, "search_tools", `{"query":"issue","limit":"1"}`); failed || strings.Count(text, `"tool"`) != 1 {
		t.Errorf("limit: %s", text)
	}
	if text, failed := callText(t, c, "list_tools", `{"server":"desk","includeDisabled":"true"}`); failed {
		t.Errorf("includeDisabled: %s", text)
	}
	if text, failed := callText(t, c, "execute_tool", `{"server":"desk","tool":"picture","arguments":"{}"}`); failed {
		t.Errorf("arguments: %s", text)
	}
}

// A reason that the message already contains is not repeated, to save tokens.
func TestErrorOmitsRepeatedReason(t *testing.T) {
	got := string(errorResult(&tool.Error{Kind: tool.UpstreamFailed, Msg: "x is down: it ended", Details: map[string]string{"reason": "it ended", "status": "disconnected"}}, tool.Name{Server: "x"}))
	if strings.Contains(got, "reason") || !strings.Contains(got, "disconnected") {
		t.Errorf("failure = %s", got)
	}
}

func TestExecuteWithoutArguments(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"desk": newTestServer(issueTool, pictureTool)})
	c := r.client(mcp.Version20250618, View{})
	for name, arguments := range map[string]string{
		"left out": `{"server":"desk","tool":"picture"}`,
		"null":     `{"server":"desk","tool":"picture","arguments":null}`,
	} {
		if text, failed := callText(t, c, "execute_tool", arguments); failed {
			t.Errorf("%s: %s", name, text)
		}
	}
	text, failed := callText(t, c, "execute_tool", `{"server":"desk","tool":"create_issue"}`)
	if !failed || !strings.Contains(text, "missing propert") || !strings.Contains(text, `"schema":{"type":"object"`) {
		t.Errorf("a tool that needs some: %s", text)
	}
}

func (prompters) FollowTasks(context.Context, string, string, tool.Exchange, []string) ([]string, func(context.Context), error) {
	return nil, nil, nil
}
