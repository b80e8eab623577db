package provider

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	anthropicsdk "github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	openaisdk "github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	openairesponses "github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"junctor/internal/tool"
)

// sent starts a server that answers every request with answer, and returns its
// URL and the bodies of the requests. It stands in for the provider, to test
// that the official library sends our JSON without loss.
func sent(t *testing.T, answer string) (url string, bodies <-chan []byte) {
	t.Helper()
	got := make(chan []byte, 8)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- body
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(ts.Close)
	return ts.URL, got
}

// declared returns the declarations of the corpus.
func declared(t *testing.T, provider string, o Options) []json.RawMessage {
	t.Helper()
	var defs []tool.Definition
	for name, d := range corpus(t) {
		if name != "big-numbers" { // the libraries read numbers into 64-bit floats
			defs = append(defs, d)
		}
	}
	l, err := NewTools(defs, nil).Declare(provider, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	var list []json.RawMessage
	for _, d := range l.Declarations {
		list = append(list, d.JSON)
	}
	if len(list) < 60 {
		t.Fatalf("only %d declarations", len(list))
	}
	return list
}

// results returns a result of every kind in a provider's format.
func results(t *testing.T, provider string) []json.RawMessage {
	t.Helper()
	var list []json.RawMessage
	for _, raw := range []string{
		`{"content":[{"type":"text","text":"sunny"}]}`,
		`{"isError":true,"content":[{"type":"text","text":"no"}]}`,
		`{"content":[{"type":"text","text":"see"},{"type":"image","data":"` + png + `","mimeType":"image/png"}]}`,
		`{"content":[{"type":"resource","resource":{"uri":"a.pdf","mimeType":"application/pdf","blob":"` + pdf + `"}}]}`,
		`{"content":[],"structuredContent":{"a":[1,2]}}`,
	} {
		out, err := FormatResult(provider, Call{ID: "call_1", Name: "s__t"}, ReadResult(tool.Result{Raw: json.RawMessage(raw)}))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, out)
	}
	return list
}

// same checks that two lists have equal JSON values.
func same(t *testing.T, what string, got []json.RawMessage, want []json.RawMessage) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d arrived of %d", what, len(got), len(want))
	}
	for i := range got {
		g, errG := parseJSON(got[i])
		w, errW := parseJSON(want[i])
		if errG != nil || errW != nil || !equalJSON(g, w) {
			t.Errorf("%s: the library changed it\nsent    %s\narrived %s", what, want[i], got[i])
		}
	}
}

func decodeAll[T any](t *testing.T, list []json.RawMessage) []T {
	t.Helper()
	out := make([]T, len(list))
	for i, raw := range list {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&out[i]); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
	}
	return out
}

func arrived(t *testing.T, bodies <-chan []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(<-bodies, into); err != nil {
		t.Fatal(err)
	}
}

func TestOpenAISDK(t *testing.T) {
	url, bodies := sent(t, `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[]}`)
	client := openaisdk.NewClient(openaioption.WithBaseURL(url), openaioption.WithAPIKey("k"))
	for _, strict := range []bool{false, true} {
		want, replies := declared(t, XAI, Options{Strict: strict}), results(t, OpenAI)
		_, err := client.Chat.Completions.New(t.Context(), openaisdk.ChatCompletionNewParams{
			Model:    "m",
			Tools:    decodeAll[openaisdk.ChatCompletionToolUnionParam](t, want),
			Messages: decodeAll[openaisdk.ChatCompletionMessageParamUnion](t, replies),
		})
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Tools, Messages []json.RawMessage }
		arrived(t, bodies, &got)
		same(t, "tools", got.Tools, want)
		same(t, "messages", got.Messages, replies)
	}
}

func TestOpenAIResponsesSDK(t *testing.T) {
	url, bodies := sent(t, `{"id":"x","object":"response","created_at":1,"model":"m","output":[]}`)
	client := openaisdk.NewClient(openaioption.WithBaseURL(url), openaioption.WithAPIKey("k"))
	want, replies := declared(t, OpenAIResponses, Options{}), results(t, OpenAIResponses)
	_, err := client.Responses.New(t.Context(), openairesponses.ResponseNewParams{
		Model: "m",
		Tools: decodeAll[openairesponses.ToolUnionParam](t, want),
		Input: openairesponses.ResponseNewParamsInputUnion{OfInputItemList: decodeAll[openairesponses.ResponseInputItemUnionParam](t, replies)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Tools, Input []json.RawMessage }
	arrived(t, bodies, &got)
	same(t, "tools", got.Tools, want)
	same(t, "input", got.Input, replies)
}

func TestAnthropicSDK(t *testing.T) {
	url, bodies := sent(t, `{"id":"x","type":"message","role":"assistant","model":"m","content":[],"usage":{}}`)
	client := anthropicsdk.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("k"))
	want, replies := declared(t, Anthropic, Options{}), results(t, Anthropic)
	_, err := client.Messages.New(t.Context(), anthropicsdk.MessageNewParams{
		Model: "m", MaxTokens: 1,
		Tools:    decodeAll[anthropicsdk.ToolUnionParam](t, want),
		Messages: []anthropicsdk.MessageParam{{Role: "user", Content: decodeAll[anthropicsdk.ContentBlockParamUnion](t, replies)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tools    []json.RawMessage
		Messages []struct{ Content []json.RawMessage }
	}
	arrived(t, bodies, &got)
	same(t, "tools", got.Tools, want)
	same(t, "content", got.Messages[0].Content, replies)
}

func TestGeminiSDK(t *testing.T) {
	url, bodies := sent(t, `{"candidates":[]}`)
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range []string{JSONSchema, OpenAPISchema} {
		want, replies := declared(t, Gemini, Options{Schema: schema}), results(t, Gemini)
		_, err = client.Models.GenerateContent(t.Context(), "m",
			[]*genai.Content{{Role: "user", Parts: decodeAll[*genai.Part](t, replies)}},
			&genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: decodeAll[*genai.FunctionDeclaration](t, want)}}})
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Tools    []struct{ FunctionDeclarations []json.RawMessage }
			Contents []struct{ Parts []json.RawMessage }
		}
		arrived(t, bodies, &got)
		same(t, "declarations of "+schema, got.Tools[0].FunctionDeclarations, want)
		same(t, "parts", got.Contents[0].Parts, replies)
	}
}
