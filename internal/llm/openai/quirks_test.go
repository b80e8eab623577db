package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"junctor/internal/llm"
)

// serve answers every request with the same events and remembers the last
// request's body and header.
func serve(t *testing.T, lines ...string) (url string, body *string, header *http.Header) {
	t.Helper()
	body, header = new(string), new(http.Header)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		*body, *header = string(b), r.Header
		w.Header().Set("Content-Type", "text/event-stream")
		for _, l := range lines {
			fmt.Fprintf(w, "data: %s\n\n", l)
		}
	}))
	t.Cleanup(ts.Close)
	return ts.URL, body, header
}

func delta(s string) string { return `{"choices":[{"index":0,"delta":` + s + `}]}` }

const finish = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

func collect(t *testing.T, m *Model, messages ...llm.Message) llm.Turn {
	t.Helper()
	if messages == nil {
		messages = []llm.Message{llm.Text(llm.User, "hi")}
	}
	turn, err := llm.Collect(m.Stream(context.Background(), llm.Request{Messages: messages, CacheKey: "conversation"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

func TestToleratesServerDifferences(t *testing.T) {
	for name, tt := range map[string]struct {
		lines []string
		want  string // calls
		text  string
	}{
		"calls without index": {[]string{
			delta(`{"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}}]}`),
			delta(`{"tool_calls":[{"id":"b","function":{"name":"y","arguments":"{\"k\":"}}]}`),
			delta(`{"tool_calls":[{"function":{"arguments":"1}"}}]}`)}, `a x {} | b y {"k":1}`, ""},
		"every call with index 0": {[]string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}]}`)}, `a x {} | b y {}`, ""},
		"arguments as an object": {[]string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":{"k":1}}}]}`)}, `a x {"k":1}`, ""},
		"name repeated with each piece": {[]string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{"}}]}`),
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"}"}}]}`)}, `a x {}`, ""},
		"id after the first piece": {[]string{
			delta(`{"tool_calls":[{"index":0,"function":{"name":"x"}}]}`),
			delta(`{"tool_calls":[{"index":0,"id":"late","function":{"arguments":"{}"}}]}`)}, `late x {}`, ""},
		"text and null fields": {[]string{
			delta(`{"role":"assistant","content":null,"tool_calls":null}`), delta(`{"content":"a"}`), `{"choices":[]}`, delta(`{"content":"b"}`)}, "", "ab"},
		"refusal": {[]string{delta(`{"refusal":"I must not"}`)}, "", "I must not"},
	} {
		t.Run(name, func(t *testing.T) {
			url, _, _ := serve(t, append(tt.lines, finish, "[DONE]")...)
			turn := collect(t, New(llm.Config{Provider: llm.OpenAICompatible, Model: "m", BaseURL: url}, nil))
			var calls []string
			for _, c := range turn.Message.Calls() {
				calls = append(calls, c.ID+" "+c.Name+" "+string(c.Arguments))
			}
			if got := strings.Join(calls, " | "); got != tt.want || turn.Message.Text() != tt.text {
				t.Errorf("calls %q, text %q", got, turn.Message.Text())
			}
			if (turn.Stop == llm.StopCalls) != (len(calls) > 0) {
				t.Errorf("stop %q", turn.Stop)
			}
		})
	}
}

func TestCallWithoutAnyID(t *testing.T) {
	url, _, _ := serve(t, delta(`{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"{}"}}]}`), finish, "[DONE]")
	turn := collect(t, New(llm.Config{Provider: llm.OpenAICompatible, Model: "m", BaseURL: url}, nil))
	if id := turn.Message.Calls()[0].ID; !strings.HasPrefix(id, "call_") {
		t.Errorf("id %q", id)
	}
}

func TestCallsWithOneIDAreKeptApart(t *testing.T) {
	url, body, _ := serve(t, delta(`{"reasoning":"hm","tool_calls":[{"index":0,"id":"0","function":{"name":"x","arguments":"{}"}},{"index":1,"id":"0","function":{"name":"y","arguments":"{}"}}]}`), finish, "[DONE]")
	m := New(llm.Config{Provider: llm.OpenAICompatible, Model: "m", BaseURL: url}, nil)
	turn := collect(t, m)
	calls := turn.Message.Calls()
	if len(calls) != 2 || calls[0].ID == calls[1].ID {
		t.Fatalf("calls %+v", calls)
	}
	results := llm.Message{Role: llm.Tool, Parts: []llm.Part{{Result: llm.TextResult(calls[0], "first", false)}, {Result: llm.TextResult(calls[1], "second", false)}}}
	collect(t, m, llm.Text(llm.User, "hi"), turn.Message, results)
	for _, c := range calls { // in the call and in its result
		if strings.Count(*body, `"`+c.ID+`"`) != 2 {
			t.Errorf("the next request does not have %s twice: %s", c.ID, *body)
		}
	}
	if !strings.Contains(*body, "first") || !strings.Contains(*body, "second") {
		t.Errorf("the next request does not have both results: %s", *body)
	}
}

func TestCallCutOffBeforeArgumentsIsMalformed(t *testing.T) {
	for api, lines := range map[llm.API][]string{
		llm.ChatAPI: {delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":""}}]}`),
			`{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`, "[DONE]"},
		llm.ResponsesAPI: {`{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_1","call_id":"a","name":"x","arguments":"","status":"incomplete"}}`,
			`{"type":"response.incomplete","response":{"status":"incomplete","output":[],"incomplete_details":{"reason":"max_output_tokens"}}}`},
	} {
		url, _, _ := serve(t, lines...)
		turn := collect(t, New(llm.Config{Provider: llm.OpenAI, Model: "m", BaseURL: url, API: api}, nil))
		if calls := turn.Message.Calls(); len(calls) != 1 || calls[0].Malformed == "" || turn.Stop != llm.StopLength {
			t.Errorf("%s: %+v", api, turn)
		}
	}
}

func TestExtraFieldsComeBack(t *testing.T) {
	url, body, header := serve(t,
		delta(`{"content":"So.","reasoning":"think","reasoning_details":[{"type":"reasoning.text","index":0,"text":"think","format":"f"}]}`),
		delta(`{"reasoning":"ing","reasoning_details":[{"type":"reasoning.text","index":0,"text":"ing","signature":"sig"}]}`),
		delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}],"meta":{"a":{"text":"1"}}}`),
		delta(`{"meta":{"a":{"text":"2"},"b":null}}`),
		delta(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"x","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sign"}}}]}`),
		finish, "[DONE]")
	m := New(llm.Config{Provider: llm.XAI, Model: "m", BaseURL: url, Headers: map[string]string{"X-Own": "1"}}, nil)
	turn := collect(t, m)
	if turn.Message.Native == nil {
		t.Fatal("no native form")
	}
	call := turn.Message.Calls()[0]
	collect(t, m, llm.Text(llm.User, "hi"), turn.Message, llm.Message{Role: llm.Tool, Parts: []llm.Part{{Result: llm.TextResult(call, "r", false)}}})
	var sent struct {
		Messages []map[string]json.RawMessage `json:"messages"`
	}
	json.Unmarshal([]byte(*body), &sent)
	for field, want := range map[string]string{
		"reasoning":         `"thinking"`,
		"reasoning_details": `[{"format":"f","index":0,"signature":"sig","text":"thinking","type":"reasoning.text"},{"data":"x","type":"reasoning.encrypted"}]`,
		"tool_calls":        `[{"extra_content":{"google":{"thought_signature":"sign"}},"function":{"arguments":"{}","name":"x"},"id":"a","type":"function"}]`,
		"meta":              `{"a":{"text":"12"}}`,
		"content":           `"So."`,
	} {
		if got := string(sent.Messages[1][field]); got != want {
			t.Errorf("%s came back as %s, want %s", field, got, want)
		}
	}
	if header.Get("X-Grok-Conv-Id") != "conversation" || header.Get("X-Own") != "1" || header.Get("Authorization") != "Bearer none" {
		t.Errorf("headers %v", *header)
	}
	// Another model gets the neutral form.
	collect(t, New(llm.Config{Provider: llm.XAI, Model: "other", BaseURL: url}, nil), llm.Text(llm.User, "hi"), turn.Message)
	if strings.Contains(*body, "reasoning") || strings.Contains(*body, "extra_content") {
		t.Errorf("another model got %s", *body)
	}
}

func TestUserImages(t *testing.T) {
	msg := llm.Message{Role: llm.User, Parts: []llm.Part{{Text: "look"}, {Image: &llm.Image{MIME: "image/png", Data: []byte("p")}}}}
	url, body, _ := serve(t, delta(`{"content":"a"}`), finish, "[DONE]")
	collect(t, New(llm.Config{Provider: llm.OpenAI, Model: "m", BaseURL: url}, nil), msg)
	if !strings.Contains(*body, `{"image_url":{"url":"data:image/png;base64,cA=="},"type":"image_url"}`) {
		t.Errorf("sent %s", *body)
	}
	url, body, _ = serve(t, `{"type":"response.completed","response":{"status":"completed","output":[]}}`)
	collect(t, New(llm.Config{Provider: llm.OpenAI, Model: "m", BaseURL: url, API: llm.ResponsesAPI}, nil), msg, llm.Text(llm.Assistant, "nice"), llm.Text(llm.User, "go"))
	if !strings.Contains(*body, `"type":"input_image"`) || !strings.Contains(*body, `"type":"output_text"`) {
		t.Errorf("sent %s", *body)
	}
}

func TestResponsesEdgeCases(t *testing.T) {
	end := func(status, reason string) string {
		return `{"type":"response.` + status + `","response":{"status":"` + status + `","output":[],"incomplete_details":{"reason":"` + reason + `"}}}`
	}
	fn := `{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_1","call_id":"c","name":"x","arguments":"{}","status":"completed"}}`
	for name, tt := range map[string]struct {
		lines  []string
		stop   llm.Stop
		native string
		reason llm.Reason
	}{
		"refusal":           {[]string{`{"type":"response.refusal.delta","delta":"no"}`, end("completed", "")}, llm.StopFilter, "", ""},
		"length":            {[]string{end("incomplete", "max_output_tokens")}, llm.StopLength, "", ""},
		"unheard of":        {[]string{end("incomplete", "tired")}, llm.StopOther, "", ""},
		"nothing to keep":   {[]string{fn, end("completed", "")}, llm.StopCalls, "", ""},
		"reasoning in full": {[]string{`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e","status":"completed"}}`, fn, end("completed", "")}, llm.StopCalls, `[{"encrypted_content":"e","id":"rs_1","summary":[],"type":"reasoning"},{"arguments":"{}","call_id":"c","id":"fc_1","name":"x","type":"function_call"}]`, ""},
		"half encrypted": {[]string{`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null}}`,
			`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"e"}}`, fn, end("completed", "")}, llm.StopCalls, `[{"encrypted_content":"e","summary":[],"type":"reasoning"},{"arguments":"{}","call_id":"c","name":"x","type":"function_call"}]`, ""},
		"failed":     {[]string{`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}`}, "", "", llm.Broken},
		"error":      {[]string{`{"type":"error","code":"rate_limit","message":"overloaded"}`}, "", "", llm.Busy},
		"no end":     {[]string{`{"type":"response.created","response":{}}`}, "", "", llm.Broken},
		"no call id": {[]string{`{"type":"response.output_item.done","item":{"type":"function_call","name":"x","arguments":"{}"}}`, end("completed", "")}, llm.StopCalls, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			url, _, _ := serve(t, tt.lines...)
			m := New(llm.Config{Provider: llm.OpenAI, Model: "m", BaseURL: url, API: llm.ResponsesAPI}, nil)
			turn, err := llm.Collect(m.Stream(context.Background(), llm.Request{Messages: []llm.Message{llm.Text(llm.User, "hi")}}), nil)
			if llm.ReasonOf(err) != tt.reason || turn.Stop != tt.stop {
				t.Fatalf("stop %q, error %v", turn.Stop, err)
			}
			native := ""
			if turn.Message.Native != nil {
				native = string(turn.Message.Native.Data)
			}
			if native != tt.native {
				t.Errorf("native %s, want %s", native, tt.native)
			}
		})
	}
}

func TestStreamWithoutEndIsCutOff(t *testing.T) {
	url, _, _ := serve(t, delta(`{"content":"half"}`))
	m := New(llm.Config{Provider: llm.OpenAI, Model: "m", BaseURL: url}, nil)
	turn, err := llm.Collect(m.Stream(context.Background(), llm.Request{Messages: []llm.Message{llm.Text(llm.User, "hi")}}), nil)
	if llm.ReasonOf(err) != llm.CutOff || turn.Message.Text() != "half" {
		t.Errorf("%q, %v", turn.Message.Text(), err)
	}
}

func TestMentionsParameter(t *testing.T) {
	for _, tt := range []struct {
		text, name string
		want       bool
	}{
		{"Unknown parameter: 'stream_options'.", "stream_options", true},
		{"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens", true},
		{"max_tokens_total is odd", "max_tokens", false},
		{"the messages must include a user", "include", false},
		{"Unknown parameter: 'include'", "include", true},
		{"Encrypted content is not supported with this model.", "include", true},
		{"in store for you", "store", false},
	} {
		if got := mentionsParameter(tt.text, tt.name); got != tt.want {
			t.Errorf("mentionsParameter(%q, %q) = %v", tt.text, tt.name, got)
		}
	}
}

func TestOpenAIServerGetsExtraParameters(t *testing.T) {
	temperature := 0.3
	m := New(llm.Config{Provider: llm.OpenAI, Model: "gpt-5", MaxTokens: 9, Temperature: &temperature}, nil)
	body, err := m.chatBody(llm.Request{CacheKey: "k", MaxTokens: 5})
	if err != nil || body["max_completion_tokens"] != 5 || body["prompt_cache_key"] != "k" || body["temperature"] != 0.3 {
		t.Errorf("%v, %v", body, err)
	}
	m.refused["max_completion_tokens"] = true
	if body, _ = m.chatBody(llm.Request{}); body["max_tokens"] != 9 {
		t.Errorf("%v", body)
	}
}
