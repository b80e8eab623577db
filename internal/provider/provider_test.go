package provider

import (
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"junctor/internal/tool"
)

// callForms are calls as the providers' APIs and libraries return them.
var callForms = []struct {
	name, provider, call string
	id, called, args     string
}{
	{"openai", OpenAI, `{"id":"call_1","type":"function","function":{"name":"a__b","arguments":"{\"x\":1}"}}`, "call_1", "a__b", `"{\"x\":1}"`},
	{"openai without type", OpenAI, `{"id":"c","function":{"name":"n","arguments":""}}`, "c", "n", `""`},
	{"responses", OpenAIResponses, `{"type":"function_call","id":"fc_1","call_id":"call_2","name":"n","arguments":"{}"}`, "call_2", "n", `"{}"`},
	{"responses without type", OpenAIResponses, `{"call_id":"call_2","name":"n","arguments":"{}"}`, "call_2", "n", `"{}"`},
	{"gemini part", Gemini, `{"functionCall":{"name":"n","args":{"x":1}},"thoughtSignature":"abc"}`, "", "n", `{"x":1}`},
	{"gemini part with id", Gemini, `{"functionCall":{"id":"7","name":"n"}}`, "7", "n", ``},
	{"gemini in snake case", Gemini, `{"function_call":{"name":"n","args":{}}}`, "", "n", `{}`},
	{"gemini bare, as in the seed", Gemini, `{"name":"query_nodes","args":{"query":"tasks"}}`, "", "query_nodes", `{"query":"tasks"}`},
	{"anthropic", Anthropic, `{"type":"tool_use","id":"toolu_1","name":"n","input":{"x":1}}`, "toolu_1", "n", `{"x":1}`},
	{"bedrock", Bedrock, `{"toolUse":{"toolUseId":"t1","name":"n","input":{"x":1}}}`, "t1", "n", `{"x":1}`},
	{"bedrock bare", Bedrock, `{"toolUseId":"t1","name":"n","input":{}}`, "t1", "n", `{}`},
	{"ollama", Ollama, `{"function":{"name":"n","arguments":{"x":1}}}`, "", "n", `{"x":1}`},
	{"ollama with id", Ollama, `{"id":"call_9","function":{"index":0,"name":"n","arguments":{}}}`, "call_9", "n", `{}`},
}

func TestReadCall(t *testing.T) {
	for _, tt := range callForms {
		t.Run(tt.name, func(t *testing.T) {
			for _, named := range []string{"", tt.provider} {
				provider, c, err := ReadCall(named, json.RawMessage(tt.call))
				if err != nil {
					t.Fatalf("ReadCall(%q): %v", named, err)
				}
				if provider != tt.provider || c.ID != tt.id || c.Name != tt.called || string(c.Arguments) != tt.args {
					t.Errorf("ReadCall(%q) = %s, %+v (%s)", named, provider, c, c.Arguments)
				}
			}
		})
	}
	t.Run("xai is openai's form", func(t *testing.T) {
		provider, _, err := ReadCall(XAI, json.RawMessage(callForms[0].call))
		if err != nil || provider != XAI {
			t.Errorf("ReadCall = %q, %v", provider, err)
		}
	})
}

func TestReadCallRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		provider, call string
		kind           tool.Kind
		says           string
	}{
		"not JSON":             {"", `{`, tool.ParseFailed, "not JSON"},
		"an array":             {"", `[]`, tool.InvalidRequest, "not an object"},
		"nothing to tell by":   {"", `{"name":"n","arguments":"{}"}`, tool.InvalidRequest, "name it in provider"},
		"empty":                {"", `{}`, tool.InvalidRequest, "name it in provider"},
		"no name":              {"", `{"type":"tool_use","id":"x","input":{}}`, tool.InvalidRequest, "no name"},
		"unknown provider":     {"acme", `{"name":"n"}`, tool.InvalidRequest, "use one of gemini"},
		"another's":            {OpenAI, `{"type":"tool_use","id":"x","name":"n","input":{}}`, tool.InvalidRequest, "one of anthropic"},
		"responses to chat":    {OpenAI, `{"type":"function_call","call_id":"x","name":"n","arguments":"{}"}`, tool.InvalidRequest, "one of openai-responses"},
		"chat to responses":    {OpenAIResponses, callForms[0].call, tool.InvalidRequest, "one of openai"},
		"anthropic to gemini":  {Gemini, `{"type":"tool_use","id":"x","name":"n","input":{}}`, tool.InvalidRequest, "one of anthropic"},
		"bedrock to gemini":    {Gemini, `{"toolUseId":"x","name":"n","input":{}}`, tool.InvalidRequest, "one of bedrock"},
		"arguments to gemini":  {Gemini, `{"name":"n","arguments":"{}"}`, tool.InvalidRequest, "as its API returned it"},
		"openai to anthropic":  {Anthropic, callForms[0].call, tool.InvalidRequest, "one of openai"},
		"anthropic to bedrock": {Bedrock, `{"type":"tool_use","id":"x","name":"n","input":{}}`, tool.InvalidRequest, "one of anthropic"},
		"anthropic to ollama":  {Ollama, `{"type":"tool_use","id":"x","name":"n","input":{}}`, tool.InvalidRequest, "one of anthropic"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := ReadCall(tt.provider, json.RawMessage(tt.call))
			if tool.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("ReadCall = %v, want %s with %q", err, tt.kind, tt.says)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	for in, want := range map[string]string{"Claude": Anthropic, "google": Gemini, "grok": XAI, "responses": OpenAIResponses, " bedrock ": Bedrock} {
		if got, err := Lookup(in); err != nil || got != want {
			t.Errorf("Lookup(%q) = %q, %v", in, got, err)
		}
	}
	if _, err := Lookup("nobody"); tool.KindOf(err) != tool.InvalidRequest {
		t.Errorf("Lookup(nobody) = %v", err)
	}
	if _, err := FormatResult("nobody", Call{}, Content{}); err == nil {
		t.Error("FormatResult(nobody) succeeded")
	}
	for name, want := range map[string]int{OpenAI: 128, OpenAIResponses: 128, XAI: 200, Gemini: 512, Anthropic: 0, "nobody": 0} {
		if got := Limit(name); got != want {
			t.Errorf("Limit(%s) = %d, want %d", name, got, want)
		}
	}
}

const (
	png = "iVBORw0KGgo="
	pdf = "JVBERi0xLjQK"
)

func TestPlainBase64(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"QUJD":                        "QUJD",
		"QUI=":                        "QUI=",
		"QUI":                         "QUI=",
		"QQ":                          "QQ==",
		"QQ=":                         "QQ==",
		"Q":                           "",
		"_-_-":                        "/+/+",
		"QU\r\nJD ":                   "QUJD",
		"data:text/plain;base64,QUJD": "QUJD",
		"data:text/plain,QUJD":        "",
		"no base64!":                  "",
		"QU=JD":                       "",
		"é":                           "",
	} {
		if got := plainBase64(in); got != want {
			t.Errorf("plainBase64(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestLargeImages checks that an image larger than the provider accepts is
// replaced, because it would end the conversation.
func TestLargeImages(t *testing.T) {
	raw := `{"content":[{"type":"image","mimeType":"image/png","data":"iVBORw0KGgoA` + strings.Repeat("AAAA", maxImage/4) + `"}]}`
	content := ReadResult(tool.Result{Raw: json.RawMessage(raw)})
	for provider, fits := range map[string]bool{Anthropic: false, Bedrock: false, OpenAIResponses: true, Gemini: true} {
		got, err := FormatResult(provider, Call{ID: "i", Name: "n"}, content)
		if err != nil || (len(got) > maxImage) != fits || !fits && !strings.Contains(string(got), "3.8 MB: cannot be shown") {
			t.Errorf("%s: %d bytes, %v; does it fit: %v", provider, len(got), err, fits)
		}
	}
}

func TestResults(t *testing.T) {
	for name, tt := range map[string]struct {
		result string
		want   map[string]string
	}{
		"text": {`{"content":[{"type":"text","text":"sunny"}]}`, map[string]string{
			OpenAI:          `{"role":"tool","tool_call_id":"id1","content":"sunny"}`,
			XAI:             `{"role":"tool","tool_call_id":"id1","content":"sunny"}`,
			OpenAIResponses: `{"type":"function_call_output","call_id":"id1","output":"sunny"}`,
			Gemini:          `{"functionResponse":{"id":"id1","name":"s__t","response":{"output":"sunny"}}}`,
			Anthropic:       `{"type":"tool_result","tool_use_id":"id1","content":[{"type":"text","text":"sunny"}]}`,
			Ollama:          `{"role":"tool","tool_name":"s__t","tool_call_id":"id1","content":"sunny"}`,
			Bedrock:         `{"toolResult":{"toolUseId":"id1","content":[{"text":"sunny"}],"status":"success"}}`,
		}},
		"failure": {`{"isError":true,"content":[{"type":"text","text":"no such city"}]}`, map[string]string{
			OpenAI:          `{"role":"tool","tool_call_id":"id1","content":"Error: no such city"}`,
			OpenAIResponses: `{"type":"function_call_output","call_id":"id1","output":"Error: no such city"}`,
			Gemini:          `{"functionResponse":{"id":"id1","name":"s__t","response":{"error":"no such city"}}}`,
			Anthropic:       `{"type":"tool_result","tool_use_id":"id1","content":[{"type":"text","text":"no such city"}],"is_error":true}`,
			Ollama:          `{"role":"tool","tool_name":"s__t","tool_call_id":"id1","content":"Error: no such city"}`,
			Bedrock:         `{"toolResult":{"toolUseId":"id1","content":[{"text":"no such city"}],"status":"error"}}`,
		}},
		"failure that begins like the mark": {`{"isError":true,"content":[{"type":"text","text":"error opening x"}]}`, map[string]string{
			OpenAI:          `{"role":"tool","tool_call_id":"id1","content":"Error: error opening x"}`,
			OpenAIResponses: `{"type":"function_call_output","call_id":"id1","output":"Error: error opening x"}`,
			Ollama:          `{"role":"tool","tool_name":"s__t","tool_call_id":"id1","content":"Error: error opening x"}`,
		}},
		"failure with the mark": {`{"isError":true,"content":[{"type":"text","text":"Error: no such city"}]}`, map[string]string{
			OpenAI: `{"role":"tool","tool_call_id":"id1","content":"Error: no such city"}`,
		}},
		"silent failure": {`{"isError":true,"content":[]}`, map[string]string{
			OpenAI:    `{"role":"tool","tool_call_id":"id1","content":"Error: the tool failed without saying why"}`,
			Gemini:    `{"functionResponse":{"id":"id1","name":"s__t","response":{"error":"Error: the tool failed without saying why"}}}`,
			Anthropic: `{"type":"tool_result","tool_use_id":"id1","content":[{"type":"text","text":"Error: the tool failed without saying why"}],"is_error":true}`,
			Bedrock:   `{"toolResult":{"toolUseId":"id1","content":[{"text":"Error: the tool failed without saying why"}],"status":"error"}}`,
		}},
		"image": {`{"content":[{"type":"text","text":"look"},{"type":"image","data":"` + png + `","mimeType":"image/png"}]}`, map[string]string{
			OpenAI:          `{"role":"tool","tool_call_id":"id1","content":"look\n[image image/png, 9 bytes: cannot be shown here]"}`,
			OpenAIResponses: `{"type":"function_call_output","call_id":"id1","output":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,` + png + `","detail":"auto"}]}`,
			Gemini:          `{"functionResponse":{"id":"id1","name":"s__t","response":{"output":"look"},"parts":[{"inlineData":{"mimeType":"image/png","data":"` + png + `"}}]}}`,
			Anthropic:       `{"type":"tool_result","tool_use_id":"id1","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}]}`,
			Ollama:          `{"role":"tool","tool_name":"s__t","tool_call_id":"id1","content":"look","images":["` + png + `"]}`,
			Bedrock:         `{"toolResult":{"toolUseId":"id1","content":[{"text":"look"},{"image":{"format":"png","source":{"bytes":"` + png + `"}}}],"status":"success"}}`,
		}},
		"failed with an image": {`{"isError":true,"content":[{"type":"image","data":"` + png + `","mimeType":"image/png"}]}`, map[string]string{
			OpenAIResponses: `{"type":"function_call_output","call_id":"id1","output":[{"type":"input_text","text":"Error:"},{"type":"input_image","image_url":"data:image/png;base64,` + png + `","detail":"auto"}]}`,
			Anthropic:       `{"type":"tool_result","tool_use_id":"id1","content":[{"type":"text","text":"[image image/png, 9 bytes: cannot be shown here]"}],"is_error":true}`,
			Bedrock:         `{"toolResult":{"toolUseId":"id1","content":[{"text":"[image image/png, 9 bytes: cannot be shown here]"}],"status":"error"}}`,
		}},
		"failed with a text and an image": {`{"isError":true,"content":[{"type":"text","text":"ERROR 7"},{"type":"image","data":"` + png + `","mimeType":"image/png"}]}`, map[string]string{
			OpenAIResponses: `{"type":"function_call_output","call_id":"id1","output":[{"type":"input_text","text":"Error: ERROR 7"},{"type":"input_image","image_url":"data:image/png;base64,` + png + `","detail":"auto"}]}`,
		}},
		"an image under the wrong type": {`{"content":[{"type":"image","data":"` + png + `","mimeType":"image/jpg"}]}`, map[string]string{
			Anthropic: `{"type":"tool_result","tool_use_id":"id1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}]}`,
			Bedrock:   `{"toolResult":{"toolUseId":"id1","content":[{"image":{"format":"png","source":{"bytes":"` + png + `"}}}],"status":"success"}}`,
		}},
		"what is no image": {`{"content":[{"type":"image","data":"aGVsbG8=","mimeType":"image/png"},{"type":"resource","resource":{"uri":"x","mimeType":"application/pdf","blob":"aGVsbG8="}}]}`, map[string]string{
			Anthropic: `{"type":"tool_result","tool_use_id":"id1","content":[{"type":"text","text":"[image image/png, 6 bytes: cannot be shown here]\n[file application/pdf x, 6 bytes: cannot be shown here]"}]}`,
		}},
		"base64 in other clothes": {`{"content":[{"type":"image","data":"data:image/png;base64,iVBO\nRw0K\r\nGgo","mimeType":"image/png"}]}`, map[string]string{
			Ollama: `{"role":"tool","tool_name":"s__t","tool_call_id":"id1","content":"","images":["` + png + `"]}`,
		}},
		"pdf": {`{"content":[{"type":"resource","resource":{"uri":"file:///a/report_1.pdf","mimeType":"application/pdf","blob":"` + pdf + `"}}]}`, map[string]string{
			OpenAI:          `{"role":"tool","tool_call_id":"id1","content":"[file application/pdf file:///a/report_1.pdf, 9 bytes: cannot be shown here]"}`,
			OpenAIResponses: `{"type":"function_call_output","call_id":"id1","output":[{"type":"input_file","filename":"report_1.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}]}`,
			Gemini:          `{"functionResponse":{"id":"id1","name":"s__t","response":{"output":""},"parts":[{"inlineData":{"mimeType":"application/pdf","data":"` + pdf + `"}}]}}`,
			Anthropic:       `{"type":"tool_result","tool_use_id":"id1","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + pdf + `"}}]}`,
			Bedrock:         `{"toolResult":{"toolUseId":"id1","content":[{"document":{"format":"pdf","name":"report-1-pdf","source":{"bytes":"` + pdf + `"}}}],"status":"success"}}`,
		}},
		"structured alone": {`{"content":[],"structuredContent":{"t": 21.50}}`, map[string]string{
			OpenAI:          `{"role":"tool","tool_call_id":"id1","content":"{\"t\":21.50}"}`,
			OpenAIResponses: `{"type":"function_call_output","call_id":"id1","output":"{\"t\":21.50}"}`,
			Gemini:          `{"functionResponse":{"id":"id1","name":"s__t","response":{"output":{"t":21.50}}}}`,
			Anthropic:       `{"type":"tool_result","tool_use_id":"id1","content":[{"type":"text","text":"{\"t\":21.50}"}]}`,
			Ollama:          `{"role":"tool","tool_name":"s__t","tool_call_id":"id1","content":"{\"t\":21.50}"}`,
			Bedrock:         `{"toolResult":{"toolUseId":"id1","content":[{"json":{"t":21.50}}],"status":"success"}}`,
		}},
		"structured and the same text": {`{"content":[{"type":"text","text":"{\"b\":1,\"a\":2}"}],"structuredContent":{"a":2,"b":1}}`, map[string]string{
			OpenAI:  `{"role":"tool","tool_call_id":"id1","content":"{\"b\":1,\"a\":2}"}`,
			Gemini:  `{"functionResponse":{"id":"id1","name":"s__t","response":{"output":{"a":2,"b":1}}}}`,
			Bedrock: `{"toolResult":{"toolUseId":"id1","content":[{"json":{"a":2,"b":1}}],"status":"success"}}`,
		}},
		"structured beside other text": {`{"content":[{"type":"text","text":"Two found."}],"structuredContent":{"n":2}}`, map[string]string{
			OpenAI:  `{"role":"tool","tool_call_id":"id1","content":"Two found."}`,
			Gemini:  `{"functionResponse":{"id":"id1","name":"s__t","response":{"output":"Two found.","structuredContent":{"n":2}}}}`,
			Bedrock: `{"toolResult":{"toolUseId":"id1","content":[{"text":"Two found."}],"status":"success"}}`,
		}},
		"JSON as text": {`{"content":[{"type":"text","text":" [1, 2] "}]}`, map[string]string{
			Gemini:  `{"functionResponse":{"id":"id1","name":"s__t","response":{"output":[1,2]}}}`,
			Bedrock: `{"toolResult":{"toolUseId":"id1","content":[{"text":" [1, 2] "}],"status":"success"}}`,
		}},
		"nothing": {`{"content":[]}`, map[string]string{
			OpenAI:    `{"role":"tool","tool_call_id":"id1","content":""}`,
			Gemini:    `{"functionResponse":{"id":"id1","name":"s__t","response":{"output":""}}}`,
			Anthropic: `{"type":"tool_result","tool_use_id":"id1","content":[]}`,
			Ollama:    `{"role":"tool","tool_name":"s__t","tool_call_id":"id1","content":""}`,
			Bedrock:   `{"toolResult":{"toolUseId":"id1","content":[{"text":"(no content)"}],"status":"success"}}`,
		}},
		"audio, links, unknown and broken blocks": {`{"content":[{"type":"audio","data":"` + png + `","mimeType":"audio/wav"},{"type":"resource_link","uri":"file:///x","name":"x","mimeType":"text/plain"},{"type":"resource","resource":{"uri":"file:///y","text":"inside"}},{"type":"hologram","z":1},{"type":"image","data":"no base64!","mimeType":"image/png"},7]}`, map[string]string{
			OpenAI: `{"role":"tool","tool_call_id":"id1","content":"[audio audio/wav, 9 bytes: cannot be shown here]\n[resource file:///x, x, text/plain]\ninside\n{\"type\":\"hologram\",\"z\":1}\n[image image/png: not shown, its data is not base64]\n7"}`,
		}},
		"an image as a resource":        {`{"content":[{"type":"resource","resource":{"uri":"a/b.png","mimeType":"image/png","blob":"` + png + `"}}]}`, map[string]string{Ollama: `{"role":"tool","tool_name":"s__t","tool_call_id":"id1","content":"","images":["` + png + `"]}`}},
		"an image that nobody takes":    {`{"content":[{"type":"image","mimeType":"image/tiff","data":"` + strings.Repeat("AAAA", 600) + `"}]}`, map[string]string{Anthropic: `{"type":"tool_result","tool_use_id":"id1","content":[{"type":"text","text":"[image image/tiff, 1 kB: cannot be shown here]"}]}`}},
		"the result of an old server":   {`{"toolResult":{"ok":true}}`, map[string]string{OpenAI: `{"role":"tool","tool_call_id":"id1","content":"{\"ok\":true}"}`}},
		"a result that is not a result": {`"odd"`, map[string]string{OpenAI: `{"role":"tool","tool_call_id":"id1","content":"\"odd\""}`}},
		"a document without a name":     {`{"content":[{"type":"resource","resource":{"uri":"","mimeType":"text/csv","blob":"` + png + `"}}]}`, map[string]string{Bedrock: `{"toolResult":{"toolUseId":"id1","content":[{"document":{"format":"csv","name":"document","source":{"bytes":"` + png + `"}}}],"status":"success"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			content := ReadResult(tool.Result{Raw: json.RawMessage(tt.result)})
			for provider, want := range tt.want {
				got, err := FormatResult(provider, Call{ID: "id1", Name: "s__t"}, content)
				if err != nil || string(got) != want {
					t.Errorf("%s:\ngot  %s (%v)\nwant %s", provider, got, err, want)
				}
			}
		})
	}
}

func TestResultWithoutID(t *testing.T) {
	got, _ := FormatResult(Gemini, Call{Name: "n"}, Content{Parts: []Part{{Kind: Text, Text: "x"}}})
	if want := `{"functionResponse":{"name":"n","response":{"output":"x"}}}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	got, _ = FormatResult(Ollama, Call{Name: "n"}, Content{})
	if want := `{"role":"tool","tool_name":"n","content":""}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestErrorContent(t *testing.T) {
	c := ErrorContent(&tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "m", Details: map[string]any{"url": "https://x/?a=1&b=2"}})
	if !strings.Contains(c.Text(), "https://x/?a=1&b=2") { // so that the model can show it to the user
		t.Errorf("got %q", c.Text())
	}
	c = ErrorContent(&tool.Error{Kind: tool.ToolNotFound, Msg: "no tool x", Details: map[string]any{"nearest": []string{"y"}}})
	if got, want := c.ErrorText(), `Error: TOOL_NOT_FOUND: no tool x {"nearest":["y"]}`; got != want || !c.IsError {
		t.Errorf("ErrorText = %q, want %q", got, want)
	}
	c = ErrorContent(&tool.Error{Kind: tool.Internal, Msg: "m", Details: func() {}})
	if got := c.Text(); got != "INTERNAL: m" {
		t.Errorf("Text = %q", got)
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int]string{5: "5 bytes", 2048: "2 kB", 3 << 20: "3.0 MB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}

// TestContentKeepsItsOrder checks that text and images keep their order.
func TestContentKeepsItsOrder(t *testing.T) {
	const png = `iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==`
	image := `{"type":"image","mimeType":"image/png","data":"` + png + `"}`
	content := ReadResult(tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"before"},` + image + `,{"type":"text","text":"a"},{"type":"text","text":"b"},` + image + `,{"type":"text","text":"after"}]}`)})
	for name, list := range map[string][]string{
		Anthropic: {"content"}, Bedrock: {"toolResult", "content"}, OpenAIResponses: {"output"},
	} {
		raw, err := FormatResult(name, Call{ID: "id1", Name: "s__t"}, content)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for block := range elementsAt(raw, list...) {
			text := "image"
			for _, word := range []string{"before", `a\nb`, "after"} {
				if strings.Contains(block, word) && !strings.Contains(block, png) {
					text = word
				}
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != `before image a\nb image after` {
			t.Errorf("%s: %q", name, got)
		}
	}
	// Providers with a separate list for media get markers in the text.
	for _, name := range []string{Gemini, Ollama} {
		raw, err := FormatResult(name, Call{ID: "id1", Name: "s__t"}, content)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), `"before\n[image 1]\na\nb\n[image 2]\nafter"`) || strings.Count(string(raw), png) != 2 {
			t.Errorf("%s: %s", name, raw)
		}
	}
}

// TestGeminiGetsNoTextTwice checks that text is not repeated for servers that
// send the same in content and structuredContent, for clients that read only
// one of them.
func TestGeminiGetsNoTextTwice(t *testing.T) {
	for result, want := range map[string]string{
		`{"content":[{"type":"text","text":"hello"}],"structuredContent":{"result":"hello"}}`:                                      `{"output":{"result":"hello"}}`,
		`{"content":[{"type":"text","text":"5"}],"structuredContent":{"result":5}}`:                                                `{"output":{"result":5}}`,
		`{"content":[{"type":"text","text":"{\"a\":1}"},{"type":"text","text":"x"}],"structuredContent":{"result":[{"a":1},"x"]}}`: `{"output":{"result":[{"a":1},"x"]}}`,
		`{"content":[{"type":"text","text":"Two found."}],"structuredContent":{"n":2}}`:                                            `{"output":"Two found.","structuredContent":{"n":2}}`,
	} {
		raw, err := FormatResult(Gemini, Call{Name: "s__t"}, ReadResult(tool.Result{Raw: json.RawMessage(result)}))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), `"response":`+want) {
			t.Errorf("%s becomes %s, want the response %s", result, raw, want)
		}
	}
}

// elementsAt yields the elements of the array at the path.
func elementsAt(raw json.RawMessage, path ...string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, key := range path {
			var o map[string]json.RawMessage
			_ = json.Unmarshal(raw, &o) // a missing key yields nothing
			raw = o[key]
		}
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for _, block := range list {
			if !yield(string(block)) {
				return
			}
		}
	}
}
