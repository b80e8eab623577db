package discovery

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/sqlite"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// withTasks adds a store for tasks to a fixture.
func withTasks(t *testing.T, f *fixture) {
	t.Helper()
	cfg := store.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "junctor.db")
	s, err := sqlite.Open(t.Context(), cfg, nolog)
	if err != nil {
		t.Fatal(err)
	}
	f.Face.opts.Waiting = waiting.NewService(s, nolog)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Face.opts.Waiting.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A client of the handshake era can make a call of any tool a task, although
// the server does not support tasks. It can list it, cancel it and fetch its
// result later.
func TestTasksOfTheGateway(t *testing.T) {
	t.Parallel()
	desk := newTestServer(anyTool("wait"), anyTool("ask"), pictureTool)
	f := newFixture(t, map[string]*testServer{"paint": desk})
	withTasks(t, f)
	elicits := func(o *mcpclient.Options) { o.Capabilities.ElicitationForm = true }
	for _, tt := range []struct {
		view View
		call func(name string) string
	}{
		{View{Mode: DirectMode}, func(name string) string { return `"name":"paint__` + name + `","arguments":{}` }},
		{View{Mode: MetaMode}, func(name string) string {
			return `"name":"execute_tool","arguments":{"server":"paint","tool":"` + name + `","arguments":{}}`
		}},
	} {
		t.Run(string(tt.view.Mode), func(t *testing.T) {
			c := f.client(mcp.Version20251125, tt.view, elicits)
			if rawjson.Field(c.Info().Capabilities, "tasks", "requests", "tools", "call") == nil {
				t.Errorf("capabilities = %s, want tasks", c.Info().Capabilities)
			}
			start := func(name string) string {
				t.Helper()
				result := do(t, c, "tools/call", `{`+tt.call(name)+`,"task":{"ttl":60000}}`)
				id := rawjson.FieldString(result, "task", "taskId")
				if id == "" || rawjson.Field(result, "task", "ttl") == nil {
					t.Fatalf("the call answered %s, want a task", result)
				}
				return `{"taskId":"` + id + `"}`
			}

			desk.forget()
			task := start("wait")
			if got := rawjson.FieldString(do(t, c, "tasks/get", task), "status"); got != "working" {
				t.Errorf("status = %q, want working", got)
			}
			if list := string(do(t, c, "tasks/list", `{}`)); !strings.Contains(list, rawjson.FieldString(json.RawMessage(task), "taskId")) {
				t.Errorf("tasks/list = %s, want the task in it", list)
			}
			narrowed := tool.Local
			narrowed.Profiles = tool.Profiles{tool.UnknownProfile("other")}
			if list := string(do(t, f.clientAs(narrowed, mcp.Version20251125, tt.view), "tasks/list", `{}`)); !strings.Contains(list, `"tasks":[]`) {
				t.Errorf("tasks/list with another profile = %s, want none", list)
			}
			other := f.clientAs(tool.Caller{ID: "key:other"}, mcp.Version20251125, tt.view)
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
				if _, err := other.Do(ctxFor(t), tool.Request{Method: method, Params: json.RawMessage(task)}); err == nil {
					t.Errorf("%s of another caller's task succeeded", method)
				}
			}
			eventually(t, "the server has the call", func() bool { return desk.has("tools/call wait") })
			if got := rawjson.FieldString(do(t, c, "tasks/cancel", task), "status"); got != "cancelled" {
				t.Errorf("status after tasks/cancel = %q", got)
			}
			eventually(t, "the server hears of the cancellation", func() bool { return desk.has("cancelled") })

			task = start("picture")
			result := do(t, c, "tasks/result", task)
			if !strings.Contains(string(result), `"hologram","n":12345678901234567890`) || rawjson.Field(result, "_meta", "io.modelcontextprotocol/related-task") == nil {
				t.Errorf("tasks/result = %s", result)
			}

			task = start("ask")
			answered, err := c.Do(ctxFor(t), tool.Request{Method: "tasks/result", Params: json.RawMessage(task), Exchange: tool.Exchange{
				Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
					return json.RawMessage(`{"action":"accept","content":{}}`), nil
				},
			}})
			if err != nil || !strings.Contains(string(answered), "accept") {
				t.Errorf("tasks/result of a task that asks = %s, %v", answered, err)
			}
		})
	}
}
