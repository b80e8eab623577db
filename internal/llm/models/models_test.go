package models_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/llm/models"
	"junctor/internal/tool"
)

const key = "sk-very-secret-key"

// variant is one API through which a model is reached.
type variant struct {
	name string
	cfg  llm.Config
	api  string // as in llmtest.Request
	path string // to add to the server's URL
	// pictures in tool results reach the model
	pictures bool
	// native turns have content that the provider requires back
	signs bool
}

func variants() []variant {
	return []variant{
		{"gemini 3", llm.Config{Provider: llm.Gemini, Model: "gemini-3-test"}, llmtest.Gemini, "", true, true},
		{"gemini 2.5", llm.Config{Provider: llm.Gemini, Model: "gemini-2.5-test"}, llmtest.Gemini, "", false, false},
		{"openai chat", llm.Config{Provider: llm.OpenAI, Model: "gpt-test"}, llmtest.Chat, "/v1", false, true},
		{"openai responses", llm.Config{Provider: llm.OpenAI, Model: "o9-test", API: llm.ResponsesAPI}, llmtest.Responses, "/v1", true, true},
		{"anthropic", llm.Config{Provider: llm.Anthropic, Model: "claude-test"}, llmtest.Anthropic, "", true, true},
		{"xai", llm.Config{Provider: llm.XAI, Model: "grok-test"}, llmtest.Chat, "/v1", false, true},
		{"ollama", llm.Config{Provider: llm.Ollama, Model: "llama-test"}, llmtest.Chat, "/v1", false, true},
		{"compatible", llm.Config{Provider: llm.OpenAICompatible, Model: "test"}, llmtest.Chat, "/api", false, true},
	}
}

func (v variant) model(t testing.TB, s *llmtest.Server, change ...func(*llm.Config)) llm.Model {
	t.Helper()
	cfg := v.cfg
	cfg.BaseURL, cfg.APIKey, cfg.TimeoutMs, cfg.MaxRetries = s.URL+v.path, key, 30_000, 3
	for _, f := range change {
		f(&cfg)
	}
	cfg = llm.Choose([]llm.Config{cfg}, func(string) string { return "" }, nil)[0]
	m, err := models.New(cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func each(t *testing.T, script llmtest.Script, f func(t *testing.T, v variant, s *llmtest.Server)) {
	t.Helper()
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			f(t, v, llmtest.Start(t, script))
		})
	}
}

func definition(t testing.TB, server, name, schema string) tool.Definition {
	t.Helper()
	d, err := tool.ParseDefinition(server, json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"Does %s.","inputSchema":%s}`, name, name, schema)))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func tools(t testing.TB) *llm.Toolset {
	return llm.ToolsetOf(
		definition(t, "calc", "add", `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a"]}`),
		definition(t, "fs", "read.file/now", `{"type":"object","properties":{"path":{"type":"string"}},"oneOf":[{"required":["path"]}]}`),
	)
}

func ask(t testing.TB, m llm.Model, req llm.Request) llm.Turn {
	t.Helper()
	turn, err := llm.Collect(m.Stream(context.Background(), req), nil)
	if err != nil {
		t.Fatalf("ask: %v", err)
	}
	return turn
}

// reload encodes and decodes a message like the store.
func reload(t testing.TB, m llm.Message) llm.Message {
	t.Helper()
	neutral, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	native, err := json.Marshal(m.Native)
	if err != nil {
		t.Fatal(err)
	}
	var out llm.Message
	if err := json.Unmarshal(neutral, &out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(native, &out.Native); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTextIsStreamed(t *testing.T) {
	each(t, llmtest.Script{}, func(t *testing.T, v variant, s *llmtest.Server) {
		var pieces []string
		turn, err := llm.Collect(v.model(t, s).Stream(context.Background(), llm.Request{
			System: "Be kind.", Guidance: "And brief.", Messages: []llm.Message{llm.Text(llm.User, "grüß dich 😀")},
		}), func(ev llm.Event) { pieces = append(pieces, ev.Text) })
		if err != nil {
			t.Fatal(err)
		}
		if got := turn.Message.Text(); got != "You said: grüß dich 😀" || turn.Message.Role != llm.Assistant {
			t.Errorf("got %q", got)
		}
		if len(pieces) < 3 || strings.Join(pieces, "") != turn.Message.Text() {
			t.Errorf("streamed as %q", pieces)
		}
		if turn.Stop != llm.StopEnd || turn.Usage.Input == 0 || turn.Usage.Output == 0 {
			t.Errorf("stop %q, usage %+v", turn.Stop, turn.Usage)
		}
		if r := s.Last(); r.API != v.api || r.System != "Be kind.\n\nAnd brief." || !r.Stream || r.Model != v.cfg.Model {
			t.Errorf("asked %+v", r)
		}
	})
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

var loopScript = llmtest.Script{Rules: []llmtest.Rule{
	{When: llmtest.When{User: "add", Results: llmtest.N(0)}, Reply: llmtest.Reply{Reasoning: "Let me think.", Text: "One moment.", Calls: []llmtest.Call{
		{Tool: "calc:add", Args: json.RawMessage(`{"a":12345678901234567890,"b":"2"}`)},
		{Tool: "fs:read.file/now", Args: json.RawMessage(`{"path":"/x"}`)},
		{Tool: "invented tool!", Args: json.RawMessage(`{}`)},
	}}},
	{When: llmtest.When{User: "add", Results: llmtest.N(3)}, Reply: llmtest.Reply{Reasoning: "Good.", Calls: []llmtest.Call{{Tool: "add", Args: json.RawMessage(`{"a":1}`)}}}},
	{When: llmtest.When{User: "add", Results: llmtest.N(4)}, Reply: llmtest.Reply{Text: "Done: {{result}}"}},
}}

// loop runs the conversation of loopScript; each step may use a different
// model.
func loop(t *testing.T, models ...llm.Model) []llm.Message {
	t.Helper()
	history := []llm.Message{llm.Text(llm.User, "add these")}
	set := tools(t)
	for step := range 3 {
		turn := ask(t, models[step%len(models)], llm.Request{System: "s", Messages: history, Tools: set})
		history = append(history, reload(t, turn.Message))
		if step == 2 {
			if got := turn.Message.Text(); !strings.Contains(got, "Done: ") || turn.Stop != llm.StopEnd {
				t.Errorf("in the end: %q, %s", got, turn.Stop)
			}
			break
		}
		if turn.Stop != llm.StopCalls {
			t.Errorf("step %d stopped with %q", step, turn.Stop)
		}
		calls := turn.Message.Calls()
		results := llm.Message{Role: llm.Tool}
		for i, c := range calls {
			content := fmt.Sprintf(`{"content":[{"type":"text","text":"result %d"},{"type":"image","data":%q,"mimeType":"image/png"}]}`, i, pixel)
			results.Parts = append(results.Parts, llm.Part{Result: &llm.ToolResult{CallID: c.ID, Name: c.Name, Content: json.RawMessage(content), IsError: i == 1}})
		}
		history = append(history, results)
		if step > 0 {
			continue
		}
		if turn.Message.Text() != "One moment." || len(calls) != 3 {
			t.Fatalf("text %q, %d calls", turn.Message.Text(), len(calls))
		}
		if c := calls[0]; c.Tool != (tool.Name{Server: "calc", Tool: "add"}) || string(c.Arguments) != `{"a":12345678901234567890,"b":2}` || c.ID == "" {
			t.Errorf("first call: %+v %s", c, c.Arguments)
		}
		if c := calls[1]; c.Tool != (tool.Name{Server: "fs", Tool: "read.file/now"}) {
			t.Errorf("second call: %+v", c)
		}
		if c := calls[2]; c.Tool != (tool.Name{}) || strings.ContainsAny(c.Name, " !") {
			t.Errorf("invented call: %+v", c)
		}
	}
	return history
}

func TestToolLoop(t *testing.T) {
	each(t, loopScript, func(t *testing.T, v variant, s *llmtest.Server) {
		history := loop(t, v.model(t, s))
		last := s.Last()
		results := last.Results()
		if len(results) != 4 || !strings.Contains(results[0].Text, "result 0") {
			t.Fatalf("results %+v", results)
		}
		if (results[0].Images > 0) != v.pictures {
			t.Errorf("%d pictures reached the model", results[0].Images)
		}
		if !strings.Contains(results[1].Text, "result 1") || !results[1].IsError && !strings.Contains(strings.ToLower(results[1].Text), "error") {
			t.Errorf("the failure reached the model as %+v", results[1])
		}
		// The second step had only calls that the provider itself made.
		if (history[3].Native != nil) != v.signs {
			t.Errorf("native form kept: %v", history[3].Native != nil)
		}
	})
}

func TestConversationMovesBetweenProviders(t *testing.T) {
	s := llmtest.Start(t, loopScript)
	all := variants()
	for i := range all {
		for j := range all {
			for _, mode := range []llm.ToolMode{llm.NativeTools, llm.PromptTools} {
				if mode == llm.PromptTools && i != j {
					continue
				}
				t.Run(all[i].name+" to "+all[j].name, func(t *testing.T) { loop(t, all[i].model(t, s), all[j].model(t, s)) })
			}
		}
	}
}

func TestToolChoice(t *testing.T) {
	each(t, llmtest.Script{}, func(t *testing.T, v variant, s *llmtest.Server) {
		m, set := v.model(t, s), tools(t)
		add := set.Declared(tool.Name{Server: "calc", Tool: "add"})
		for name, tt := range map[string]struct {
			req    llm.Request
			choice string
		}{
			"auto":     {llm.Request{}, "auto"},
			"none":     {llm.Request{Choice: llm.None}, "none"},
			"required": {llm.Request{Choice: llm.Required, Single: true}, "required"},
			"one":      {llm.Request{Choice: llm.Required, Only: add, Single: true}, add},
		} {
			tt.req.Messages, tt.req.Tools = []llm.Message{llm.Text(llm.User, "hi")}, set
			ask(t, m, tt.req)
			r := s.Last()
			if r.Choice != tt.choice || len(r.Tools) != 2 {
				t.Errorf("%s: choice %q, %d tools", name, r.Choice, len(r.Tools))
			}
			if want := !tt.req.Single || v.api == llmtest.Gemini; r.Parallel != want {
				t.Errorf("%s: parallel %v", name, r.Parallel)
			}
		}
	})
}

func TestStopReasons(t *testing.T) {
	script := llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "long"}, Reply: llmtest.Reply{Text: "and so on", Stop: "length"}},
		{When: llmtest.When{User: "bad"}, Reply: llmtest.Reply{Text: "no", Stop: "filter"}},
		{When: llmtest.When{User: "broken"}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "add", Raw: `{"a": 1,`}}}},
		{When: llmtest.When{User: "list"}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "add", Raw: `[1,2]`}}}},
	}}
	each(t, script, func(t *testing.T, v variant, s *llmtest.Server) {
		m := v.model(t, s)
		for user, want := range map[string]llm.Stop{"long": llm.StopLength, "bad": llm.StopFilter} {
			if turn := ask(t, m, llm.Request{Messages: []llm.Message{llm.Text(llm.User, user)}}); turn.Stop != want {
				t.Errorf("%s: %q", user, turn.Stop)
			}
		}
		for _, user := range []string{"broken", "list"} {
			turn := ask(t, m, llm.Request{Messages: []llm.Message{llm.Text(llm.User, user)}, Tools: tools(t)})
			if v.api == llmtest.Gemini {
				if turn.Stop != llm.StopMalformed {
					t.Errorf("%s: %q", user, turn.Stop)
				}
				continue
			}
			c := turn.Message.Calls()[0]
			if c.Malformed == "" || c.Problem == "" || string(c.Arguments) != "{}" || turn.Message.Native != nil {
				t.Errorf("%s: %+v", user, c)
			}
			// The rest of the conversation must work with such a turn.
			ask(t, m, llm.Request{Messages: []llm.Message{llm.Text(llm.User, "x"), reload(t, turn.Message),
				{Role: llm.Tool, Parts: []llm.Part{{Result: llm.TextResult(c, "bad arguments", true)}}}, llm.Text(llm.User, "go on")}})
		}
	})
}

func TestPromptMode(t *testing.T) {
	block := "```tool\n{\"tool\": \"calc:add\", \"arguments\": {\"a\": 1, \"b\": 2}}\n```"
	script := llmtest.Script{Chunk: 3, Rules: []llmtest.Rule{
		{When: llmtest.When{User: "Result of calc__add", History: "please add"}, Reply: llmtest.Reply{Text: "It is 3."}},
		{When: llmtest.When{User: "please add", System: "calc:add"}, Reply: llmtest.Reply{Text: "Sure.\n" + block + "\nResult: 42, I guess."}},
	}}
	each(t, script, func(t *testing.T, v variant, s *llmtest.Server) {
		m := v.model(t, s, func(c *llm.Config) { c.ToolMode = llm.PromptTools })
		req := llm.Request{System: "Base.", Guidance: "Guidance.", Messages: []llm.Message{llm.Text(llm.User, "please add")}, Tools: tools(t)}
		var streamed strings.Builder
		turn, err := llm.Collect(m.Stream(context.Background(), req), func(ev llm.Event) { streamed.WriteString(ev.Text) })
		if err != nil {
			t.Fatal(err)
		}
		if got := streamed.String(); got != "Sure.\n" {
			t.Errorf("shown: %q", got)
		}
		calls := turn.Message.Calls()
		if len(calls) != 1 || calls[0].Tool.String() != "calc:add" || string(calls[0].Arguments) != `{"a": 1, "b": 2}` || turn.Stop != llm.StopCalls {
			t.Fatalf("calls %+v, stop %s", calls, turn.Stop)
		}
		if r := s.Last(); len(r.Tools) != 0 || !strings.HasPrefix(r.System, "Base.\n\n") || !strings.HasSuffix(r.System, "\n\nGuidance.") || !strings.Contains(r.System, "```tool") {
			t.Errorf("asked with system prompt %q", r.System)
		}
		req.Messages = append(req.Messages, reload(t, turn.Message), llm.Message{Role: llm.Tool, Parts: []llm.Part{{Result: llm.TextResult(calls[0], "3", false)}}})
		if turn := ask(t, m, req); turn.Message.Text() != "It is 3." {
			t.Errorf("in the end: %q", turn.Message.Text())
		}
	})
}

func TestUnknownProvider(t *testing.T) {
	if _, err := models.NewSet([]llm.Config{{Provider: "nobody"}}, nil, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("an unknown provider was accepted")
	}
	set, err := models.NewSet([]llm.Config{{Provider: llm.Gemini, Model: "a"}, {Name: "b", Provider: llm.OpenAI}}, nil, slog.New(slog.DiscardHandler))
	if err != nil || len(set.All()) != 2 || set.Get("").Info().ID != "gemini/a" || set.Get("b") == nil || set.Get("c") != nil {
		t.Errorf("set %v, %v", set, err)
	}
}
