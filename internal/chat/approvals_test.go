package chat

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/chat/wire"
	"junctor/internal/llm/llmtest"
	"junctor/internal/tool"
)

// TestApprovalsAreBoundAndRevoked checks that a permanent approval applies only
// to its caller and to the approved definition, and can be listed and revoked.
func TestApprovalsAreBoundAndRevoked(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "delete", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "ask:delete", Args: json.RawMessage(`{"path":"/x"}`)}}}},
		{When: llmtest.When{User: "delete", Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "{{result}}"}},
	}})
	asked := func() { // and approves permanently
		t.Helper()
		c := r.connect("")
		c.sendText("delete")
		m := c.kind(wire.TypeApproval)
		c.send("approve", map[string]any{"callId": m.Payload.CallID, "scope": "always"})
		c.reply()
	}
	asked()
	d, err := tool.ParseDefinition("ask", json.RawMessage(`{"name":"delete","description":"Deletes everything.","inputSchema":{"type":"object"}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.catalog.Put(catalog.Server{Name: "ask"}, []tool.Definition{d})
	asked() // asked again: the definition differs
	list, err := r.host.Approvals.List(t.Context(), tool.Local.ID)
	if err != nil || len(list) != 2 || list[0].Tool != "ask:delete" || list[0].Current || !list[1].Current || list[1].Fingerprint != d.Fingerprint() {
		t.Errorf("approvals = %+v, %v", list, err)
	}
	if list, err := r.host.Approvals.List(t.Context(), "key:other"); err != nil || len(list) != 0 {
		t.Errorf("another's approvals = %+v, %v", list, err)
	}
	if err := r.host.Approvals.Revoke(t.Context(), "key:other", "ask:delete"); tool.KindOf(err) != tool.MethodNotFound {
		t.Errorf("another revokes: %v", err)
	}
	if err := r.host.Approvals.Revoke(t.Context(), tool.Local.ID, "ask:delete"); err != nil {
		t.Fatal(err)
	}
	asked()
}

// TestApprovalStandsInInboxToo checks that an administrator can answer an
// approval request of the chat. The first answer closes the request on both
// sides.
func TestApprovalStandsInInboxToo(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "delete", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "ask:delete", Args: json.RawMessage(`{"path":"/x"}`)}}}},
		{When: llmtest.When{User: "delete", Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "{{result}}"}},
	}})
	page, err := http.Get(r.server.URL + "/api/approvals/events")
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	if _, err := page.Body.Read(make([]byte, 1)); err != nil { // the page counts as open
		t.Fatal(err)
	}
	inbox := func(count int) string { // waits until count calls wait for approval
		t.Helper()
		changed := r.inbox.Calls.Watch(t.Context())
		for {
			list, err := r.inbox.Waiting(t.Context(), tool.Local)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == count && count == 0 {
				return ""
			}
			if len(list) == count {
				return list[0].ID
			}
			select {
			case <-changed:
			case <-t.Context().Done():
				t.Fatal("the inbox did not change")
			}
		}
	}
	for name, tt := range map[string]struct {
		answer string // in the inbox; "" answers in the chat
		want   string
	}{
		"allowed in the inbox": {`{"action":"allow"}`, "done delete"},
		"denied in the inbox":  {`{"action":"deny","reason":"not on Fridays"}`, "not on Fridays"},
		"allowed in the chat":  {"", "done delete"},
	} {
		c := r.connect("as=ann")
		c.sendText("delete")
		m := c.kind(wire.TypeApproval)
		id := inbox(1)
		ann := tool.Caller{ID: "ann"}
		narrow := tool.Caller{ID: "ann", Profiles: tool.Profiles{tool.UnknownProfile("part")}}
		if ids, none := r.host.Waiting(&ann), r.host.Waiting(&narrow); len(ids) != 1 || ids[0] != c.id || len(none) != 0 {
			t.Errorf("%s: the waiting conversations are %v, with a profile %v", name, ids, none)
		}
		if tt.answer == "" {
			c.send("approve", map[string]any{"callId": m.Payload.CallID})
		} else {
			res, err := http.Post(r.server.URL+"/api/approvals/"+id, "application/json", strings.NewReader(tt.answer))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != 200 {
				t.Errorf("%s: %d", name, res.StatusCode)
			}
			if s := c.readUntil(func(m message) bool { return m.Type == wire.TypeStatus && m.Payload.Tool != "" }); s.Payload.State != "processing" || s.Payload.Data.CallID != m.Payload.CallID {
				t.Errorf("%s: the chat is told %s", name, s.Raw)
			}
		}
		if text, _ := c.reply(); !strings.Contains(text, tt.want) {
			t.Errorf("%s: %q, want %q", name, text, tt.want)
		}
		inbox(0)
	}
}

func TestWaitingSessions(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "delete", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "ask:delete", Args: json.RawMessage(`{"path":"/x"}`)}}}},
		{When: llmtest.When{User: "delete", Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "{{result}}"}},
	}})
	changed := r.host.WatchWaiting(t.Context())
	c := r.connect("")
	c.sendText("delete")
	m := c.kind(wire.TypeApproval)
	<-changed
	caller, other := tool.Local, tool.Caller{ID: "key:other"}
	if ids := r.host.Waiting(&caller); !slices.Equal(ids, []string{c.id}) {
		t.Errorf("waiting: %q, want %q", ids, c.id)
	}
	if ids := r.host.Waiting(&other); len(ids) != 0 {
		t.Errorf("another caller's: %q", ids)
	}
	c.send("approve", map[string]any{"callId": m.Payload.CallID})
	c.reply()
	<-changed
	if ids := r.host.Waiting(&caller); len(ids) != 0 {
		t.Errorf("waiting after the reply: %q", ids)
	}
}

func TestApproval(t *testing.T) {
	script := llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "delete", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "ask:delete", Args: json.RawMessage(`{"path":"/x"}`)}}}},
		{When: llmtest.When{User: "delete", Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "{{result}}"}},
	}}
	each(t, script, func(t *testing.T, r *fixture) {
		c := r.connect("")
		decide := func(kind string, payload map[string]any) string {
			t.Helper()
			c.sendText("delete")
			m := c.kind(wire.TypeApproval)
			if m.Payload.Tool != "ask:delete" || string(m.Payload.Arguments) != `{"path":"/x"}` {
				t.Fatalf("approval %s", m.Raw)
			}
			payload["callId"] = m.Payload.CallID
			c.send(kind, payload)
			text, _ := c.reply()
			return text
		}
		unasked := func() string {
			t.Helper()
			c.sendText("delete")
			text, _ := c.reply()
			return text
		}
		if got := decide("deny", map[string]any{"reason": "too dangerous"}); !strings.Contains(got, "not approved") || !strings.Contains(got, "too dangerous") {
			t.Errorf("denied: %q", got)
		}
		if r.ups.count("ask:delete") != 0 {
			t.Error("it was called all the same")
		}
		if got := decide("approve", map[string]any{}); got != "done delete" {
			t.Errorf("approved once: %q", got)
		}
		if got := decide("approve", map[string]any{"scope": "session"}); got != "done delete" {
			t.Errorf("approved for the session: %q", got)
		}
		if got := unasked(); got != "done delete" {
			t.Errorf("in the same session: %q", got)
		}
		c.send("approve", map[string]any{"callId": "long gone"})
		if m := c.kind(wire.TypeError); m.Payload.Code != wire.CodeNoApproval || m.Payload.CallID != "long gone" {
			t.Errorf("no such approval: %s", m.Raw)
		}
		c = r.connect("") // asked again in another session, now permanently
		if got := decide("approve", map[string]any{"scope": "always"}); got != "done delete" {
			t.Errorf("approved always: %q", got)
		}
		c = r.connect("")
		if got := unasked(); got != "done delete" {
			t.Errorf("in another session: %q", got)
		}
		// Another caller is still asked, and an abort ends the question.
		c = r.connect("as=someone")
		c.sendText("delete")
		c.kind(wire.TypeApproval)
		c.send("abort", nil)
		if _, stop := c.reply(); stop != stopAborted {
			t.Errorf("stop %s", stop)
		}
	})
}

// TestStopWaiting checks that replies that wait for a person end when the
// gateway stops, with the reason in the history.
func TestStopWaiting(t *testing.T) {
	for want, call := range map[string]llmtest.Call{
		wire.TypeApproval: {Tool: "ask:delete", Args: json.RawMessage(`{}`)},
		wire.TypeQuestion: {Tool: "odd:visit", Args: json.RawMessage(`{"elicitations":[{"url":"https://example.com/","message":"sign in"}]}`)},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{{Reply: llmtest.Reply{Calls: []llmtest.Call{call}}}}})
			c := r.connect("")
			c.sendText("go")
			c.kind(want)
			r.host.StopWaiting()
			if m := c.kind(wire.TypeError); m.Payload.Code != wire.CodeAborted || !strings.Contains(m.Payload.Message, "the gateway is stopping") {
				t.Errorf("%s", m.Raw)
			}
			if _, stop := c.reply(); stop != stopAborted {
				t.Errorf("stop = %q", stop)
			}
			again := r.connect("sessionId=" + c.id)
			if m := again.kind(wire.TypeHistory); !strings.Contains(string(m.Raw), "the gateway was stopped before") {
				t.Errorf("%s", m.Raw)
			}
		})
	}
}

func TestApprovalTimesOut(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: calls("ask:delete")}},
		{When: llmtest.When{Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "{{result}}"}},
	}}, withApprovalTimeout(50*time.Millisecond))
	c := r.connect("")
	c.sendText("go")
	if text, _ := c.reply(); !strings.Contains(text, "no answer came") {
		t.Errorf("%q", text)
	}
}
