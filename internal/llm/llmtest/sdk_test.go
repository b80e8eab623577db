package llmtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	anthropicparam "github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"junctor/internal/llm/llmtest"
)

// got is a reply as parsed by an SDK.
type got struct {
	Text  string
	Calls []string // name + arguments
	Stop  string
	In    bool // usage arrived
}

// driver sends requests through one official SDK and builds the history of a
// tool loop itself.
type driver struct {
	name string
	ask  func(t *testing.T, url, user string, stream bool) (got, error)
	loop func(t *testing.T, url, user string) (string, error) // one whole tool loop, streaming
}

const schema = `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}}}`

func openAIOptions(url string) []option.RequestOption {
	return []option.RequestOption{option.WithBaseURL(url + "/v1"), option.WithAPIKey("sk-test"), option.WithMaxRetries(0)}
}

func chatBody(user string, more ...string) openai.ChatCompletionNewParams {
	var p openai.ChatCompletionNewParams
	u, _ := json.Marshal(user)
	msgs := append([]string{`{"role":"user","content":` + string(u) + `}`}, more...)
	param.SetJSON([]byte(`{"model":"gpt-test","stream_options":{"include_usage":true},"messages":[`+strings.Join(msgs, ",")+
		`],"tools":[{"type":"function","function":{"name":"calc__add","description":"adds","parameters":`+schema+`}}]}`), &p)
	return p
}

func chatDriver() driver {
	stream := func(url string, p openai.ChatCompletionNewParams) (openai.ChatCompletionAccumulator, error) {
		c := openai.NewChatCompletionService(openAIOptions(url)...)
		s := c.NewStreaming(context.Background(), p)
		var acc openai.ChatCompletionAccumulator
		for s.Next() {
			acc.AddChunk(s.Current())
		}
		return acc, s.Err()
	}
	read := func(c openai.ChatCompletion) got {
		m := c.Choices[0]
		g := got{Text: m.Message.Content, Stop: m.FinishReason, In: c.Usage.PromptTokens > 0}
		for _, tc := range m.Message.ToolCalls {
			g.Calls = append(g.Calls, tc.Function.Name+tc.Function.Arguments)
		}
		return g
	}
	return driver{
		name: llmtest.Chat,
		ask: func(t *testing.T, url, user string, streaming bool) (got, error) {
			if streaming {
				acc, err := stream(url, chatBody(user))
				if err != nil {
					return got{}, err
				}
				return read(acc.ChatCompletion), nil
			}
			c := openai.NewChatCompletionService(openAIOptions(url)...)
			res, err := c.New(context.Background(), chatBody(user))
			if err != nil {
				return got{}, err
			}
			return read(*res), nil
		},
		loop: func(t *testing.T, url, user string) (string, error) {
			acc, err := stream(url, chatBody(user))
			if err != nil {
				return "", err
			}
			m := acc.Choices[0].Message
			calls, _ := json.Marshal(m.ToolCalls)
			history := []string{fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":%s}`, rawCalls(calls))}
			for _, tc := range m.ToolCalls {
				history = append(history, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"3"}`, tc.ID))
			}
			acc, err = stream(url, chatBody(user, history...))
			if err != nil {
				return "", err
			}
			return acc.Choices[0].Message.Content, nil
		},
	}
}

// rawCalls returns the SDK's calls with only the fields that a request may
// have.
func rawCalls(b []byte) string {
	var in []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	json.Unmarshal(b, &in)
	var out []string
	for _, c := range in {
		args, _ := json.Marshal(c.Function.Arguments)
		out = append(out, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, c.ID, c.Function.Name, args))
	}
	return "[" + strings.Join(out, ",") + "]"
}

func responsesBody(user string, more ...string) responses.ResponseNewParams {
	var p responses.ResponseNewParams
	u, _ := json.Marshal(user)
	items := append([]string{`{"type":"message","role":"user","content":` + string(u) + `}`}, more...)
	param.SetJSON([]byte(`{"model":"gpt-test","store":false,"include":["reasoning.encrypted_content"],"input":[`+strings.Join(items, ",")+
		`],"tools":[{"type":"function","name":"calc__add","description":"adds","strict":false,"parameters":`+schema+`}]}`), &p)
	return p
}

func responsesDriver() driver {
	stream := func(url string, p responses.ResponseNewParams) (responses.Response, error) {
		c := responses.NewResponseService(openAIOptions(url)...)
		s := c.NewStreaming(context.Background(), p)
		var last responses.Response
		var text strings.Builder
		for s.Next() {
			switch e := s.Current(); e.Type {
			case "response.output_text.delta":
				text.WriteString(e.Delta)
			case "response.completed", "response.incomplete":
				last = e.Response
			case "response.failed":
				return last, fmt.Errorf("failed: %s", e.Response.Error.Message)
			}
		}
		if s.Err() == nil && last.OutputText() != text.String() {
			return last, fmt.Errorf("deltas %q, whole %q", text.String(), last.OutputText())
		}
		return last, s.Err()
	}
	read := func(r responses.Response) got {
		g := got{Text: r.OutputText(), Stop: string(r.Status), In: r.Usage.InputTokens > 0}
		for _, o := range r.Output {
			if o.Type == "function_call" {
				g.Calls = append(g.Calls, o.Name+o.Arguments.OfString)
			}
		}
		return g
	}
	return driver{
		name: llmtest.Responses,
		ask: func(t *testing.T, url, user string, streaming bool) (got, error) {
			if streaming {
				r, err := stream(url, responsesBody(user))
				return read(r), err
			}
			c := responses.NewResponseService(openAIOptions(url)...)
			r, err := c.New(context.Background(), responsesBody(user))
			if err != nil {
				return got{}, err
			}
			return read(*r), nil
		},
		loop: func(t *testing.T, url, user string) (string, error) {
			r, err := stream(url, responsesBody(user))
			if err != nil {
				return "", err
			}
			var items []string
			for _, o := range r.Output {
				items = append(items, o.RawJSON())
			}
			for _, o := range r.Output {
				if o.Type == "function_call" {
					items = append(items, fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"3"}`, o.CallID))
				}
			}
			r, err = stream(url, responsesBody(user, items...))
			return r.OutputText(), err
		},
	}
}

func anthropicBody(user string, more ...string) anthropic.MessageNewParams {
	var p anthropic.MessageNewParams
	u, _ := json.Marshal(user)
	msgs := append([]string{`{"role":"user","content":` + string(u) + `}`}, more...)
	anthropicparam.SetJSON([]byte(`{"model":"claude-test","max_tokens":100,"messages":[`+strings.Join(msgs, ",")+
		`],"tools":[{"name":"calc__add","description":"adds","input_schema":`+schema+`}]}`), &p)
	return p
}

func anthropicDriver() driver {
	client := func(url string) anthropic.Client {
		return anthropic.NewClient(anthropicoption.WithoutEnvironmentDefaults(), anthropicoption.WithBaseURL(url),
			anthropicoption.WithAPIKey("sk-test"), anthropicoption.WithMaxRetries(0))
	}
	stream := func(url string, p anthropic.MessageNewParams) (anthropic.Message, error) {
		c := client(url)
		s := c.Messages.NewStreaming(context.Background(), p)
		var m anthropic.Message
		for s.Next() {
			if err := m.Accumulate(s.Current()); err != nil {
				return m, err
			}
		}
		return m, s.Err()
	}
	read := func(m anthropic.Message) got {
		g := got{Stop: string(m.StopReason), In: m.Usage.InputTokens > 0}
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				g.Text += b.Text
			case "tool_use":
				g.Calls = append(g.Calls, b.Name+string(b.Input))
			}
		}
		return g
	}
	return driver{
		name: llmtest.Anthropic,
		ask: func(t *testing.T, url, user string, streaming bool) (got, error) {
			if streaming {
				m, err := stream(url, anthropicBody(user))
				return read(m), err
			}
			c := client(url)
			m, err := c.Messages.New(context.Background(), anthropicBody(user))
			if err != nil {
				return got{}, err
			}
			return read(*m), nil
		},
		loop: func(t *testing.T, url, user string) (string, error) {
			m, err := stream(url, anthropicBody(user))
			if err != nil {
				return "", err
			}
			assistant, _ := json.Marshal(m.ToParam())
			var results []string
			for _, b := range m.Content {
				if b.Type == "tool_use" {
					results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"3"}`, b.ID))
				}
			}
			m, err = stream(url, anthropicBody(user, string(assistant), `{"role":"user","content":[`+strings.Join(results, ",")+`]}`))
			return read(m).Text, err
		},
	}
}

func geminiDriver() driver {
	client := func(t *testing.T, url string) *genai.Client {
		c, err := genai.NewClient(context.Background(), &genai.ClientConfig{APIKey: "sk-test", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	var params any
	json.Unmarshal([]byte(schema), &params)
	config := func() *genai.GenerateContentConfig {
		return &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
			{Name: "calc__add", Description: "adds", ParametersJsonSchema: params}}}}}
	}
	read := func(parts []*genai.Part, g *got) {
		for _, p := range parts {
			if p.FunctionCall != nil {
				args, _ := json.Marshal(p.FunctionCall.Args)
				g.Calls = append(g.Calls, p.FunctionCall.Name+string(args))
			} else if !p.Thought {
				g.Text += p.Text
			}
		}
	}
	stream := func(t *testing.T, url string, contents []*genai.Content) (got, []*genai.Part, error) {
		var g got
		var parts []*genai.Part
		for r, err := range client(t, url).Models.GenerateContentStream(context.Background(), "gemini-3-test", contents, config()) {
			if err != nil {
				return g, parts, err
			}
			if c := r.Candidates[0]; c.Content != nil {
				parts = append(parts, c.Content.Parts...)
				read(c.Content.Parts, &g)
			}
			if f := r.Candidates[0].FinishReason; f != "" {
				g.Stop = string(f)
			}
			g.In = g.In || r.UsageMetadata != nil && r.UsageMetadata.PromptTokenCount > 0
		}
		return g, parts, nil
	}
	return driver{
		name: llmtest.Gemini,
		ask: func(t *testing.T, url, user string, streaming bool) (got, error) {
			contents := []*genai.Content{genai.NewContentFromText(user, genai.RoleUser)}
			if streaming {
				g, _, err := stream(t, url, contents)
				return g, err
			}
			r, err := client(t, url).Models.GenerateContent(context.Background(), "gemini-3-test", contents, config())
			if err != nil {
				return got{}, err
			}
			g := got{Stop: string(r.Candidates[0].FinishReason), In: r.UsageMetadata.PromptTokenCount > 0}
			if c := r.Candidates[0].Content; c != nil {
				read(c.Parts, &g)
			}
			return g, nil
		},
		loop: func(t *testing.T, url, user string) (string, error) {
			contents := []*genai.Content{genai.NewContentFromText(user, genai.RoleUser)}
			_, parts, err := stream(t, url, contents)
			if err != nil {
				return "", err
			}
			var results []*genai.Part
			for _, p := range parts {
				if p.FunctionCall != nil {
					results = append(results, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Response: map[string]any{"output": "3"}}})
				}
			}
			contents = append(contents, &genai.Content{Role: "model", Parts: parts}, &genai.Content{Role: "user", Parts: results})
			g, _, err := stream(t, url, contents)
			return g.Text, err
		},
	}
}

func drivers() []driver {
	return []driver{chatDriver(), responsesDriver(), anthropicDriver(), geminiDriver()}
}

func TestGoSDKsUnderstandResponses(t *testing.T) {
	script := llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{Match: `add (\d+) and (\d+)`, Results: llmtest.N(0)}, Reply: llmtest.Reply{
			Reasoning: "I should add those numbers.",
			Calls:     []llmtest.Call{{Tool: "calc:add", Args: json.RawMessage(`{"a":"=$1","b":"=$2"}`)}, {Tool: "add", Args: json.RawMessage(`{"a":0}`)}}}},
		{When: llmtest.When{User: "add", Results: llmtest.N(2)}, Reply: llmtest.Reply{Text: "It is {{result}}."}},
		{When: llmtest.When{User: "imagine"}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "no_such_tool"}}}},
		{When: llmtest.When{User: "endless"}, Reply: llmtest.Reply{Text: "la ", Repeat: 1000, Stop: "length"}},
		{When: llmtest.When{User: "forbidden"}, Reply: llmtest.Reply{Text: "I will not", Stop: "filter"}},
	}}
	for _, d := range drivers() {
		t.Run(d.name, func(t *testing.T) {
			s := llmtest.Start(t, script)
			stops := map[string][4]string{ // text, calls, length, filter
				llmtest.Chat:      {"stop", "tool_calls", "length", "content_filter"},
				llmtest.Responses: {"completed", "completed", "incomplete", "incomplete"},
				llmtest.Anthropic: {"end_turn", "tool_use", "max_tokens", "refusal"},
				llmtest.Gemini:    {"STOP", "STOP", "MAX_TOKENS", "SAFETY"},
			}[d.name]
			for _, stream := range []bool{true, false} {
				for user, want := range map[string]got{
					"grüß dich 😀": {Text: "You said: grüß dich 😀", Stop: stops[0], In: true},
					"add 1 and 2": {Calls: []string{`calc__add{"a":1,"b":2}`, `calc__add{"a":0}`}, Stop: stops[1], In: true},
					"imagine":     {Calls: []string{`no_such_tool{}`}, Stop: stops[1], In: true},
					"endless":     {Text: strings.Repeat("la ", 1000), Stop: stops[2], In: true},
					"forbidden":   {Text: "I will not", Stop: stops[3], In: true},
				} {
					g, err := d.ask(t, s.URL, user, stream)
					if err != nil {
						t.Errorf("stream %v, %q: %v", stream, user, err)
						continue
					}
					if fmt.Sprint(g) != fmt.Sprint(want) {
						t.Errorf("stream %v, %q: got %+v, want %+v", stream, user, g, want)
					}
				}
			}
			text, err := d.loop(t, s.URL, "add 1 and 2")
			if err != nil || text != "It is 3." {
				t.Errorf("loop: %q, %v", text, err)
			}
			last := s.Last()
			if len(last.Results()) != 2 || last.LastUser() != "add 1 and 2" || last.Tools[0].Name != "calc__add" || last.API != d.name {
				t.Errorf("recorded request: %+v", last)
			}
		})
	}
}

func TestScriptedFailuresReachSDKs(t *testing.T) {
	for _, d := range drivers() {
		t.Run(d.name, func(t *testing.T) {
			s := llmtest.Start(t, llmtest.Script{Key: "sk-test", Rules: []llmtest.Rule{
				{When: llmtest.When{User: "slow down"}, Reply: llmtest.Reply{Error: &llmtest.Failure{Status: 429, RetryAfter: "7"}}},
				{When: llmtest.When{User: "broken"}, Reply: llmtest.Reply{Error: &llmtest.Failure{Status: 500, Message: "boom"}}},
				{When: llmtest.When{User: "cut"}, Reply: llmtest.Reply{Text: strings.Repeat("x", 100), CutAfter: 3}},
				{When: llmtest.When{User: "overload"}, Reply: llmtest.Reply{Text: strings.Repeat("x", 100), BreakAfter: 3}},
			}})
			for user, want := range map[string]string{"slow down": "429", "broken": "500", "cut": "EOF", "overload": ""} {
				_, err := d.ask(t, s.URL, user, true)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want an error with %q", user, err, want)
				}
			}
			s.Replace(llmtest.Script{Key: "other"})
			if _, err := d.ask(t, s.URL, "hi", true); err == nil {
				t.Error("a wrong key was accepted")
			}
			s.Replace(llmtest.Script{Models: []string{"other"}})
			if _, err := d.ask(t, s.URL, "hi", true); err == nil {
				t.Error("an unknown model was accepted")
			}
			s.Replace(llmtest.Script{ContextWindow: 500})
			if _, err := d.ask(t, s.URL, strings.Repeat("long ", 1000), true); err == nil {
				t.Error("a prompt beyond the window was accepted")
			}
		})
	}
}
