package chat

import (
	"encoding/json"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/llm/llmtest"
	"junctor/internal/tool"
)

// TestApprovalsAreBoundAndRevoked: an approval for always holds for the caller
// and for the definition that was approved, can be seen, and can be withdrawn.
func TestApprovalsAreBoundAndRevoked(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "delete", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "ask:delete", Args: json.RawMessage(`{"path":"/x"}`)}}}},
		{When: llmtest.When{User: "delete", Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "{{result}}"}},
	}})
	asked := func() { // and approves for always
		t.Helper()
		c := r.connect("")
		c.say("delete")
		m := c.kind(TypeApproval)
		c.send("approve", map[string]any{"callId": m.Payload.CallID, "scope": "always"})
		c.reply()
	}
	asked()
	d, err := tool.ParseDefinition("ask", json.RawMessage(`{"name":"delete","description":"Deletes everything.","inputSchema":{"type":"object"}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.catalog.Put(catalog.Server{Name: "ask"}, []tool.Definition{d})
	asked() // again: it is another tool
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
