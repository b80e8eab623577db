package llmtest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"junctor/internal/llm/llmtest"
)

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(b)
}

// The script must reject what the services reject: a test that passes against a
// lenient model proves nothing.
func TestInvalidRequestsAreRefused(t *testing.T) {
	const (
		chat      = "/v1/chat/completions"
		responses = "/v1/responses"
		messages  = "/v1/messages"
		gemini3   = "/v1beta/models/gemini-3-x:generateContent"
		gemini2   = "/v1beta/models/gemini-2.5-x:generateContent"
	)
	user := `{"role":"user","content":"hi"}`
	called := `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"x","arguments":"{}"}}]}`
	use := `{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"x","input":{}}]}`
	gUser := `{"role":"user","parts":[{"text":"hi"}]}`
	gCall := `{"role":"model","parts":[{"functionCall":{"name":"x","args":{}}}]}`
	gAnswer := `{"role":"user","parts":[{"functionResponse":{"name":"x","response":{"output":"1"}}}]}`
	var many, twice []string
	for i := range 129 {
		many = append(many, fmt.Sprintf(`{"type":"function","function":{"name":"t%d","parameters":{"type":"object"}}}`, i))
	}
	for range 2 {
		twice = append(twice, `{"type":"function","function":{"name":"t","parameters":{"type":"object"}}}`)
	}
	for name, tt := range map[string]struct{ path, body, says string }{
		"not JSON":                     {chat, `{"model":`, "could not parse"},
		"wrong type":                   {chat, `{"model":1}`, "Invalid type"},
		"no model":                     {chat, `{"messages":[` + user + `]}`, "model"},
		"no messages":                  {chat, `{"model":"m","messages":[]}`, "messages"},
		"odd role":                     {chat, `{"model":"m","messages":[{"role":"boss","content":"x"}]}`, "Supported values"},
		"user without content":         {chat, `{"model":"m","messages":[{"role":"user"}]}`, "content"},
		"empty assistant":              {chat, `{"model":"m","messages":[` + user + `,{"role":"assistant","content":null}]}`, "content"},
		"call without answer":          {chat, `{"model":"m","messages":[` + user + `,` + called + `,` + user + `]}`, "tool_call_ids did not have"},
		"call without answer at end":   {chat, `{"model":"m","messages":[` + user + `,` + called + `]}`, "tool_call_ids did not have"},
		"answer without call":          {chat, `{"model":"m","messages":[` + user + `,{"role":"tool","tool_call_id":"9","content":"x"}]}`, "must be a response"},
		"picture in a tool message":    {chat, `{"model":"m","messages":[` + user + `,` + called + `,{"role":"tool","tool_call_id":"1","content":[{"type":"image_url"}]}]}`, "image_url"},
		"illegal name":                 {chat, `{"model":"m","messages":[` + user + `],"tools":[{"type":"function","function":{"name":"a.b","parameters":{}}}]}`, "pattern"},
		"illegal name in history":      {chat, `{"model":"m","messages":[` + user + `,` + strings.Replace(called, `"x"`, `"a b"`, 1) + `]}`, "pattern"},
		"call without id":              {chat, `{"model":"m","messages":[` + user + `,` + strings.Replace(called, `"1"`, `""`, 1) + `]}`, "id"},
		"no schema":                    {chat, `{"model":"m","messages":[` + user + `],"tools":[{"type":"function","function":{"name":"a"}}]}`, "schema"},
		"129 tools":                    {chat, `{"model":"m","messages":[` + user + `],"tools":[` + strings.Join(many, ",") + `]}`, "128"},
		"the same tool twice":          {chat, `{"model":"m","messages":[` + user + `],"tools":[` + strings.Join(twice, ",") + `]}`, "unique"},
		"choice without tools":         {chat, `{"model":"m","messages":[` + user + `],"tool_choice":"auto"}`, "tools"},
		"responses: wrong type":        {responses, `{"model":1}`, "Invalid type"},
		"responses: no model":          {responses, `{"input":"x"}`, "model"},
		"responses: no input":          {responses, `{"model":"m","input":[]}`, "input"},
		"responses: odd role":          {responses, `{"model":"m","input":[{"role":"boss","content":"x"}]}`, "role"},
		"responses: illegal name":      {responses, `{"model":"m","input":"x","tools":[{"type":"function","name":"a b","parameters":{}}]}`, "pattern"},
		"responses: no schema":         {responses, `{"model":"m","input":"x","tools":[{"type":"function","name":"a"}]}`, "schema"},
		"responses: no output":         {responses, `{"model":"m","input":[{"type":"function_call","call_id":"1","name":"x","arguments":"{}"}]}`, "No tool output"},
		"responses: no call":           {responses, `{"model":"m","input":[{"type":"function_call_output","call_id":"1","output":"x"}]}`, "No tool call"},
		"responses: bad call":          {responses, `{"model":"m","input":[{"type":"function_call","name":"x"}]}`, "function_call"},
		"responses: forged reasoning":  {responses, `{"model":"m","input":[{"type":"reasoning","id":"rs","encrypted_content":"forged"},{"type":"message","role":"user","content":"x"}]}`, "verified"},
		"responses: lost reasoning":    {responses, `{"model":"m","input":[{"type":"reasoning","id":"rs"}]}`, "not found"},
		"anthropic: wrong type":        {messages, `{"model":1}`, "cannot unmarshal"},
		"anthropic: no max_tokens":     {messages, `{"model":"m","messages":[` + user + `]}`, "max_tokens"},
		"anthropic: no model":          {messages, `{"max_tokens":1,"messages":[` + user + `]}`, "model"},
		"anthropic: no messages":       {messages, `{"max_tokens":1,"model":"m"}`, "at least one"},
		"anthropic: empty text":        {messages, `{"max_tokens":1,"model":"m","messages":[{"role":"user","content":""}]}`, "non-empty"},
		"anthropic: empty content":     {messages, `{"max_tokens":1,"model":"m","messages":[{"role":"user","content":[]}]}`, "non-empty"},
		"anthropic: odd role":          {messages, `{"max_tokens":1,"model":"m","messages":[{"role":"system","content":"x"}]}`, "role"},
		"anthropic: assistant first":   {messages, `{"max_tokens":1,"model":"m","messages":[{"role":"assistant","content":"x"}]}`, "first message"},
		"anthropic: result first":      {messages, `{"max_tokens":1,"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]}`, "unexpected"},
		"anthropic: no result":         {messages, `{"max_tokens":1,"model":"m","messages":[` + user + `,` + use + `,` + user + `]}`, "without `tool_result`"},
		"anthropic: no result at end":  {messages, `{"max_tokens":1,"model":"m","messages":[` + user + `,` + use + `]}`, "without `tool_result`"},
		"anthropic: result of nothing": {messages, `{"max_tokens":1,"model":"m","messages":[` + user + `,` + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"2"}]}]}`, "unexpected"},
		"anthropic: forged thinking":   {messages, `{"max_tokens":1,"model":"m","messages":[` + user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"forged"}]}]}`, "signature"},
		"anthropic: bad block":         {messages, `{"max_tokens":1,"model":"m","messages":[` + user + `,{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a.b","input":{}}]}]}`, "tool_use"},
		"anthropic: illegal name":      {messages, `{"max_tokens":1,"model":"m","messages":[` + user + `],"tools":[{"name":"a.b","input_schema":{"type":"object"}}]}`, "pattern"},
		"anthropic: schema type":       {messages, `{"max_tokens":1,"model":"m","messages":[` + user + `],"tools":[{"name":"a","input_schema":{}}]}`, "input_schema"},
		"anthropic: root oneOf":        {messages, `{"max_tokens":1,"model":"m","messages":[` + user + `],"tools":[{"name":"a","input_schema":{"type":"object","oneOf":[]}}]}`, "oneOf"},
		"anthropic: odd key":           {messages, `{"max_tokens":1,"model":"m","messages":[` + user + `],"tools":[{"name":"a","input_schema":{"type":"object","properties":{"a[b]":{}}}}]}`, "Property keys"},
		"gemini: wrong type":           {gemini3, `{"contents":1}`, "payload"},
		"gemini: no contents":          {gemini3, `{}`, "contents is not specified"},
		"gemini: odd role":             {gemini3, `{"contents":[{"role":"boss","parts":[{"text":"x"}]}]}`, "valid role"},
		"gemini: no parts":             {gemini3, `{"contents":[{"role":"user","parts":[]}]}`, "must not be empty"},
		"gemini: lost signature":       {gemini3, `{"contents":[` + gUser + `,` + gCall + `,` + gAnswer + `]}`, "missing a thought_signature"},
		"gemini: forged signature":     {gemini3, `{"contents":[` + gUser + `,{"role":"model","parts":[{"functionCall":{"name":"x"},"thoughtSignature":"forged"}]},` + gAnswer + `]}`, "not valid"},
		"gemini: no answer":            {gemini2, `{"contents":[` + gUser + `,` + gCall + `,` + gUser + `]}`, "number of function response"},
		"gemini: no answer at end":     {gemini2, `{"contents":[` + gUser + `,` + gCall + `]}`, "function call turn"},
		"gemini: answer to nothing":    {gemini2, `{"contents":[` + gUser + `,` + gAnswer + `]}`, "immediately after"},
		"gemini: answer to another":    {gemini2, `{"contents":[` + gUser + `,` + gCall + `,{"role":"user","parts":[{"functionResponse":{"name":"y","response":{}}}]}]}`, "immediately after"},
		"gemini: answer not an object": {gemini2, `{"contents":[` + gUser + `,` + gCall + `,{"role":"user","parts":[{"functionResponse":{"name":"x","response":[]}}]}]}`, "must be an object"},
		"gemini: illegal name":         {gemini2, `{"contents":[` + gUser + `],"tools":[{"functionDeclarations":[{"name":"9","description":"d"}]}]}`, "Invalid function name"},
		"gemini: name in history":      {gemini2, `{"contents":[` + gUser + `,{"role":"model","parts":[{"functionCall":{"name":"a b"}}]}]}`, "Invalid function name"},
		"gemini: no description":       {gemini2, `{"contents":[` + gUser + `],"tools":[{"functionDeclarations":[{"name":"a"}]}]}`, "description"},
	} {
		t.Run(name, func(t *testing.T) {
			s := llmtest.Start(t, llmtest.Script{})
			status, body := post(t, s.URL+tt.path, tt.body)
			if status != http.StatusBadRequest || !strings.Contains(body, tt.says) {
				t.Errorf("%d: %s; want 400 with %q", status, body, tt.says)
			}
		})
	}
	t.Run("accepted", func(t *testing.T) {
		s := llmtest.Start(t, llmtest.Script{})
		skip := strings.Replace(gCall, `"functionCall"`, `"thoughtSignature":"skip_thought_signature_validator","functionCall"`, 1)
		for path, body := range map[string]string{
			gemini3:   `{"contents":[` + gUser + `,` + skip + `,` + gAnswer + `],"systemInstruction":{"parts":[{"text":"s"}]}}`,
			gemini2:   `{"contents":[` + gUser + `,` + gCall + `,` + gAnswer + `]}`,
			responses: `{"model":"m","input":"hi","tools":[{"type":"namespace","name":"mcp__junctor","tools":[{"type":"function","name":"search"}]}]}`,
			chat:      `{"model":"m","messages":[{"role":"system","content":"s"},` + user + `]}`,
			messages:  `{"max_tokens":1,"model":"m","system":"s","messages":[` + user + `]}`,
		} {
			if status, got := post(t, s.URL+path, body); status != 200 {
				t.Errorf("%s: %d %s", path, status, got)
			}
		}
	})
}

func TestLookupAcceptsClientSpecificNames(t *testing.T) {
	r := llmtest.Request{Tools: []llmtest.Tool{{Name: "mcp__junctor__search_tools"}, {Namespace: "mcp__junctor", Name: "execute_tool"}, {Name: "fs__read_file_1a2b3c4d"}}}
	for name, want := range map[string]string{
		"search_tools": "mcp__junctor__search_tools", "junctor:search_tools": "mcp__junctor__search_tools",
		"junctor:execute_tool": "execute_tool", "execute_tool": "execute_tool", "nothing": "",
	} {
		if got, _ := r.Lookup(name); got.Name != want {
			t.Errorf("Lookup(%q) = %q, want %q", name, got.Name, want)
		}
	}
}

func TestParseScript(t *testing.T) {
	for name, tt := range map[string]struct{ in, says string }{
		"good":          {`{"rules":[{"when":{"user":"a"},"reply":{"text":"b"}}],"default":{"text":"c"}}`, ""},
		"unknown field": {`{"rulez":[]}`, "rulez"},
		"bad match":     {`{"rules":[{"when":{"match":"("},"reply":{}}]}`, "match"},
		"no tool":       {`{"rules":[{"when":{},"reply":{"calls":[{}]}}]}`, "names no tool"},
		"no failure":    {`{"rules":[{"when":{},"reply":{"error":{"status":200}}}]}`, "not a failure"},
	} {
		_, err := llmtest.ParseScript([]byte(tt.in))
		if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestModelListings(t *testing.T) {
	s := llmtest.Start(t, llmtest.Script{})
	for path, want := range map[string]string{"/api/tags": `"name":"scripted"`, "/v1beta/models": `"models/scripted"`, "/v1/models": `"id":"scripted"`, "/nothing": "not found"} {
		res, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if !strings.Contains(string(b), want) {
			t.Errorf("%s: %s", path, b)
		}
	}
	for path, want := range map[string]string{"/v1/messages/count_tokens": "input_tokens", "/v1beta/models/m:countTokens": "totalTokens", "/nothing": "not found"} {
		if _, body := post(t, s.URL+path, `{}`); !strings.Contains(body, want) {
			t.Errorf("%s: %s", path, body)
		}
	}
}

func TestWhenMatchesEveryField(t *testing.T) {
	s := llmtest.Start(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{System: "pirate"}, Reply: llmtest.Reply{Text: "Arr, {{model}}"}},
		{When: llmtest.When{Tool: "x", Result: "42"}, Reply: llmtest.Reply{Text: "{{results}} of {{tools}}"}},
		{When: llmtest.When{Model: "other", API: llmtest.Chat}, Reply: llmtest.Reply{Text: "other"}},
		{When: llmtest.When{History: "long ago"}, Reply: llmtest.Reply{Text: "I remember"}},
		{When: llmtest.When{User: "once"}, Times: 1, Reply: llmtest.Reply{Text: "once"}},
	}, Default: &llmtest.Reply{Text: "default"}})
	ask := func(model, messages string) string {
		_, body := post(t, s.URL+"/v1/chat/completions", `{"model":"`+model+`","messages":[`+messages+`],"tools":[{"type":"function","function":{"name":"x","parameters":{}}}]}`)
		var out struct {
			Choices []struct {
				Message struct {
					Content string `json:"content"`
				} `json:"message"`
			} `json:"choices"`
		}
		json.Unmarshal([]byte(body), &out)
		return out.Choices[0].Message.Content
	}
	u := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	for _, tt := range [][3]string{
		{"m", `{"role":"system","content":"a pirate"},` + u("hi"), "Arr, m"},
		{"m", u("hi") + `,{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"x","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"42"}`, "42 of x"},
		{"other", u("hi"), "other"},
		{"m", u("long ago") + `,` + u("hi"), "I remember"},
		{"m", u("once"), "once"},
		{"m", u("once"), "default"},
	} {
		if got := ask(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%s: %q, want %q", tt[1], got, tt[2])
		}
	}
}
