package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/chat/wire"
	"junctor/internal/listing"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

func errCode(err error) string { return string(tool.AsError(err).Kind) }

func calls(names ...string) []llmtest.Call {
	var out []llmtest.Call
	for _, n := range names {
		out = append(out, llmtest.Call{Tool: n})
	}
	return out
}

// providers returns a configuration for each provider API; every flow must work
// with all of them.
func providers() map[string]llm.Config {
	return map[string]llm.Config{
		"openai":    {Name: "m", Provider: llm.OpenAI, Model: "gpt-test"},
		"responses": {Name: "m", Provider: llm.OpenAI, Model: "o9-test", API: llm.ResponsesAPI},
		"anthropic": {Name: "m", Provider: llm.Anthropic, Model: "claude-test"},
		"gemini":    {Name: "m", Provider: llm.Gemini, Model: "gemini-3-test"},
	}
}

func each(t *testing.T, script llmtest.Script, f func(t *testing.T, r *fixture), opts ...option) {
	t.Helper()
	for name, cfg := range providers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, newFixture(t, script, append([]option{withModels(cfg)}, opts...)...))
		})
	}
}

func TestReplyIsStreamedAndStored(t *testing.T) {
	each(t, llmtest.Script{}, func(t *testing.T, r *fixture) {
		c := r.connect("")
		for i, text := range []string{"grüß dich 😀", "und nochmal"} {
			c.sendText(text)
			if m := c.kind(wire.TypeMessage); m.Payload.Text != text {
				t.Errorf("echo %q", m.Payload.Text)
			}
			got, stop := c.reply()
			if got != "You said: "+text || stop != stopEnd {
				t.Errorf("reply %d: %q, %s", i, got, stop)
			}
		}
		// Sequence numbers start at 1 without gaps or duplicates; usage was
		// sent.
		want, used := int64(1), 0
		for _, m := range c.all[1:] {
			if m.Seq != want {
				t.Fatalf("message %s, want number %d", m.Raw, want)
			}
			want++
			if m.Type == wire.TypeUsage && m.Payload.Turn.Input > 0 && m.Payload.Session.Output > 0 && m.Payload.Context > 0 {
				used++
			}
		}
		if used != 2 {
			t.Errorf("usage came %d times", used)
		}
		if n := len(r.model.Last().Messages); n != 3 {
			t.Errorf("the model saw %d messages", n)
		}
		if title := r.awaitIdle(c.id).currentTitle(); title != "grüß dich 😀" {
			t.Errorf("title %q", title)
		}
	})
}

var toolScript = llmtest.Script{Rules: []llmtest.Rule{
	{When: llmtest.When{Match: `add (\d+) and (\d+)`, Results: llmtest.N(0)}, Reply: llmtest.Reply{Reasoning: "Adding.", Text: "Let me see. ",
		Calls: []llmtest.Call{{Tool: "calc:add", Args: json.RawMessage(`{"a":"=$1","b":"=$2"}`)}}}},
	{When: llmtest.When{User: "add", Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "It is {{result}}."}},
	{When: llmtest.When{User: "everything wrong", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{
		{Tool: "no_such_tool"}, {Tool: "calc:add", Args: json.RawMessage(`{"a":"many"}`)}, {Tool: "odd:boom"}, {Tool: "odd:down"}, {Tool: "odd:progress"}}}},
	{When: llmtest.When{User: "everything wrong", Results: llmtest.N(5)}, Reply: llmtest.Reply{Text: "{{results}}"}},
}}

func TestToolCallInReply(t *testing.T) {
	each(t, toolScript, func(t *testing.T, r *fixture) {
		c := r.connect("")
		c.sendText("add 40 and 2")
		text, stop := c.reply()
		if text != "Let me see. It is 42." || stop != stopEnd {
			t.Errorf("%q, %s", text, stop)
		}
		if got := c.results()["calc:add"]; !strings.Contains(got, `"42"`) {
			t.Errorf("result %s", got)
		}
		// The next turn's history, signatures included, must be accepted too.
		c.sendText("add 1 and 1")
		if text, _ := c.reply(); !strings.HasSuffix(text, "It is 2.") {
			t.Errorf("second turn: %q", text)
		}
		if !strings.Contains(r.model.Last().System, "Use calc for arithmetic.") {
			t.Error("the servers' guidance did not reach the model")
		}
	})
}

func TestToolErrorsReachModel(t *testing.T) {
	each(t, toolScript, func(t *testing.T, r *fixture) {
		c := r.connect("")
		c.sendText("everything wrong")
		text, stop := c.reply()
		for _, want := range []string{"TOOL_NOT_FOUND", "INVALID_ARGUMENTS", "/a", "it broke", "UPSTREAM_ERROR", "progressed"} {
			if !strings.Contains(text, want) {
				t.Errorf("the model was not told %q: %s", want, text)
			}
		}
		if stop != stopEnd {
			t.Errorf("stop %s", stop)
		}
		progress := false
		for _, m := range c.all {
			progress = progress || string(m.Payload.Data.Progress) != "" && m.Payload.Message == "half way"
		}
		if !progress {
			t.Error("progress did not reach the person")
		}
	})
}

func TestOpenCircuitReachesModel(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "go", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: calls("odd:down")}},
		{When: llmtest.When{User: "go"}, Reply: llmtest.Reply{Text: "{{result}}"}},
	}})
	c := r.connect("")
	for i := range 6 {
		c.sendText("go")
		text, _ := c.reply()
		if open := strings.Contains(text, "CIRCUIT_OPEN"); open != (i == 5) {
			t.Errorf("turn %d: %s", i, text)
		}
	}
	if n := r.ups.count("odd:down"); n != 5 {
		t.Errorf("called %d times", n)
	}
}

func TestParallelCallsAreBounded(t *testing.T) {
	var many []string
	for range 20 {
		many = append(many, "odd:slow")
	}
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: calls(many...)}},
		{When: llmtest.When{Results: llmtest.N(20)}, Reply: llmtest.Reply{Text: "all done"}},
	}}, withConfig(func(c *Config) { c.MaxIdenticalCalls = 100 }))
	c := r.connect("")
	c.sendText("go")
	for range 8 { // only the first eight run concurrently
		<-r.ups.begun
	}
	close(r.ups.release)
	if text, stop := c.reply(); text != "all done" || stop != stopEnd {
		t.Errorf("%q, %s", text, stop)
	}
	if r.ups.most != 8 {
		t.Errorf("%d calls at once", r.ups.most)
	}
}

func TestToolCallLoopIsBounded(t *testing.T) {
	script := llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{System: "Use no more tools"}, Reply: llmtest.Reply{Text: "I give up."}},
		{When: llmtest.When{User: "same"}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "calc:add", Args: json.RawMessage(`{"a":1,"b":2}`)}}}},
		{When: llmtest.When{User: "stubborn"}, Reply: llmtest.Reply{Calls: calls("odd:boom")}},
	}}
	for i := range 40 { // a different call each time
		script.Rules = append(script.Rules, llmtest.Rule{When: llmtest.When{User: "steps", Results: llmtest.N(i)},
			Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "calc:add", Args: json.RawMessage(fmt.Sprintf(`{"a":1,"b":%d}`, i))}}}})
	}
	// A model that keeps calling although it gets no more tools.
	script.Rules = append([]llmtest.Rule{{When: llmtest.When{User: "possessed"}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "calc:add", Args: json.RawMessage(`{"a":1,"b":2}`)}}}}}, script.Rules...)
	each(t, script, func(t *testing.T, r *fixture) {
		c := r.connect("")
		c.sendText("possessed")
		if text, stop := c.reply(); !strings.Contains(text, "same call again and again") || stop != "repetition" || r.ups.count("calc:add") != 5 {
			t.Errorf("%q, %s after %d calls", text, stop, r.ups.count("calc:add"))
		}
		r.ups.forget("calc:add")
		c = r.connect("")
		c.sendText("same")
		if text, stop := c.reply(); text != "I give up." || stop != stopRepetition || r.ups.count("calc:add") != 5 {
			t.Errorf("%q, %s after %d calls", text, stop, r.ups.count("calc:add"))
		}
		c.sendText("steps")
		if text, stop := c.reply(); text != "I give up." || stop != "max_steps" || r.ups.count("calc:add") != 5+25 {
			t.Errorf("%q, %s after %d calls", text, stop, r.ups.count("calc:add")-5)
		}
		c.sendText("and then?") // the model still accepts the history
		if text, stop := c.reply(); stop != stopEnd || text == "" {
			t.Errorf("%q, %s", text, stop)
		}
	})
}

func TestMalformedCallsReachModelAsErrors(t *testing.T) {
	each(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "broken", Results: llmtest.N(0)}, Times: 1, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "calc:add", Raw: `{"a": 1,`}}}},
		{When: llmtest.When{User: "broken"}, Reply: llmtest.Reply{Text: "told: {{results}}"}},
		{When: llmtest.When{User: "empty"}, Reply: llmtest.Reply{}},
	}}, func(t *testing.T, r *fixture) {
		c := r.connect("")
		c.sendText("broken")
		text, stop := c.reply()
		if !strings.HasPrefix(text, "told:") || stop != stopEnd {
			t.Errorf("%q, %s", text, stop)
		}
		// Gemini reports a call that it failed to write without a call.
		if r.model.Last().API != llmtest.Gemini && (!strings.Contains(text, "INVALID_ARGUMENTS") || !strings.Contains(text, "schema")) {
			t.Errorf("the model was told %q", text)
		}
		c.sendText("empty")
		if text, stop := c.reply(); !strings.Contains(text, "no answer") || stop != stopError {
			t.Errorf("empty: %q, %s", text, stop)
		}
	})
}

func TestModelFailures(t *testing.T) {
	script := llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "down"}, Reply: llmtest.Reply{Error: &llmtest.Failure{Status: 500}}},
		{When: llmtest.When{User: "later"}, Times: 1, Reply: llmtest.Reply{Error: &llmtest.Failure{Status: 429, RetryAfter: "0.01"}}},
		{When: llmtest.When{User: "cut"}, Reply: llmtest.Reply{Text: strings.Repeat("word ", 50), CutAfter: 8}},
		{When: llmtest.When{User: "refuse"}, Reply: llmtest.Reply{Text: "no", Stop: "filter"}},
		{When: llmtest.When{User: "long"}, Reply: llmtest.Reply{Text: "and so on", Stop: "length"}},
	}}
	each(t, script, func(t *testing.T, r *fixture) {
		c := r.connect("")
		for _, tt := range []struct{ say, text, stop, code string }{
			{"down", "I could not get an answer: ", stopError, wire.CodeModel},
			{"later", "You said: later", stopEnd, ""},
			{"cut", "word ", stopError, wire.CodeModel},
			{"refuse", "no", stopFilter, wire.CodeModel},
			{"long", "and so on", stopLength, ""},
			{"still there?", "You said: still there?", stopEnd, ""},
		} {
			from := len(c.all)
			c.sendText(tt.say)
			text, stop := c.reply()
			code := ""
			for _, m := range c.all[from:] {
				if m.Type == wire.TypeError {
					code = m.Payload.Code
				}
			}
			if !strings.HasPrefix(text, tt.text) || stop != tt.stop || code != tt.code {
				t.Errorf("%s: %q, %s, %s", tt.say, text, stop, code)
			}
		}
		// The gateway's fallback message is not sent to the model as its own;
		// the partial reply is.
		last := r.model.Last()
		for _, m := range last.Messages {
			if strings.Contains(m.Text, "I could not get") {
				t.Error("the gateway's excuse was given to the model as its own")
			}
		}
		history := r.awaitIdle(c.id).History()
		notices := map[string]int{}
		for _, m := range history.Messages {
			notices[m.Notice]++
		}
		if notices[wire.NoticeFallback] != 1 || notices[noticeBroken] != 1 {
			t.Errorf("notices %v", notices)
		}
		if strings.Contains(r.logs.String(), "sk-secret-key") {
			t.Error("the key is in the log")
		}
	}, func(_ *Options, cfgs *[]llm.Config) { (*cfgs)[0].MaxRetries = 1 })
}

func TestNoModelConfigured(t *testing.T) {
	r := newFixture(t, llmtest.Script{}, withModels())
	c := r.dial("")
	if m := c.next(); !strings.Contains(m.Payload.Message, "no model is set up") {
		t.Errorf("greeting %s", m.Raw)
	}
	c.sendText("hello")
	if text, stop := c.reply(); !strings.Contains(text, "GEMINI_API_KEY") || stop != stopError {
		t.Errorf("%q, %s", text, stop)
	}
}

func TestModelIsChosenPerSession(t *testing.T) {
	r := newFixture(t, llmtest.Script{Default: &llmtest.Reply{Text: "I am {{model}}"}}, withModels(
		llm.Config{Name: "a", Provider: llm.Anthropic, Model: "claude-a"}, llm.Config{Name: "b", Provider: llm.Gemini, Model: "gemini-3-b"}))
	c := r.connect("")
	c.sendText("who?")
	if text, _ := c.reply(); text != "I am claude-a" {
		t.Error(text)
	}
	c.send("message", map[string]any{"text": "who?", "model": "b"})
	if text, _ := c.reply(); text != "I am gemini-3-b" {
		t.Error(text)
	}
	c.sendText("still?")
	if text, _ := c.reply(); text != "I am gemini-3-b" {
		t.Error(text)
	}
	c.send("message", map[string]any{"text": "who?", "model": "c"})
	if m := c.kind(wire.TypeError); m.Payload.Code != "INVALID_REQUEST" {
		t.Errorf("unknown model: %s", m.Raw)
	}
}

func TestLongResultsAreTruncated(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: calls("odd:dump")}},
		{When: llmtest.When{Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "ok"}},
	}})
	c := r.connect("")
	c.sendText("go")
	c.reply()
	got := r.model.Last().Results()[0].Text
	if len(got) > 70_000 || !strings.Contains(got, "65536 of 300000 bytes are shown") {
		t.Errorf("the model got %d bytes ending in %q", len(got), got[max(0, len(got)-100):])
	}
}

func TestLargeCatalogueBecomesSearchAndExecute(t *testing.T) {
	each(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "add", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "tools:search", Args: json.RawMessage(`{"query":"add two numbers"}`)}}}},
		{When: llmtest.When{User: "add", Results: llmtest.N(1), Result: "calc:add(a*: number"}, Reply: llmtest.Reply{Calls: []llmtest.Call{
			{Tool: "tools:details", Args: json.RawMessage(`{"tool":"calc:add"}`)},
			{Tool: "tools:execute", Args: json.RawMessage(`{"tool":"calc:add","arguments":{"a":1,"b":2}}`)},
			{Tool: "tools:execute", Args: json.RawMessage(`{"tool":"calc:ad","arguments":{}}`)},
			{Tool: "tools:execute", Args: json.RawMessage(`{"tool":"calc:add","arguments":[1]}`)},
			{Tool: "calc__add", Args: json.RawMessage(`{"a":1,"b":2}`)}}}},
		{When: llmtest.When{User: "add", Results: llmtest.N(6)}, Reply: llmtest.Reply{Text: "{{results}}"}},
	}}, func(t *testing.T, r *fixture) {
		c := r.connect("")
		c.sendText("add")
		text, stop := c.reply()
		for _, want := range []string{`schema: {"type":"object"`, "\n3\n", "did you mean calc:add", "must be a JSON object", `"tool": "calc:add"`} {
			if !strings.Contains(text, want) {
				t.Errorf("the model was not told %q: %s", want, text)
			}
		}
		if stop != stopEnd || len(r.model.Last().Tools) != 3 || r.ups.count("calc:add") != 1 {
			t.Errorf("%s, %d tools, %d calls", stop, len(r.model.Last().Tools), r.ups.count("calc:add"))
		}
		if c.results()["calc:add"] == "" {
			t.Error("the person was not shown the tool behind execute")
		}
	}, withConfig(func(c *Config) { c.MetaToolsAbove = 3 }))
}

func TestUnavailableServersAreListed(t *testing.T) {
	r := newFixture(t, llmtest.Script{}, func(o *Options, _ *[]llm.Config) {
		o.Tools = listing.New(listing.Options{Catalog: catalog.New(nil, nil), Upstreams: states{{Name: "github", State: upstream.Disconnected, Reason: "refused"}}})
	})
	c := r.dial("")
	if m := c.next(); len(m.Payload.Unavailable) != 1 || m.Payload.Unavailable[0].Server != "github" {
		t.Errorf("greeting %s", m.Raw)
	}
	c.sendText("hello")
	if m := c.kind(wire.TypeStatus); len(m.Payload.Data.Unavailable) != 1 {
		t.Errorf("status %s", m.Raw)
	}
	c.reply()
	if !strings.Contains(r.model.Last().System, "github (disconnected)") {
		t.Error("the model does not know")
	}
}
