package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

func TestNotificationsOfAServerReachOneCaller(t *testing.T) {
	d := newTestServer(anyTool("one"))
	d.old = true
	r := newFixture(t, map[string]*testServer{"desk": d})
	received := map[string]chan string{}
	clients := map[string]*mcpclient.Client{}
	for _, id := range []string{"a", "b"} {
		received[id] = make(chan string, 10)
		clients[id] = r.clientAs(tool.Caller{ID: id}, mcp.Version20251125, View{Server: "desk"}, func(o *mcpclient.Options) {
			o.OnNotification = func(method string, params json.RawMessage) { received[id] <- method + string(params) }
		})
	}
	message := json.RawMessage(`{"level":"error","data":"private"}`)
	do(t, clients["a"], "tools/call", `{"name":"one","arguments":{}}`)
	d.server.Notify("notifications/message", message) // only a uses the server
	want(t, received["a"], "notifications/message"+string(message))
	do(t, clients["b"], "tools/call", `{"name":"one","arguments":{}}`)
	d.server.Notify("notifications/message", message) // could concern either caller
	d.server.Notify("notifications/resources/list_changed", nil)
	for id, notes := range received {
		for got := ""; got != "notifications/resources/list_changed"; {
			select {
			case got = <-notes:
			case <-ctxFor(t).Done():
				t.Fatal("the last notification never came")
			}
			if strings.Contains(got, "private") {
				t.Errorf("%s received %s", id, got)
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
		// Notifications are handled in order, so the response arrives after
		// them.
		do(t, c, "ping", `{}`)
	}
	eventually(t, "the upstream hears who may speak", func() bool { return d.has(`notifications/vendor {"requestId":1,"by":"granted"}`) })
	for _, never := range []string{`notifications/vendor {"requestId":1,"by":"limited"}`, "notifications/cancelled", "notifications/progress"} {
		if d.has(never) {
			t.Errorf("the upstream received %s", never)
		}
	}
}

// A caller gets no updates of a server that it may not see, whatever URI it
// subscribes to.
func TestNotificationsOfAHiddenServer(t *testing.T) {
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		t.Run(version, func(t *testing.T) {
			ours, theirs := newTestServer(anyTool("one")), newTestServer(anyTool("two"))
			r := newFixture(t, map[string]*testServer{"ours": ours, "theirs": theirs})
			update := func(d *testServer, uri, n string) {
				d.server.Notify(mcp.MethodResourceUpdated, json.RawMessage(`{"uri":"`+uri+`","n":"`+n+`"}`))
			}
			// follow returns what the caller receives after the first update.
			follow := func(caller tool.Caller, uri string, d *testServer, updated string) <-chan string {
				received := make(chan string, 1000)
				c := r.clientAs(caller, version, View{Mode: DirectMode}, func(o *mcpclient.Options) {
					o.OnNotification = func(method string, params json.RawMessage) {
						received <- method + " " + rawjson.FieldString(params, "uri") + " " + rawjson.FieldString(params, "n")
					}
				})
				do(t, c, "resources/subscribe", `{"uri":"`+uri+`"}`)
				eventually(t, "the resource is followed", func() bool { // takes effect with a delay in the stateless era
					update(d, updated, "first")
					return len(received) > 0
				})
				return received
			}
			limited := follow(tool.Caller{ID: "limited", Servers: []string{"ours"}}, "note:/", ours, "note:/mine")
			other := follow(tool.Caller{ID: "other"}, "junctor:theirs:note:/one", theirs, "note:/one")
			no := false
			r.catalog.Configure(catalog.Settings{Rules: []catalog.ToolRule{{Pattern: []string{"theirs:two"}, Enabled: &no}}}, nil)
			want(t, other, mcp.MethodToolsChanged+"  ")
			theirs.server.Notify(mcp.MethodResourcesChanged, nil)
			update(theirs, "note:/one", "last") // arrives after the others
			want(t, other, mcp.MethodResourceUpdated+" junctor:theirs:note:/one last")
			update(ours, "note:/mine", "last")
			for got := ""; got != mcp.MethodResourceUpdated+" note:/mine last"; {
				select {
				case got = <-limited:
				case <-ctxFor(t).Done():
					t.Fatal("the last notification never came")
				}
				if !strings.HasPrefix(got, mcp.MethodResourceUpdated+" note:/mine ") {
					t.Errorf("the limited caller received %s", got)
				}
			}
		})
	}
}

// The alias of a resource of a hidden server is unknown, and no other server
// is queried for it, whether there is such a server or not.
func TestAliasOfAHiddenServer(t *testing.T) {
	ours := newTestServer(anyTool("one"))
	r := newFixture(t, map[string]*testServer{"ours": ours, "theirs": newTestServer(anyTool("two"))})
	caller := tool.Caller{ID: "limited", Servers: []string{"ours"}}
	c := r.clientAs(caller, mcp.Version20251125, View{Mode: DirectMode})
	for _, uri := range []string{"junctor:theirs:note:/", "junctor:nobody:note:/", "ui://junctor/theirs/x"} {
		for method, params := range map[string]string{
			"resources/subscribe": `{"uri":"` + uri + `"}`, "resources/read": `{"uri":"` + uri + `"}`,
			"completion/complete": `{"ref":{"type":"ref/resource","uri":"` + uri + `"},"argument":{"name":"a","value":"b"}}`,
		} {
			_, err := c.Do(ctxFor(t), tool.Request{Method: method, Params: json.RawMessage(params)})
			if e, ok := errors.AsType[*mcp.Error](err); !ok || e.Code != mcp.CodeResourceNotFound || !strings.Contains(e.Message, "no server has") {
				t.Errorf("%s %s = %v, want not found", method, uri, err)
			}
			if ours.has(method) {
				t.Errorf("%s %s was sent to another server", method, uri)
			}
		}
	}
	c = r.clientAs(caller, mcp.Version20260728, View{Mode: DirectMode})
	_, err := c.Do(ctxFor(t), tool.Request{Method: "subscriptions/listen", Params: json.RawMessage(`{"notifications":{"resourceSubscriptions":["junctor:theirs:note:/"]}}`)})
	if _, ok := errors.AsType[*mcp.Error](err); !ok {
		t.Errorf("subscriptions/listen = %v, want not found", err)
	}
	do(t, r.clientAs(tool.Caller{ID: "other"}, mcp.Version20251125, View{Mode: DirectMode}), "resources/read", `{"uri":"junctor:theirs:note:one"}`)
}

// If two servers have a resource with the same URI, it refers to the first
// server's, or to the second's for a caller that may not see the first.
func TestUpdatesOfSharedURI(t *testing.T) {
	servers := map[string]*testServer{"first": newTestServer(anyTool("one")), "second": newTestServer(anyTool("one"))}
	for _, d := range servers {
		d.old = true
	}
	r := newFixture(t, servers)
	received := map[string]chan string{}
	for _, caller := range []tool.Caller{{ID: "all"}, {ID: "limited", Servers: []string{"second"}}} {
		notes := make(chan string, 1000)
		received[caller.ID] = notes
		c := r.clientAs(caller, mcp.Version20251125, View{Mode: DirectMode}, func(o *mcpclient.Options) {
			o.OnNotification = func(_ string, params json.RawMessage) { notes <- rawjson.FieldString(params, "n") }
		})
		do(t, c, "resources/subscribe", `{"uri":"note:one"}`)
	}
	for i := range 20 { // enough for each list to be checked first
		for name, d := range servers {
			d.server.Notify(mcp.MethodResourceUpdated, json.RawMessage(fmt.Sprintf(`{"uri":"note:one","n":"%s %d"}`, name, i)))
		}
	}
	for caller, owner := range map[string]string{"all": "first", "limited": "second"} {
		for i := range 20 {
			select {
			case got := <-received[caller]:
				if want := fmt.Sprintf("%s %d", owner, i); got != want {
					t.Fatalf("%s received the update %q, want %q", caller, got, want)
				}
			case <-ctxFor(t).Done():
				t.Fatalf("%s did not hear of update %d", caller, i)
			}
		}
	}
}
