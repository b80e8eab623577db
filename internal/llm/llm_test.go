package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/provider"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// fake is a model with predefined answers.
type fake struct {
	answers []any // error, Turn, or string: text without a turn
	asked   []Request
}

func (f *fake) Info() Info { return Info{ID: "fake", Provider: OpenAI} }

func (f *fake) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f.asked = append(f.asked, req)
		a := f.answers[0]
		f.answers = f.answers[1:]
		switch a := a.(type) {
		case error:
			yield(Event{}, a)
		case string: // the stream ends without a turn
			yield(Event{Text: a}, nil)
		case Turn:
			for _, p := range a.Message.Parts {
				if p.Text != "" && !yield(Event{Text: p.Text}, nil) || p.Reasoning != "" && !yield(Event{Reasoning: p.Reasoning}, nil) {
					return
				}
			}
			yield(Event{Turn: &a}, nil)
		}
	}
}

func failure(status int, after time.Duration) error {
	return Config{Provider: OpenAI}.Fail(context.Background(), Failure{Status: status, RetryAfter: after, Err: errors.New("x")})
}

func TestRetryDelays(t *testing.T) {
	reply := Turn{Message: Text(Assistant, "hi")}
	for name, tt := range map[string]struct {
		answers   []any
		left      int
		min, max  time.Duration
		reason    Reason
		cancelled bool
	}{
		"at once":                     {answers: []any{reply}},
		"backs off":                   {answers: []any{failure(500, 0), failure(529, 0), failure(503, 0), reply}, min: 3500 * time.Millisecond, max: 7 * time.Second},
		"obeys Retry-After":           {answers: []any{failure(429, 20*time.Second), reply}, min: 20 * time.Second, max: 20 * time.Second},
		"gives up on a long wait":     {answers: []any{failure(429, time.Hour), reply}, left: 1, reason: Busy},
		"gives up after three":        {answers: []any{failure(500, 0), failure(500, 0), failure(500, 0), failure(500, 0), reply}, left: 1, min: 3 * time.Second, max: 7 * time.Second, reason: Broken},
		"not after a bad key":         {answers: []any{failure(401, 0), reply}, left: 1, reason: BadKey},
		"not when cancelled meantime": {answers: []any{failure(500, 0), reply}, left: 1, reason: Broken, cancelled: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answers: tt.answers}
				m := WithRetries(f, 3, slog.New(slog.DiscardHandler))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancelled {
					time.AfterFunc(time.Millisecond, cancel)
				}
				start := time.Now()
				turn, err := Collect(m.Stream(ctx, Request{}), nil)
				took := time.Since(start)
				if ReasonOf(err) != tt.reason || tt.reason == "" && turn.Message.Text() != "hi" {
					t.Errorf("turn %+v, error %v", turn, err)
				}
				if !tt.cancelled && (took < tt.min || took > tt.max) {
					t.Errorf("took %v, want %v to %v", took, tt.min, tt.max)
				}
				if len(f.answers) != tt.left {
					t.Errorf("%d answers left, want %d", len(f.answers), tt.left)
				}
			})
		})
	}
	if m := WithRetries(&fake{}, 0, nil); m.(*fake) == nil {
		t.Error("no retries must change nothing")
	}
}

func TestCollectWithoutTurn(t *testing.T) {
	turn, err := Collect((&fake{answers: []any{"half"}}).Stream(context.Background(), Request{}), nil)
	if err == nil || turn.Message.Text() != "half" {
		t.Errorf("%+v, %v", turn, err)
	}
}

func call(id, name string) Part {
	return Part{Call: &ToolCall{ID: id, Name: name, Arguments: json.RawMessage("{}")}}
}

func result(id, text string) Part {
	return Part{Result: TextResult(&ToolCall{ID: id, Name: "t"}, text, false)}
}

func TestHistoryIsAlwaysValid(t *testing.T) {
	for name, tt := range map[string]struct {
		in   []Message
		want string
	}{
		"plain":              {[]Message{Text(User, "a"), Text(Assistant, "b")}, "user:a assistant:b"},
		"unanswered at end":  {[]Message{Text(User, "a"), {Role: Assistant, Parts: []Part{call("1", "t")}}}, "user:a assistant:(1) tool:[1 error]"},
		"unanswered between": {[]Message{{Role: Assistant, Parts: []Part{call("1", "t"), call("2", "t")}}, {Role: Tool, Parts: []Part{result("2", "r")}}, Text(User, "b")}, "assistant:(1)(2) tool:[1 error][2] user:b"},
		"wrong order":        {[]Message{{Role: Assistant, Parts: []Part{call("1", "t"), call("2", "t")}}, {Role: Tool, Parts: []Part{result("2", "r")}}, {Role: Tool, Parts: []Part{result("1", "r")}}}, "assistant:(1)(2) tool:[1][2]"},
		"orphan result":      {[]Message{Text(User, "a"), {Role: Tool, Parts: []Part{result("9", "r")}}, Text(Assistant, "b")}, "user:a assistant:b"},
		"empty messages":     {[]Message{{Role: User}, {Role: Assistant, Parts: []Part{{Reasoning: "hm"}}}, Text(User, "x")}, "user:x"},
		"nothing":            {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out []string
			for _, m := range (Request{Messages: tt.in}).History() {
				s := string(m.Role) + ":" + m.Text()
				for _, c := range m.Calls() {
					s += "(" + c.ID + ")"
				}
				for _, r := range m.Results() {
					s += "[" + r.CallID
					if r.IsError {
						s += " error"
					}
					s += "]"
				}
				out = append(out, s)
			}
			if got := strings.Join(out, " "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(k string) string { return m[k] }
}

func TestChooseModelConfiguration(t *testing.T) {
	describe := func(cfgs []Config) string {
		var out []string
		for _, c := range cfgs {
			out = append(out, fmt.Sprintf("%s key=%s url=%s window=%d", c.ID(), c.APIKey.Reveal(), c.BaseURL, c.ContextWindow))
		}
		return strings.Join(out, "\n")
	}
	ollama := func(url string) []string { return []string{"qwen:7b", "llama"} }
	for name, tt := range map[string]struct {
		cfgs []Config
		env  func(string) string
		want string
	}{
		"nothing but Ollama": {nil, env(), "ollama/qwen:7b key= url=http://127.0.0.1:11434/v1 window=32768\nollama/llama key= url=http://127.0.0.1:11434/v1 window=32768"},
		"a key":              {nil, env("ANTHROPIC_API_KEY", "k"), "anthropic/claude-sonnet-5-5 key=k url= window=200000"},
		"several keys": {nil, env("XAI_API_KEY", "x", "OPENAI_API_KEY", "o", "GOOGLE_API_KEY", "g", "OPENAI_BASE_URL", "http://proxy/v1"),
			"gemini/gemini-flash-latest key=g url= window=1048576\nopenai/gpt-5.5 key=o url=http://proxy/v1 window=400000\nxai/grok-4.6 key=x url=https://api.x.ai/v1 window=256000"},
		"configured": {[]Config{{Provider: OpenAI, Model: "gpt-4o", APIKey: "own"}, {Name: "big", Provider: Gemini, Model: "gemini-3-pro", ContextWindow: 5}}, env("OPENAI_API_KEY", "o", "GEMINI_API_KEY", "g"),
			"openai/gpt-4o key=own url= window=128000\nbig key=g url= window=5"},
		"configured Ollama":    {[]Config{{Provider: Ollama}}, env("OLLAMA_HOST", "0.0.0.0:9999"), "ollama/qwen:7b key= url=http://127.0.0.1:9999/v1 window=32768"},
		"Ollama by URL":        {[]Config{{Provider: Ollama, Model: "m", BaseURL: "http://box:1"}}, env(), "ollama/m key= url=http://box:1/v1 window=32768"},
		"OpenRouter":           {[]Config{{Provider: OpenAICompatible, Model: "openai/gpt-4o", BaseURL: "https://or/api/v1"}}, env(), "openai-compatible/openai/gpt-4o key= url=https://or/api/v1 window=128000"},
		"a model not heard of": {[]Config{{Provider: OpenAICompatible, Model: "zz", BaseURL: "http://x"}}, env(), "openai-compatible/zz key= url=http://x window=128000"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describe(Choose(tt.cfgs, tt.env, ollama)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	if got := Choose(nil, env(), nil); len(got) != 0 {
		t.Errorf("with nothing: %v", got)
	}
	c := Choose([]Config{{Provider: Anthropic}}, env("ANTHROPIC_AUTH_TOKEN", "t"), nil)[0]
	if !c.Bearer || c.MaxTokens != 16384 {
		t.Errorf("bearer %v, max tokens %d", c.Bearer, c.MaxTokens)
	}
	c = Choose([]Config{{Provider: OpenAI}}, env("OPENAI_ORG_ID", "org", "OPENAI_PROJECT_ID", "p"), nil)[0]
	if c.Headers["OpenAI-Organization"] != "org" || c.Headers["OpenAI-Project"] != "p" {
		t.Errorf("headers %v", c.Headers)
	}
}

func TestOllamaHost(t *testing.T) {
	for in, want := range map[string]string{
		"": "http://127.0.0.1:11434/v1", "box": "http://box:11434/v1", ":8080": "http://127.0.0.1:8080/v1",
		"https://ollama.example": "https://ollama.example:443/v1", "[::]:1": "http://127.0.0.1:1/v1", "http://%zz": "http://127.0.0.1:11434/v1",
	} {
		if got := ollamaHost(in); got != want {
			t.Errorf("ollamaHost(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestProbeOllama(t *testing.T) {
	body := `{"models":[{"name":"llama"},{"name":"nomic-embed-text"},{"name":"x","details":{"family":"nomic-bert"}},{"name":""}]}`
	status := 200
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/tags" {
			t.Errorf("asked %s", r.URL.Path)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	defer ts.Close()
	got, err := ProbeOllama(t.Context(), ts.Client(), ts.URL+"/v1")
	if err != nil || fmt.Sprint(got) != "[llama]" {
		t.Errorf("%v, %v", got, err)
	}
	body = "not json"
	if _, err := ProbeOllama(t.Context(), ts.Client(), ts.URL+"/v1/"); err == nil {
		t.Error("nonsense was accepted")
	}
	status = 500
	if _, err := ProbeOllama(t.Context(), ts.Client(), ts.URL); err == nil {
		t.Error("a failure was accepted")
	}
	for _, bad := range []string{"http://127.0.0.1:1", "http://%zz", "http://a b"} {
		if _, err := ProbeOllama(t.Context(), ts.Client(), bad); err == nil {
			t.Errorf("%s answered", bad)
		}
	}
}

func TestErrorBody(t *testing.T) {
	for in, want := range map[string][2]string{
		`{"error":{"message":"m","type":"t","code":"c"}}`:      {"c", "m"},
		`{"error":{"message":"m","type":"t","code":null}}`:     {"t", "m"},
		`{"message":"m","type":"t","code":429}`:                {"t", "m"},
		`{"error":{"code":429,"message":"m","status":"S"}}`:    {"S", "m"},
		`{"error":"plain"}`:                                    {"", "plain"},
		`{"message":"m"}`:                                      {"", "m"},
		`<html>`:                                               {"", "<html>"},
		`{}`:                                                   {"", "{}"},
		`{"type":"error","error":{"type":"x","message":"mm"}}`: {"x", "mm"},
	} {
		if code, text := ErrorBody(in); code != want[0] || text != want[1] {
			t.Errorf("%s: %q, %q", in, code, text)
		}
	}
}

func TestErrorsHideTheKey(t *testing.T) {
	c := Config{Provider: OpenAICompatible, Model: "m", APIKey: telemetry.Secret("sk-123456"), BaseURL: "http://x"}
	for _, f := range []Failure{
		{Status: 400, Text: "your key sk-123456 is odd"},
		{Status: 401, Text: "Incorrect key sk-12***56", Err: errors.New("sk-123456")},
		{Status: 500, Text: strings.Repeat("ü", 1000)},
		{Err: errors.New("dial sk-123456")},
	} {
		err := c.Fail(context.Background(), f)
		if strings.Contains(err.Error(), "sk-1") || len(err.Error()) > 1500 {
			t.Errorf("%v", err)
		}
	}
	for _, p := range []Provider{Gemini, OpenAI, Anthropic, XAI, Ollama, OpenAICompatible} {
		for _, status := range []int{0, 401, 403, 404, 402, 413, 529} {
			if err := (Config{Provider: p}).Fail(context.Background(), Failure{Status: status}); tool.AsError(err).Msg == "" {
				t.Errorf("%s %d says nothing", p, status)
			}
		}
	}
	if ReasonOf(errors.New("x")) != "" {
		t.Error("a reason for an error that is none of ours")
	}
}

func TestRetryAfterHeader(t *testing.T) {
	for name, tt := range map[string]struct {
		h    http.Header
		want time.Duration
	}{
		"none":         {http.Header{}, 0},
		"seconds":      {http.Header{"Retry-After": {"7"}}, 7 * time.Second},
		"milliseconds": {http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"7"}}, 1500 * time.Millisecond},
		"past date":    {http.Header{"Retry-After": {"Mon, 02 Jan 2006 15:04:05 GMT"}}, 0},
		"nonsense":     {http.Header{"Retry-After": {"soon"}}, 0},
		"absurd":       {http.Header{"Retry-After": {"1e99"}}, 0},
	} {
		if got := RetryAfterHeader(tt.h); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if d := RetryAfterHeader(http.Header{"Retry-After": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}}); d < 50*time.Minute || d > time.Hour {
		t.Errorf("date: %v", d)
	}
}

func TestTokens(t *testing.T) {
	if n := EstimateTokens(3500); n != 1000 {
		t.Errorf("3500 bytes are %d tokens", n)
	}
	m := Message{Role: Tool, Parts: []Part{{Result: &ToolResult{Content: json.RawMessage(`{"content":[{"type":"text","text":"hi"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}`)}}, {Image: &Image{}}}}
	if n := m.Tokens(); n < 2*imageTokens || n > 2*imageTokens+100 {
		t.Errorf("two pictures: %d", n)
	}
	m = Text(Assistant, "hi")
	m.Native = &Native{Data: make([]byte, 7000)}
	if n := m.Tokens(); n < 2000 {
		t.Errorf("native form: %d", n)
	}
	var g Gauge
	if g.Correct(100) != 100 {
		t.Error("a gauge that saw nothing must change nothing")
	}
	g.Observe(10, 1000) // too few tokens to be representative
	g.Observe(1000, 2000)
	if g.Correct(100) != 200 {
		t.Errorf("corrected to %d", g.Correct(100))
	}
	g.Observe(1000, 1000)
	if g.Correct(100) != 150 {
		t.Errorf("corrected to %d", g.Correct(100))
	}
	g.Observe(1000, 1_000_000)
	if g.Correct(100) > 300 {
		t.Errorf("one odd count moved it to %d", g.Correct(100))
	}
	if (Usage{1, 2, 3, 4}).Add(Usage{1, 1, 1, 1}) != (Usage{2, 3, 4, 5}) {
		t.Error("usage does not add up")
	}
}

func TestArguments(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, ` `: `{}`, `null`: `{}`, `""`: `{}`, `"{\"a\":1}"`: `{"a":1}`,
		`[1]`: "", `7`: "", `{"a"`: "", `"x"`: "", `"\q"`: "",
	} {
		got, ok := Arguments([]byte(in))
		if string(got) != want || ok != (want != "") {
			t.Errorf("%s: %s, %v", in, got, ok)
		}
	}
	var none *Toolset
	for name, want := range map[string]string{"9 lives!": "_9_lives_", "": "_", strings.Repeat("x", 100): strings.Repeat("x", 63), "ok-name_1": "ok-name_1"} {
		c, faithful := none.Call("1", name, nil)
		if c.Name != want || faithful != (name == want) {
			t.Errorf("%q became %q, faithful %v", name, c.Name, faithful)
		}
	}
	if c, _ := none.Call("1", "t", []byte(strings.Repeat("x", 1<<20))); len(c.Malformed) > maxMalformed {
		t.Errorf("kept %d bytes of nonsense", len(c.Malformed))
	}
	if none.Declared(tool.Name{Server: "a", Tool: "b"}) != "a__b" || none.qualified("x") != "x" || none.Tokens() != 0 {
		t.Error("an empty toolset must work")
	}
}

// TestCallNamesOnlyToolsOfSet checks that tools outside the set, which the
// translation also contains, are not found by any name and do not make names of
// the set ambiguous.
func TestCallNamesOnlyToolsOfSet(t *testing.T) {
	var defs []tool.Definition
	for _, n := range []string{"mine:echo", "mine:both", "more:both", "theirs:echo", "theirs:only_here"} {
		server, name, _ := strings.Cut(n, ":")
		d, err := tool.ParseDefinition(server, json.RawMessage(`{"name":"`+name+`","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		defs = append(defs, d)
	}
	set := NewToolset(provider.NewTools(defs, nil), []tool.Name{defs[2].Name, defs[1].Name, defs[0].Name})
	for called, want := range map[string]struct{ tool, name string }{
		"echo":              {"mine:echo", "mine__echo"},
		"mine:echo":         {"mine:echo", "mine__echo"},
		"mine__echo":        {"mine:echo", "mine__echo"},
		"both":              {":", "both"},
		"only_here":         {":", "only_here"},
		"theirs:only_here":  {":", "theirs_only_here"},
		"theirs__only_here": {":", "theirs__only_here"},
	} {
		c, _ := set.Call("1", called, []byte(`{"n":"7"}`))
		if c.Tool.String() != want.tool || c.Name != want.name || (string(c.Arguments) == `{"n":7}`) != (want.tool != ":") {
			t.Errorf("%s: tool %s, name %s, arguments %s; want %s, %s", called, c.Tool, c.Name, c.Arguments, want.tool, want.name)
		}
	}
}

func TestPromptedHistory(t *testing.T) {
	def, _ := tool.ParseDefinition("s", json.RawMessage(`{"name":"t","inputSchema":{"type":"object"}}`))
	f := &fake{answers: []any{Turn{Message: Message{Parts: []Part{{Reasoning: "hm"}, {Text: "```tool\n{bad\n```\n```tool\n{\"tool\":\"s:t\",\"arguments\":{}}{\"tool\":\"t\"}\n```"}}}, Stop: StopEnd}}}
	m := WithPromptTools(f)
	img := `{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"see"}]}`
	history := []Message{
		Text(User, "one"),
		{Role: Assistant, Parts: []Part{{Text: "text"}, call("1", "s__t"), {Call: &ToolCall{ID: "2", Name: "u", Malformed: "x ``` y"}}, {Call: &ToolCall{ID: "3", Name: "v", Tool: tool.Name{Server: "s", Tool: "t"}}}}},
		{Role: Tool, Parts: []Part{{Result: &ToolResult{CallID: "1", Name: "s__t", Content: json.RawMessage(img)}}, result("3", "r")}},
		{Role: User, Parts: []Part{{Text: "two"}, {Image: &Image{MIME: "image/png"}}}},
	}
	turn, err := Collect(m.Stream(t.Context(), Request{System: "base", Messages: history, Tools: ToolsetOf(def), Choice: Required, Only: "s__t", Single: true}), nil)
	if err != nil {
		t.Fatal(err)
	}
	// The first block cannot be parsed, and only one call is allowed.
	if calls := turn.Message.Calls(); len(calls) != 1 || calls[0].Malformed != "{bad" || !strings.Contains(calls[0].Problem, "is not a tool call") || turn.Stop != StopCalls {
		t.Errorf("calls %+v", turn.Message.Calls())
	}
	asked := f.asked[0]
	for _, want := range []string{"base", "Answer with a call of the tool s:t now.", "Call at most one tool.", "- s:t\n  arguments: {\"type\":\"object\"}"} {
		if !strings.Contains(asked.System, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, asked.System)
		}
	}
	if len(asked.Messages) != 3 || asked.Messages[2].Role != User || asked.Tools != nil {
		t.Fatalf("messages %+v", asked.Messages)
	}
	if got := asked.Messages[1].Text(); got != "text\n```tool\n{\"tool\":\"s__t\",\"arguments\":{}}\n```\n```tool\nx ''' y\n```\n```tool\n{\"tool\":\"s:t\",\"arguments\":{}}\n```\n" {
		t.Errorf("assistant: %q", got)
	}
	user := asked.Messages[2]
	if !strings.Contains(user.Text(), "Result of s__t:\n[image below]\nsee\n") || !strings.Contains(user.Text(), "Failure of u:") || !strings.HasSuffix(user.Text(), "two") {
		t.Errorf("user: %q", user.Text())
	}
	images := 0
	for _, p := range user.Parts {
		if p.Image != nil {
			images++
		}
	}
	if images != 2 {
		t.Errorf("%d pictures", images)
	}
	if p := compilePrompt(Request{Tools: ToolsetOf(def), Choice: Required}); !strings.Contains(p, "Answer with a tool call now.") {
		t.Error(p)
	}
	if p := compilePrompt(Request{Tools: ToolsetOf(def), Choice: None, Guidance: "g"}); p != "g" {
		t.Error(p)
	}
	f.answers = []any{errors.New("down")}
	if _, err := Collect(m.Stream(t.Context(), Request{}), nil); err == nil {
		t.Error("an error was lost")
	}
}

// TestPromptedJSONIsKept checks that the prompt contains schemas and calls
// without insignificant white space but otherwise unchanged.
func TestPromptedJSONIsKept(t *testing.T) {
	schema := `{"type":"object","properties":{"z":{"pattern":"^<a&b>$","maximum":9007199254740993},"a":{}}}`
	spaced := strings.ReplaceAll(schema, ",", " ,\n\t")
	def := tool.Definition{Name: tool.Name{Server: "s", Tool: "t"}, InputSchema: json.RawMessage(spaced)}
	if p := compilePrompt(Request{Tools: ToolsetOf(def)}); !strings.HasSuffix(p, "arguments: "+schema) {
		t.Errorf("the prompt has another schema: %s", p)
	}
	call := &ToolCall{Tool: def.Name, Arguments: json.RawMessage(`{"html":"<b>&</b>"}`)}
	if got, want := promptCall(call), "```tool\n{\"tool\":\"s:t\",\"arguments\":{\"html\":\"<b>&</b>\"}}\n```\n"; got != want {
		t.Errorf("the call is %q, want %q", got, want)
	}
}
