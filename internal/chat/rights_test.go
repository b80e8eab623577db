package chat

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"junctor/internal/executor"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/tool"
)

// sendAs starts a conversation as the caller and waits for the reply. It
// returns the error of Send or the text of the last message.
func sendAs(t *testing.T, r *fixture, caller tool.Caller, text string) (string, error) {
	t.Helper()
	s, err := r.host.Open(t.Context(), caller, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), caller, text, ""); err != nil {
		return "", err
	}
	if err := s.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	messages := s.History().Messages
	return llm.Message{Parts: messages[len(messages)-1].Parts}.Text(), nil
}

// TestChatRequiresRight checks that nothing is sent to a model for a caller
// without the chat right.
func TestChatRequiresRight(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{{Reply: llmtest.Reply{Text: "hello"}}}})
	if _, err := sendAs(t, r, tool.Caller{ID: "key:limited", Tools: []string{"calc:*"}}, "hi"); tool.KindOf(err) != tool.Denied {
		t.Errorf("without the right: %v", err)
	}
	if n := len(r.model.Requests()); n != 0 {
		t.Errorf("the model got %d requests", n)
	}
	if text, err := sendAs(t, r, tool.Caller{ID: "key:chat", Tools: []string{"calc:*"}, Chat: true}, "hi"); err != nil || text != "hello" {
		t.Errorf("with the right: %q, %v", text, err)
	}
}

// TestModelRequestsCountAgainstTheRate checks that no model request is made for
// a caller over its rate limit, and that the caller gets the reason.
func TestModelRequestsCountAgainstTheRate(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{{Reply: llmtest.Reply{Text: "hello"}}}})
	caller := tool.Caller{ID: "key:rated", Chat: true, Rate: tool.Rate{Calls: 1, Per: 1000 * time.Hour}}
	if text, err := sendAs(t, r, caller, "hi"); err != nil || text != "hello" {
		t.Errorf("first: %q, %v", text, err)
	}
	if text, err := sendAs(t, r, caller, "hi"); err != nil || !strings.Contains(text, "Too many calls by this key") {
		t.Errorf("over the rate: %q, %v", text, err)
	}
	if n := len(r.model.Requests()); n != 1 {
		t.Errorf("the model got %d requests", n)
	}
}

// TestSamplingCountsAgainstLimits checks that sampling counts against the
// caller's limits.
func TestSamplingCountsAgainstLimits(t *testing.T) {
	ask := `{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"a poem"}}]}}`
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "use the server"}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "odd:asks", Args: json.RawMessage(ask)}}}},
		{Reply: llmtest.Reply{Text: "a poem"}},
	}})
	caller := tool.Caller{ID: "key:rated", Chat: true, Rate: tool.Rate{Calls: 2, Per: 1000 * time.Hour}} // for the reply and its call
	s, err := r.host.Open(t.Context(), caller, "")
	if err != nil {
		t.Fatal(err)
	}
	s.meta.Sampling = []string{"odd"} // allowed by the user
	if err := s.Send(t.Context(), caller, "use the server", ""); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	history, err := json.Marshal(s.History().Messages)
	if err != nil || !strings.Contains(string(history), "no answer: ") || !strings.Contains(string(history), "too many calls by this key") {
		t.Errorf("history = %s, %v", history, err)
	}
	if n := len(r.model.Requests()); n != 1 {
		t.Errorf("the model got %d requests, want 1", n)
	}
}

// TestTokensPerDay checks that the tokens of replies count against the daily
// budget.
func TestTokensPerDay(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{{Reply: llmtest.Reply{Text: "hello"}}}})
	r.host.Executor = executor.New(executor.Options{Catalog: r.catalog, Upstreams: r.ups, Calls: r.store, Tokens: r.store, Log: r.host.Log, Config: executor.DefaultConfig()})
	caller := tool.Caller{ID: "key:budget", Chat: true, TokensPerDay: 1}
	if text, err := sendAs(t, r, caller, "hi"); err != nil || text != "hello" {
		t.Errorf("within the budget: %q, %v", text, err)
	}
	if text, err := sendAs(t, r, caller, "hi"); err != nil || !strings.Contains(text, "token budget is used up") {
		t.Errorf("over the budget: %q, %v", text, err)
	}
	if n := len(r.model.Requests()); n != 1 {
		t.Errorf("the model got %d requests, want 1", n)
	}
}
