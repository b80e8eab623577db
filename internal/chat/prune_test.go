package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/provider"
	"junctor/internal/tool"
)

// The scripted model rejects prompts larger than its window and histories in
// which calls and results do not match, so every request it answers was pruned
// correctly.
func TestLongConversationFitsContextWindow(t *testing.T) {
	script := llmtest.Script{ContextWindow: 3000, Rules: []llmtest.Rule{
		{When: llmtest.When{System: "Summarise this part"}, Reply: llmtest.Reply{Text: "They spoke of numbers; the code word is zebra."}},
		{When: llmtest.When{User: "code word"}, Reply: llmtest.Reply{Text: "seen: {{user}}"}},
		{When: llmtest.When{User: "tool", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "calc:add", Args: json.RawMessage(`{"a":1,"b":2}`)}, {Tool: "calc:add", Args: json.RawMessage(`{"a":3,"b":4}`)}}}},
		{When: llmtest.When{User: "tool"}, Reply: llmtest.Reply{Text: strings.Repeat("blah ", 100)}},
		{When: llmtest.When{User: "dump", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: calls("odd:dump")}},
		{When: llmtest.When{User: "dump"}, Reply: llmtest.Reply{Text: "that was long"}},
	}}
	each(t, script, func(t *testing.T, r *fixture) {
		c := r.connect("")
		for i := range 25 {
			c.sendText(fmt.Sprintf("use the tool, number %d %s", i, strings.Repeat("words ", 20)))
			if text, stop := c.reply(); stop != stopEnd || !strings.HasPrefix(text, "blah") {
				t.Fatalf("turn %d: %q, %s", i, text, stop)
			}
		}
		c.sendText("dump it") // one result that exceeds the window
		if text, stop := c.reply(); text != "that was long" || stop != stopEnd {
			t.Errorf("%q, %s", text, stop)
		}
		c.sendText("what was the code word?")
		c.reply()
		last := r.model.Last()
		if !strings.Contains(last.Messages[0].Text, "zebra") {
			t.Errorf("the summary is gone: %q", last.Messages[0].Text)
		}
		if n := len(last.Messages); n < 3 {
			t.Errorf("only %d messages are left", n)
		}
		if h := r.awaitIdle(c.id).History().Messages; len(h) != 25*4+4+2 {
			t.Errorf("the person's own history has %d messages", len(h))
		}
	}, func(o *Options, cfgs *[]llm.Config) {
		(*cfgs)[0].ContextWindow, (*cfgs)[0].MaxTokens = 3000, 200
		o.Config.MessagesPerMinute = 6000
	})
}

func TestHistoryIsPrunedWithoutSummary(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{System: "Summarise this part"}, Reply: llmtest.Reply{Error: &llmtest.Failure{Status: 500}}},
	}, Default: &llmtest.Reply{Text: strings.Repeat("blah ", 100)}}, withConfig(func(c *Config) { c.MaxTokenCount = 1000; c.RetainNewestMessages = 2 }))
	c := r.connect("")
	for i := range 12 {
		c.sendText(fmt.Sprint("message ", i, strings.Repeat(" words", 30)))
		if _, stop := c.reply(); stop != stopEnd {
			t.Fatalf("turn %d: %s", i, stop)
		}
	}
	last := r.model.Last()
	if !strings.Contains(last.Messages[0].Text, "left out") || !strings.HasPrefix(last.LastUser(), "message 11") || len(last.Body) > 12_000 {
		t.Errorf("%d messages in %d bytes, beginning with %q", len(last.Messages), len(last.Body), last.Messages[0].Text)
	}
}

// TestSmallerContextWindowIsDetected checks that a context window smaller than
// assumed is detected and respected.
func TestSmallerContextWindowIsDetected(t *testing.T) {
	r := newFixture(t, llmtest.Script{ContextWindow: 4000, Default: &llmtest.Reply{Text: "ok"}})
	c := r.connect("")
	for i := range 6 {
		c.sendText(fmt.Sprint("message ", i, strings.Repeat(" words", 500)))
		if text, stop := c.reply(); text != "ok" || stop != stopEnd {
			t.Fatalf("turn %d: %q, %s", i, text, stop)
		}
	}
}

// TestReducedBudgetIsOfOneModel checks that the history of a model is not
// limited by the smaller context window of the model before it.
func TestReducedBudgetIsOfOneModel(t *testing.T) {
	small := llmtest.Start(t, llmtest.Script{ContextWindow: 4000, Default: &llmtest.Reply{Text: "ok"}})
	r := newFixture(t, llmtest.Script{Default: &llmtest.Reply{Text: "ok"}}, withModels(
		llm.Config{Name: "small", Provider: llm.OpenAI, Model: "gpt-small", BaseURL: small.URL + "/v1"},
		llm.Config{Name: "large", Provider: llm.Anthropic, Model: "claude-large"}), withConfig(func(c *Config) { c.MessagesPerMinute = 6000 }))
	c := r.connect("")
	send := func(i int, model string) {
		t.Helper()
		c.send("message", map[string]any{"text": fmt.Sprintf("message %d:%s", i, strings.Repeat(" words", 500)), "model": model})
		if text, stop := c.reply(); text != "ok" || stop != stopEnd {
			t.Fatalf("message %d: %q, %s", i, text, stop)
		}
	}
	for i := range 6 {
		send(i, "small")
	}
	if !strings.Contains(r.logs.String(), "history too long for the model") {
		t.Fatal("the window of the small model was never exceeded")
	}
	for i := 6; i < 16; i++ {
		send(i, "large")
	}
	for i := 6; i < 16; i++ {
		if !strings.Contains(string(r.model.Last().Body), fmt.Sprintf("message %d:", i)) {
			t.Errorf("the large model did not get message %d", i)
		}
	}
}

func TestPromptMode(t *testing.T) {
	block := "```tool\n{\"tool\": \"calc:add\", \"arguments\": {\"a\": 20, \"b\": 22}}\n```"
	each(t, llmtest.Script{Chunk: 3, Rules: []llmtest.Rule{
		{When: llmtest.When{User: "Result of calc__add:\n42"}, Reply: llmtest.Reply{Text: "It is 42."}},
		{When: llmtest.When{User: "Failure of"}, Reply: llmtest.Reply{Text: "I see: {{user}}"}},
		{When: llmtest.When{User: "broken"}, Reply: llmtest.Reply{Text: "```tool\n{\"tool\": \"calc:add\", "}},
		{When: llmtest.When{User: "add", System: "calc:add"}, Reply: llmtest.Reply{Text: "One moment.\n" + block}},
	}}, func(t *testing.T, r *fixture) {
		c := r.connect("")
		c.sendText("please add")
		text, stop := c.reply()
		if text != "One moment.\nIt is 42." || stop != stopEnd {
			t.Errorf("%q, %s", text, stop)
		}
		c.sendText("broken")
		if text, _ := c.reply(); !strings.Contains(text, "the block is not finished") {
			t.Errorf("unfinished block: %q", text)
		}
		for _, m := range c.all {
			if m.Type == wire.TypeText && strings.Contains(m.Payload.Content, "`") && !strings.Contains(m.Payload.Content, "I see") {
				t.Errorf("half a block was shown: %q", m.Payload.Content)
			}
		}
	}, func(_ *Options, cfgs *[]llm.Config) { (*cfgs)[0].ToolMode = llm.PromptTools })
}

func message_(role llm.Role, seq int64, size int, parts ...llm.Part) historyEntry {
	if parts == nil {
		parts = []llm.Part{{Text: strings.Repeat("x", size)}}
	}
	return historyEntry{seq: seq, message: llm.Message{Role: role, Parts: parts}}
}

func TestPruningKeepsCallResultPairs(t *testing.T) {
	call := llm.Part{Call: &llm.ToolCall{ID: "1", Name: "t", Arguments: json.RawMessage("{}")}}
	result := llm.Part{Result: llm.TextResult(&llm.ToolCall{ID: "1", Name: "t"}, strings.Repeat("r", 7000), false)}
	entries := []historyEntry{
		message_(llm.User, 1, 10), message_(llm.Assistant, 2, 10),
		message_(llm.User, 3, 100), message_(llm.Assistant, 4, 0, call), message_(llm.Tool, 5, 0, result),
		message_(llm.Assistant, 6, 0, call), message_(llm.Tool, 7, 0, result),
	}
	entries[1].Notice = wire.NoticeFallback
	units := unitsOf(entries, 5)
	if len(units) != 2 || !units[0].user || units[0].entries[0].seq != 3 || len(units[1].entries) != 2 {
		t.Fatalf("units %+v", units)
	}
	units = unitsOf(entries, 0)
	if len(units) != 4 { // fallback messages are omitted
		t.Fatalf("%d units", len(units))
	}
	got := fit(units, llm.Gauge{}, 600)
	if got[0].Role != llm.User || len(got[0].Text()) != 100 || got[len(got)-1].Role != llm.Tool || len(got) != 3 {
		t.Errorf("fitted to %d messages, first %s", len(got), got[0].Role)
	}
	n := 0
	for _, m := range got {
		n += m.Tokens()
	}
	if n > 800 {
		t.Errorf("%d tokens", n)
	}
}

func TestCutResultKeepsJSONValid(t *testing.T) {
	long := strings.Repeat("ü", 1000)
	text := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	for name, tt := range map[string]struct {
		in    string
		says  string
		under int
	}{
		"short":                {`{"content":[{"type":"text","text":"hi"}]}`, "hi", 100},
		"long text":            {`{"content":[{"type":"text","text":` + text(long) + `}],"isError":true}`, "1000 of 2000 bytes", 1300},
		"many texts":           {`{"content":[{"type":"text","text":` + text(long[:900]) + `},{"type":"text","text":` + text(long[:900]) + `}]}`, "of 900 bytes", 1400},
		"structured alone":     {`{"content":[],"structuredContent":{"a":` + text(long) + `}}`, "bytes are shown", 1400},
		"structured and text":  {`{"content":[{"type":"text","text":"hi"}],"structuredContent":{"a":` + text(long) + `}}`, "hi", 200},
		"unknown block":        {`{"content":[{"type":"new","x":` + text(long) + `}]}`, "bytes are shown", 1500},
		"not a result":         {`"` + long + `"`, "bytes are shown", 1500},
		"not even JSON":        {long, "bytes are shown", 1500},
		"content is not array": {`{"content":` + text(long) + `}`, "bytes are shown", 1500},
		"a small picture":      {`{"content":[{"type":"image","data":"` + strings.Repeat("A", 4000) + `","mimeType":"image/png"}]}`, "AAAA", 5000},
		"a huge picture":       {`{"content":[{"type":"image","data":"` + strings.Repeat("A", maxImageBytes+4) + `","mimeType":"image/png"}]}`, "too large", 200},
	} {
		got := cutResult(json.RawMessage(tt.in), 1000)
		if len(got) > tt.under || !strings.Contains(string(got), tt.says) || !json.Valid(got) && json.Valid([]byte(tt.in)) {
			t.Errorf("%s: %d bytes: %.300s", name, len(got), got)
		}
		if name == "long text" && !provider.ReadResult(tool.Result{Raw: got}).IsError {
			t.Error("the failure is no longer one")
		}
	}
}

func TestHistoryPayloadIsTrimmed(t *testing.T) {
	big := func(n int) llm.Part {
		return llm.Part{Result: &llm.ToolResult{CallID: "c", Content: json.RawMessage(`"` + strings.Repeat("x", n) + `"`)}}
	}
	parts := []llm.Part{big(1000), {Text: "and"}, big(10)}
	h := wire.HistoryPayload{Messages: []wire.HistoryMessage{{Parts: parts}, {Parts: []llm.Part{{Text: strings.Repeat("t", 5000)}}}, {Parts: []llm.Part{big(600)}}}}
	got := trimHistory(h, 1000)
	if c := string(got.Messages[0].Parts[0].Result.Content); !strings.Contains(c, "1002 bytes left out") || !json.Valid([]byte(c)) {
		t.Errorf("the oldest: %.100s", c)
	}
	if n := len(got.Messages[2].Parts[0].Result.Content); n != 602 {
		t.Errorf("the newest has %d bytes", n)
	}
	if got.Messages[0].Parts[1].Text != "and" || len(got.Messages[1].Parts[0].Text) != 5000 {
		t.Error("what was said was left out")
	}
	if len(parts[0].Result.Content) != 1002 {
		t.Error("the session's own history was changed")
	}
}

func TestTitleOfFirstMessage(t *testing.T) {
	for in, want := range map[string]string{
		"hello":                        "hello",
		"  two\tspaces \n second line": "two spaces",
		strings.Repeat("word ", 30):    "word word word word word word word word word word word word…",
		strings.Repeat("ü", 100):       strings.Repeat("ü", 60) + "…",
	} {
		if got := titleOf(in); got != want {
			t.Errorf("titleOf(%q) = %q, want %q", in, got, want)
		}
	}
}
