package discovery

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// taskDesk is a server of the stateless era. A call of its tool job becomes a
// task, which finish completes.
type taskDesk struct {
	*testServer
	followed chan string // ids of tasks that are followed

	mu   sync.Mutex
	task json.RawMessage
}

func newTaskDesk() *taskDesk {
	d := &taskDesk{
		testServer: newTestServer(anyTool("job")), followed: make(chan string, 10),
		task: json.RawMessage(`{"taskId":"own-1","status":"working","createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z","ttlMs":60000,"pollIntervalMs":50}`),
	}
	d.caps = `{"tools":{},"extensions":{"` + mcp.ExtensionTasks + `":{}}}`
	d.server = mcpserver.New(mcpserver.Options{}, d)
	return d
}

func (d *taskDesk) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.Method {
	case "tools/call":
		return rawjson.SetField(d.task, json.RawMessage(`"task"`), "resultType"), nil
	case "tasks/get":
		return d.task, nil
	}
	return d.testServer.Serve(ctx, r)
}

func (d *taskDesk) FollowTasks(_ context.Context, _ *mcpserver.Request, ids []string) ([]string, mcpserver.FollowFunc, error) {
	return ids, func(ctx context.Context, _ func(json.RawMessage)) {
		d.followed <- strings.Join(ids, ",")
		<-ctx.Done()
	}, nil
}

func (d *taskDesk) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.task = rawjson.SetField(rawjson.SetField(d.task, json.RawMessage(`"completed"`), "status"), json.RawMessage(`{"content":[],"n":12345678901234567890}`), "result")
	d.server.Notify(mcp.MethodTasks, d.task)
}

// noted returns an option that makes a client send the notifications of a
// method to a channel.
func noted(method string) (func(*mcpclient.Options), <-chan json.RawMessage) {
	got := make(chan json.RawMessage, 100)
	return func(o *mcpclient.Options) {
		o.Capabilities.Extensions = json.RawMessage(`{"` + mcp.ExtensionTasks + `":{}}`)
		o.OnNotification = func(m string, params json.RawMessage) {
			if m == method {
				got <- params
			}
		}
	}, got
}

// await returns the first notification that reports the status for a task.
func await(t *testing.T, notes <-chan json.RawMessage, id, status string) json.RawMessage {
	t.Helper()
	for {
		select {
		case n := <-notes:
			if rawjson.FieldString(n, "taskId") != id {
				t.Fatalf("notified of the task %s, want %s alone", n, id)
			}
			if rawjson.FieldString(n, "status") == status {
				return n
			}
		case <-ctxFor(t).Done():
			t.Fatalf("no notification of the status %s", status)
		}
	}
}

// A client of the stateless era that listens for its tasks receives each
// state, under the id that it knows: the gateway's in the direct and meta
// views, the server's in the transparent view.
func TestFollowTasks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		view View
		call string
	}{
		"direct":      {View{Mode: DirectMode}, `{"name":"paint__job"}`},
		"meta":        {View{Mode: MetaMode}, `{"name":"execute_tool","arguments":{"server":"paint","tool":"job","arguments":{}}}`},
		"transparent": {View{Server: "paint"}, `{"name":"job"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desk := newTaskDesk()
			f := newFixture(t, map[string]*testServer{"paint": desk.testServer})
			withTasks(t, f)
			option, notes := noted(mcp.MethodTasks)
			c := f.client(mcp.Version20260728, tt.view, option)
			created, err := c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: json.RawMessage(tt.call)})
			id := rawjson.FieldString(created, "taskId")
			if err != nil || id == "" || (id == "own-1") != (name == "transparent") {
				t.Fatalf("the call answered %s, %v", created, err)
			}
			other, strangers := noted(mcp.MethodTasks)
			f.clientAs(tool.Caller{ID: "key:other"}, mcp.Version20260728, tt.view, other).FollowTasks([]string{id})
			defer c.FollowTasks([]string{id, "another"})()
			if name == "transparent" {
				select {
				case got := <-desk.followed:
					if got != "own-1" {
						t.Errorf("the server was asked for the tasks %s", got)
					}
				case <-ctxFor(t).Done():
					t.Fatal("the server was not asked to announce the task")
				}
			} else {
				await(t, notes, id, "working")
			}
			desk.finish()
			done := await(t, notes, id, "completed")
			if !strings.Contains(string(done), `12345678901234567890`) || rawjson.Field(done, "_meta", mcp.MetaSubscriptionID) == nil {
				t.Errorf("the end of the task was announced as %s", done)
			}
			if len(strangers) > 0 {
				t.Errorf("another caller was sent %s", <-strangers)
			}
		})
	}
}

// In the direct view every tool can be called as a task, which is announced to
// clients that declare tasks. Other clients can also call tools whose server
// requires tasks.
func TestTaskSupportInLists(t *testing.T) {
	t.Parallel()
	required := `{"name":"must","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`
	f := newFixture(t, map[string]*testServer{"paint": newTestServer(anyTool("may"), required)})
	withTasks(t, f)
	for _, tt := range []struct{ version, capabilities, may, must string }{
		{mcp.Version20251125, `{"tasks":{"list":{}}}`, "optional", "required"},
		{mcp.Version20251125, `{}`, "", "optional"},
		{mcp.Version20250618, `{}`, "", "required"},
	} {
		_, header, _ := f.post("/mcp?mode=direct", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+tt.version+`","capabilities":`+tt.capabilities+`,"clientInfo":{"name":"t","version":"1"}}}`)
		_, _, list := f.post("/mcp?mode=direct", header.Get("Mcp-Session-Id"), `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		for definition := range rawjson.Elements(rawjson.Field(json.RawMessage(list), "result", "tools")) {
			want := map[string]string{"paint__may": tt.may, "paint__must": tt.must}[rawjson.FieldString(definition, "name")]
			if got := rawjson.FieldString(definition, "execution", "taskSupport"); got != want {
				t.Errorf("%s %s: taskSupport = %q, want %q in %s", tt.version, tt.capabilities, got, want, definition)
			}
		}
	}
}

// A session of the handshake era is notified of each new status of its tasks.
func TestTaskStatusNotifications(t *testing.T) {
	t.Parallel()
	f := newFixture(t, map[string]*testServer{"paint": newTestServer(anyTool("ask"))})
	withTasks(t, f)
	option, notes := noted(mcp.MethodTasksStatus)
	c := f.client(mcp.Version20251125, View{Mode: DirectMode}, option, func(o *mcpclient.Options) { o.Capabilities.ElicitationForm = true })
	id := rawjson.FieldString(do(t, c, "tools/call", `{"name":"paint__ask","arguments":{},"task":{}}`), "task", "taskId")
	await(t, notes, id, "input_required")
	_, err := c.Do(ctxFor(t), tool.Request{Method: "tasks/result", Params: json.RawMessage(`{"taskId":"` + id + `"}`), Exchange: tool.Exchange{
		Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"action":"accept","content":{}}`), nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, notes, id, "completed")
}
