package discovery

import (
	"encoding/json"
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

func TestNotificationsOfAServerReachOneCaller(t *testing.T) {
	d := newTestServer(anyTool("one"))
	d.old = true
	r := newFixture(t, map[string]*testServer{"desk": d})
	heard := map[string]chan string{}
	clients := map[string]*mcpclient.Client{}
	for _, id := range []string{"a", "b"} {
		heard[id] = make(chan string, 10)
		clients[id] = r.clientAs(tool.Caller{ID: id}, mcp.Version20251125, View{Server: "desk"}, func(o *mcpclient.Options) {
			o.OnNotification = func(method string, params json.RawMessage) { heard[id] <- method + string(params) }
		})
	}
	message := json.RawMessage(`{"level":"error","data":"private"}`)
	do(t, clients["a"], "tools/call", `{"name":"one","arguments":{}}`)
	d.server.Notify("notifications/message", message) // a alone uses the server
	want(t, heard["a"], "notifications/message"+string(message))
	do(t, clients["b"], "tools/call", `{"name":"one","arguments":{}}`)
	d.server.Notify("notifications/message", message) // it could be about either
	d.server.Notify("notifications/resources/list_changed", nil)
	for id, notes := range heard {
		for got := ""; got != "notifications/resources/list_changed"; {
			select {
			case got = <-notes:
			case <-ctxFor(t).Done():
				t.Fatal("the last notification never came")
			}
			if strings.Contains(got, "private") {
				t.Errorf("%s heard %s", id, got)
			}
		}
	}
}

func TestNotificationsOfClientsAreChecked(t *testing.T) {
	d := newTestServer(anyTool("one"))
	d.old = true
	r := newFixture(t, map[string]*testServer{"desk": d})
	limited := r.clientAs(tool.Caller{ID: "limited", Tools: []string{"desk:one"}}, mcp.Version20251125, View{Server: "desk"})
	granted := r.clientAs(tool.Caller{ID: "granted", Tools: []string{"desk:notifications/*"}}, mcp.Version20251125, View{Server: "desk"})
	for _, c := range []*mcpclient.Client{limited, granted} {
		for _, method := range []string{"notifications/cancelled", "notifications/progress", "notifications/vendor"} {
			if err := c.Notify(ctxFor(t), method, json.RawMessage(`{"requestId":1,"by":"`+map[bool]string{true: "limited", false: "granted"}[c == limited]+`"}`)); err != nil {
				t.Fatal(err)
			}
		}
		// Notifications are handled in order: this one came after them.
		do(t, c, "ping", `{}`)
	}
	until(t, "the upstream hears who may speak", func() bool { return d.has(`notifications/vendor {"requestId":1,"by":"granted"}`) })
	for _, never := range []string{`notifications/vendor {"requestId":1,"by":"limited"}`, "notifications/cancelled", "notifications/progress"} {
		if d.has(never) {
			t.Errorf("the upstream heard %s", never)
		}
	}
}
