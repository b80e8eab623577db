package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/tool"
)

// asking returns a script whose model calls odd:asks with the text after "ask"
// as its arguments, so that the server asks the user that question.
func asking(more ...llmtest.Rule) llmtest.Script {
	return llmtest.Script{Rules: append(more,
		llmtest.Rule{When: llmtest.When{Match: `^visit (.*)$`, Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "odd:visit", Args: json.RawMessage(`"=$1"`)}}}},
		llmtest.Rule{When: llmtest.When{Match: `^with approval (.*)$`, Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "ask:visit", Args: json.RawMessage(`"=$1"`)}}}},
		llmtest.Rule{When: llmtest.When{Match: `^ask (.*)$`, Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "odd:asks", Args: json.RawMessage(`"=$1"`)}}}},
		llmtest.Rule{When: llmtest.When{Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "{{result}}"}},
	)}
}

const nameForm = `ask {"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","minLength":2}},"required":["name"]}}}`

func TestElicitationIsAnswered(t *testing.T) {
	r := newFixture(t, asking())
	for name, tt := range map[string]struct {
		answer map[string]any
		want   string
	}{
		"accepted": {map[string]any{"action": "accept", "content": map[string]any{"name": "Ada"}}, `answer: {"action":"accept","content":{"name":"Ada"}}`},
		"declined": {map[string]any{"action": "decline", "content": map[string]any{"name": "Ada"}}, `answer: {"action":"decline"}`},
		"canceled": {map[string]any{"action": "cancel"}, `answer: {"action":"cancel"}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := r.connect("")
			c.sendText(nameForm)
			q := c.kind(wire.TypeQuestion).Payload
			if q.Kind != wire.QuestionForm || q.Server != "odd" || q.Tool != "odd:asks" || q.Message != "who?" || !strings.Contains(string(q.Schema), "minLength") {
				t.Errorf("question %+v", q)
			}
			tt.answer["questionId"] = q.QuestionID
			c.send("answer", tt.answer)
			if a := c.kind(wire.TypeAnswered).Payload; a.QuestionID != q.QuestionID || a.CallID != q.CallID || a.Action != tt.answer["action"] {
				t.Errorf("answered %+v", a)
			}
			if text, stop := c.reply(); text != tt.want || stop != stopEnd {
				t.Errorf("%q, %s; want %q", text, stop, tt.want)
			}
			// The answer goes only to the server and appears in no other
			// message.
			for _, m := range c.all {
				if m.Type == wire.TypeAnswered && strings.Contains(string(m.Raw), "Ada") {
					t.Errorf("the answer is in %s", m.Raw)
				}
			}
		})
	}
}

func TestInvalidAnswerLeavesQuestionOpen(t *testing.T) {
	r := newFixture(t, asking())
	c := r.connect("")
	c.sendText(nameForm)
	id := c.kind(wire.TypeQuestion).Payload.QuestionID
	for _, content := range []map[string]any{{}, {"name": "A"}, {"name": 7}} {
		c.send("answer", map[string]any{"questionId": id, "action": "accept", "content": content})
		m := c.kind(wire.TypeError)
		if m.Payload.Code != "INVALID_ARGUMENTS" || m.Payload.QuestionID != id || !strings.Contains(m.Payload.Message, "name") {
			t.Errorf("%v: %s", content, m.Raw)
		}
	}
	// A reloaded page receives the question again; either connection may answer
	// it.
	again := r.connect("sessionId=" + c.id)
	if got := again.kind(wire.TypeQuestion).Payload.QuestionID; got != id {
		t.Errorf("question %q, want %q", got, id)
	}
	again.send("answer", map[string]any{"questionId": id, "action": "accept", "content": map[string]any{"name": "Ada"}})
	for _, watcher := range []*client{c, again} {
		watcher.kind(wire.TypeAnswered)
		if text, _ := watcher.reply(); !strings.Contains(text, "Ada") {
			t.Errorf("%q", text)
		}
	}
	c.send("answer", map[string]any{"questionId": id, "action": "cancel"})
	if m := c.kind(wire.TypeError); m.Payload.Code != wire.CodeNoQuestion || m.Payload.QuestionID != id {
		t.Errorf("answered twice: %s", m.Raw)
	}
}

func TestUnansweredQuestionsEnd(t *testing.T) {
	t.Run("time runs out", func(t *testing.T) {
		r := newFixture(t, asking(), withApprovalTimeout(50*time.Millisecond))
		c := r.connect("")
		c.sendText(nameForm)
		if a := c.kind(wire.TypeAnswered).Payload.Action; a != string(wire.Expired) {
			t.Errorf("action %s", a)
		}
		if text, _ := c.reply(); text != `answer: {"action":"cancel"}` {
			t.Errorf("%q", text)
		}
	})
	t.Run("the server takes it back", func(t *testing.T) {
		r := newFixture(t, asking())
		c := r.connect("")
		c.sendText(strings.Replace(nameForm, `{"method"`, `{"takeBack":true,"method"`, 1))
		c.kind(wire.TypeQuestion)
		r.ups.release <- struct{}{}
		if a := c.kind(wire.TypeAnswered).Payload.Action; a != string(wire.Withdrawn) {
			t.Errorf("action %s", a)
		}
		if _, stop := c.reply(); stop != stopEnd {
			t.Errorf("stop %s", stop)
		}
	})
	t.Run("the person stops the reply", func(t *testing.T) {
		r := newFixture(t, asking())
		c := r.connect("")
		c.sendText(nameForm)
		c.kind(wire.TypeQuestion)
		c.send("abort", nil)
		if a := c.kind(wire.TypeAnswered).Payload.Action; a != string(wire.Withdrawn) {
			t.Errorf("action %s", a)
		}
		if _, stop := c.reply(); stop != stopAborted {
			t.Errorf("stop %s", stop)
		}
	})
	t.Run("the person leaves", func(t *testing.T) {
		r := newFixture(t, asking(), withConfig(func(c *Config) { c.DisconnectGraceMs = 50 }))
		c := r.connect("")
		c.sendText(nameForm)
		c.kind(wire.TypeQuestion)
		c.conn.CloseNow()
		if h := r.awaitIdle(c.id).History().Messages; !strings.Contains(string(h[len(h)-1].Parts[0].Result.Content), "cancelled") {
			t.Errorf("history %+v", h)
		}
	})
}

func TestInvalidQuestionsAreRefused(t *testing.T) {
	r := newFixture(t, asking(), withConfig(func(c *Config) { c.MessagesPerMinute = 10_000 }))
	c := r.connect("")
	form := func(params string) string { return `{"method":"elicitation/create","params":` + params + `}` }
	for name, tt := range map[string]struct{ args, want string }{
		"not a form":         {form(`{"requestedSchema":[]}`), "type object"},
		"not a schema":       {form(`{"requestedSchema":{"type":"object","properties":{"a":{"type":"string","minLength":"no such"}}}}`), "not a supported schema"},
		"a form in a form":   {form(`{"requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}`), "\"a\""},
		"a form of itself":   {form(`{"requestedSchema":{"type":"object","properties":{"a":{"$ref":"#"}}}}`), "\"a\""},
		"a list of forms":    {form(`{"requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}}}}`), "\"a\""},
		"endless":            {form(`{"requestedSchema":{"type":"object","properties":{` + strings.Repeat(`"a":{"type":"string"},`, maxFields) + `"z":{"type":"string"}}}}`), "fields"},
		"schema from afar":   {form(`{"requestedSchema":{"type":"object","$ref":"https://example.com/s"}}`), "not a supported schema"},
		"huge":               {form(`{"message":"` + strings.Repeat("x", maxQuestion) + `"}`), "bytes"},
		"unreadable":         {form(`[]`), "cannot be read"},
		"odd mode":           {form(`{"mode":"mind-reading"}`), "mind-reading"},
		"script for address": {form(`{"mode":"url","url":"javascript:alert(1)"}`), "http"},
		"file for address":   {form(`{"mode":"url","url":"file:///etc/passwd"}`), "http"},
		"masked address":     {form(`{"mode":"url","url":"https://bank.example@evil.example/"}`), "http"},
		"odd method":         {`{"method":"roots/list"}`, "roots/list"},
		"no prompt":          {`{"method":"sampling/createMessage","params":{"messages":[]}}`, "messages is empty"},
		"odd prompt":         {`{"method":"sampling/createMessage","params":[]}`, "cannot be read"},
		"odd role":           {`{"method":"sampling/createMessage","params":{"messages":[{"role":"system","content":{"type":"text","text":"x"}}]}}`, "user"},
		"odd content":        {`{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"audio","data":"x"}}]}}`, "audio"},
		"broken content":     {`{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":[7]}]}}`, "cannot be read"},
		"broken picture":     {`{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"image","data":"%"}}]}}`, "base64"},
	} {
		c.sendText("ask " + tt.args)
		text, stop := c.reply()
		if !strings.HasPrefix(text, "no answer: ") || !strings.Contains(text, tt.want) || stop != stopEnd {
			t.Errorf("%s: %q, %s; want %q", name, text, stop, tt.want)
		}
	}
	for _, m := range c.all {
		if m.Type == wire.TypeQuestion {
			t.Errorf("the person was asked: %s", m.Raw)
		}
	}
}

func TestURLElicitation(t *testing.T) {
	r := newFixture(t, asking())
	c := r.connect("")
	c.sendText(`ask {"method":"elicitation/create","params":{"mode":"url","message":"sign in","elicitationId":"e1","url":"https://example.com/in?x=1"}}`)
	q := c.kind(wire.TypeQuestion).Payload
	if q.Kind != wire.QuestionURL || q.URL != "https://example.com/in?x=1" || q.Retry {
		t.Errorf("question %+v", q)
	}
	c.send("answer", map[string]any{"questionId": q.QuestionID, "action": "accept"})
	if text, _ := c.reply(); text != `answer: {"action":"accept"}` {
		t.Errorf("%q", text)
	}
}

func TestCallIsRetriedAfterURLWasOpened(t *testing.T) {
	for action, tt := range map[string]struct {
		want  string
		calls int
	}{"accept": {"visited", 2}, "decline": {"sign in first", 1}} {
		r := newFixture(t, asking())
		c := r.connect("")
		c.sendText(`visit {"elicitations":[{"url":"https://example.com/in","message":"sign in","elicitationId":"e1"}]}`)
		q := c.kind(wire.TypeQuestion).Payload
		if q.Kind != wire.QuestionURL || !q.Retry {
			t.Errorf("question %+v", q)
		}
		c.send("answer", map[string]any{"questionId": q.QuestionID, "action": action})
		if text, _ := c.reply(); !strings.Contains(text, tt.want) || r.ups.count("odd:visit") != tt.calls {
			t.Errorf("%s: %q after %d calls", action, text, r.ups.count("odd:visit"))
		}
	}
	r := newFixture(t, asking())
	c := r.connect("")
	c.sendText(`visit {"elicitations":[{"url":"javascript:alert(1)","message":"sign in","elicitationId":"e1"}]}`)
	if text, _ := c.reply(); !strings.Contains(text, "sign in first") {
		t.Errorf("%q", text)
	}
}

func TestRetriedCallIsApprovedOnce(t *testing.T) {
	r := newFixture(t, asking())
	c := r.connect("")
	c.sendText(`with approval {"elicitations":[{"url":"https://example.com/in","message":"sign in","elicitationId":"e1"}]}`)
	c.send("approve", map[string]any{"callId": c.kind(wire.TypeApproval).Payload.CallID})
	c.send("answer", map[string]any{"questionId": c.kind(wire.TypeQuestion).Payload.QuestionID, "action": "accept"})
	if text, _ := c.reply(); text != "visited" {
		t.Errorf("%q", text)
	}
	asked := 0
	for _, m := range c.all {
		if m.Type == wire.TypeApproval {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("approval was asked for %d times", asked)
	}
}

// signInFirst is an executor that requires the caller to sign in before the
// first call.
type signInFirst struct {
	Executor
	signedIn atomic.Bool
}

func (x *signInFirst) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if !x.signedIn.Swap(true) {
		return tool.Result{}, &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "sign in first", Details: map[string]any{"server": call.Server, "caller": call.Caller.ID, "url": "https://example.com/in"}}
	}
	return x.Executor.Call(ctx, call)
}

// TestSignInDoesNotApproveCall checks that a caller who signs in during a call
// is still asked to approve the call.
func TestSignInDoesNotApproveCall(t *testing.T) {
	for kind, want := range map[string]string{"approve": "visited", "deny": "not approved"} {
		r := newFixture(t, asking())
		r.host.Executor = &signInFirst{Executor: r.host.Executor}
		r.ups.calls["ask:visit"] = 1 // the server itself requires no URL
		c := r.connect("as=bob")
		c.sendText(`with approval {}`)
		c.send("answer", map[string]any{"questionId": c.kind(wire.TypeQuestion).Payload.QuestionID, "action": "accept"})
		m := c.readUntil(func(m message) bool { return m.Type == wire.TypeApproval || finished(m) })
		if m.Type != wire.TypeApproval {
			t.Fatalf("the call was made without approval: %v", c.results())
		}
		if n := r.ups.count("ask:visit"); n != 1 {
			t.Errorf("%s: %d calls before the answer", kind, n-1)
		}
		c.send(kind, map[string]any{"callId": m.Payload.CallID})
		if text, _ := c.reply(); !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", kind, text, want)
		}
	}
}

func TestSampling(t *testing.T) {
	poem := llmtest.Rule{When: llmtest.When{System: "be brief"}, Reply: llmtest.Reply{Text: "Roses are red."}}
	const ask = `ask {"method":"sampling/createMessage","params":{"systemPrompt":"be brief","maxTokens":50,"modelPreferences":{"hints":[{"name":""},{"name":"claude"}]},"messages":[{"role":"user","content":{"type":"text","text":"a poem"}}]}}`
	both := withModels(llm.Config{Name: "m", Provider: llm.OpenAI, Model: "gpt-test"}, llm.Config{Name: "n", Provider: llm.Anthropic, Model: "claude-test"})
	r := newFixture(t, asking(poem), both)
	c := r.connect("")
	answer := func(action, scope string) string {
		t.Helper()
		c.sendText(ask)
		q := c.kind(wire.TypeQuestion).Payload
		want := []wire.PromptLine{{Role: "system", Text: "be brief"}, {Role: "user", Text: "a poem"}}
		if q.Kind != wire.QuestionModel || q.Model != "n" || q.Server != "odd" || fmt.Sprint(q.Prompt) != fmt.Sprint(want) {
			t.Errorf("question %+v", q)
		}
		c.send("answer", map[string]any{"questionId": q.QuestionID, "action": action, "scope": scope})
		if a := c.kind(wire.TypeAnswered).Payload; a.Action != action {
			t.Errorf("answered %+v", a)
		}
		if action == "accept" {
			if a := c.kind(wire.TypeAnswered).Payload; a.QuestionID != q.QuestionID || a.Text != "Roses are red." {
				t.Errorf("the person did not see what the model said: %+v", a)
			}
		}
		text, _ := c.reply()
		return text
	}
	if got := answer("decline", "once"); !strings.Contains(got, "did not allow") {
		t.Errorf("declined: %q", got)
	}
	const want = `answer: {"content":{"text":"Roses are red.","type":"text"},"model":"claude-test","role":"assistant","stopReason":"endTurn"}`
	if got := answer("accept", "once"); got != want {
		t.Errorf("accepted: %q", got)
	}
	if got := answer("accept", "session"); got != want {
		t.Errorf("accepted for the session: %q", got)
	}
	c.sendText(ask) // notified instead of asked
	if a := c.kind(wire.TypeAnswered).Payload; a.Text != "Roses are red." {
		t.Errorf("told %+v", a)
	}
	if text, _ := c.reply(); text != want {
		t.Errorf("%q", text)
	}
	seen := &llmtest.Request{}
	for _, req := range r.model.Requests() {
		if strings.Contains(req.System, "be brief") {
			seen = req
		}
	}
	if len(seen.Messages) != 1 || len(seen.Tools) != 0 {
		t.Errorf("the server's model saw %d messages and %d tools", len(seen.Messages), len(seen.Tools))
	}
}

func TestSamplingIsBounded(t *testing.T) {
	in := sampling{}
	if err := json.Unmarshal([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"`+strings.Repeat("é", maxShownLine)+`"},{"type":"image","mimeType":"image/png","data":"AAAA"}]}]}`), &in); err != nil {
		t.Fatal(err)
	}
	req, prompt, err := in.request()
	if err != nil || len(req.Messages[0].Parts) != 2 || req.Messages[0].Parts[1].Image == nil {
		t.Fatalf("%v %v", req, err)
	}
	if n := len(prompt[0].Text); n > maxShownLine+100 || !strings.Contains(prompt[0].Text, "more bytes") {
		t.Errorf("%d bytes are shown", n)
	}
}

func TestQuestionIsAnsweredOnAnotherNode(t *testing.T) {
	a := newFixture(t, asking(), withSharedStore)
	b := &fixture{t: t, model: a.model, store: a.store, logs: a.logs}
	b.start(withSharedStore)
	first := a.connect("")
	first.sendText(nameForm)
	id := first.kind(wire.TypeQuestion).Payload.QuestionID
	other := b.connect("sessionId=" + first.id)
	other.kind(wire.TypeQuestion)
	other.send("answer", map[string]any{"questionId": id, "action": "accept", "content": map[string]any{"name": "A"}})
	if m := other.kind(wire.TypeError); m.Payload.Code != "INVALID_ARGUMENTS" || m.Payload.QuestionID != id {
		t.Errorf("an answer that does not fit: %s", m.Raw)
	}
	other.send("answer", map[string]any{"questionId": id, "action": "accept", "content": map[string]any{"name": "Ada"}})
	for _, c := range []*client{first, other} {
		if text, stop := c.reply(); !strings.Contains(text, "Ada") || stop != stopEnd {
			t.Errorf("%q, %s", text, stop)
		}
	}
}
