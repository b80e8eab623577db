package anthropic

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

func serve(t *testing.T, events ...string) (url string, body *string, header *http.Header) {
	t.Helper()
	body, header = new(string), new(http.Header)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		*body, *header = string(b), r.Header
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			var head struct {
				Type string `json:"type"`
			}
			json.Unmarshal([]byte(e), &head)
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", head.Type, e)
		}
	}))
	t.Cleanup(ts.Close)
	return ts.URL, body, header
}

func block(index int, start string, deltas ...string) []string {
	out := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, start)}
	for _, d := range deltas {
		out = append(out, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d))
	}
	return append(out, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
}

func reply(stop string, blocks ...[]string) []string {
	out := []string{`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"c","usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":1}}}`}
	for _, b := range blocks {
		out = append(out, b...)
	}
	return append(out, `{"type":"message_delta","delta":{"stop_reason":"`+stop+`"},"usage":{"input_tokens":20,"cache_read_input_tokens":6,"output_tokens":7}}`, `{"type":"message_stop"}`)
}

func collect(m *Model, messages ...llm.Message) (llm.Turn, error) {
	return llm.Collect(m.Stream(context.Background(), llm.Request{System: "s", Messages: messages}), nil)
}

func TestBlocksRoundTrip(t *testing.T) {
	url, body, header := serve(t, reply("tool_use",
		block(0, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"hm"}`, `{"type":"signature_delta","signature":"sig"}`),
		block(1, `{"type":"redacted_thinking","data":"opaque","new_field":1}`),
		block(2, `{"type":"text","text":"See "}`, `{"type":"text_delta","text":"this."}`, `{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}`),
		block(3, `{"type":"text","text":""}`),
		block(4, `{"type":"tool_use","id":"t1","name":"x","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"n\":12345678901234567890}"}`),
		block(5, `{"type":"tool_use","id":"t2","name":"x","input":{"whole":true}}`),
	)...)
	m := New(llm.Config{Provider: llm.Anthropic, Model: "c", BaseURL: url, APIKey: "token", Bearer: true, Headers: map[string]string{"X-Own": "1"}}, nil)
	turn, err := collect(m, llm.Message{Role: llm.User, Parts: []llm.Part{{Text: "look"}, {Image: &llm.Image{MIME: "image/png", Data: []byte("p")}}, {Text: " "}}})
	if err != nil {
		t.Fatal(err)
	}
	if header.Get("Authorization") != "Bearer token" || header.Get("X-Own") != "1" {
		t.Errorf("headers %v", *header)
	}
	if !strings.Contains(*body, `"media_type":"image/png"`) || !strings.Contains(*body, `"system":[{"cache_control":{"type":"ephemeral"},"text":"s","type":"text"}]`) {
		t.Errorf("sent %s", *body)
	}
	if turn.Message.Text() != "See this." || turn.Stop != llm.StopCalls || turn.Usage != (llm.Usage{Input: 26, Cached: 6, Output: 7}) {
		t.Errorf("text %q, stop %s, usage %+v", turn.Message.Text(), turn.Stop, turn.Usage)
	}
	calls := turn.Message.Calls()
	if string(calls[0].Arguments) != `{"n":12345678901234567890}` || string(calls[1].Arguments) != `{"whole":true}` {
		t.Errorf("arguments %s, %s", calls[0].Arguments, calls[1].Arguments)
	}
	if _, err := collect(m, llm.Text(llm.User, "a"), turn.Message, llm.Message{Role: llm.Tool, Parts: []llm.Part{
		{Result: llm.TextResult(calls[0], "r", false)}, {Result: llm.TextResult(calls[1], "bad", true)}}}); err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Messages []struct {
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	json.Unmarshal([]byte(*body), &sent)
	want := []string{
		`{"signature":"sig","thinking":"hm","type":"thinking"}`,
		`{"data":"opaque","new_field":1,"type":"redacted_thinking"}`,
		`{"citations":[{"type":"char_location","cited_text":"x"}],"text":"See this.","type":"text"}`,
		`{"id":"t1","input":{"n":12345678901234567890},"name":"x","type":"tool_use"}`,
		`{"id":"t2","input":{"whole":true},"name":"x","type":"tool_use"}`,
	}
	for i, w := range want {
		if got := string(sent.Messages[1].Content[i]); got != w {
			t.Errorf("block %d came back as %s, want %s", i, got, w)
		}
	}
	if got := string(sent.Messages[2].Content[1]); !strings.Contains(got, `"is_error":true`) || !strings.Contains(got, "cache_control") {
		t.Errorf("last result %s", got)
	}
}

func TestCallCutOffBeforeArgumentsIsMalformed(t *testing.T) {
	for _, tt := range []struct {
		stop      string
		call      []string
		malformed bool
	}{
		{"max_tokens", block(0, `{"type":"tool_use","id":"t","name":"x","input":{}}`), true},
		{"max_tokens", block(0, `{"type":"tool_use","id":"t","name":"x","input":{}}`, `{"type":"input_json_delta","partial_json":""}`), true},
		{"max_tokens", block(0, `{"type":"tool_use","id":"t","name":"x","input":{}}`, `{"type":"input_json_delta","partial_json":"{}"}`), false},
		{"max_tokens", block(0, `{"type":"tool_use","id":"t","name":"x","input":{"whole":true}}`), false},
		{"tool_use", block(0, `{"type":"tool_use","id":"t","name":"x","input":{}}`), false},
	} {
		url, _, _ := serve(t, reply(tt.stop, tt.call)...)
		turn, err := collect(New(llm.Config{Provider: llm.Anthropic, Model: "c", BaseURL: url, APIKey: "k"}, nil), llm.Text(llm.User, "a"))
		if calls := turn.Message.Calls(); err != nil || len(calls) != 1 || (calls[0].Malformed != "") != tt.malformed {
			t.Errorf("%s, %s: %+v, %v", tt.stop, tt.call, turn, err)
		}
	}
}

func TestStopReasons(t *testing.T) {
	for word, want := range map[string]llm.Stop{
		"end_turn": llm.StopEnd, "stop_sequence": llm.StopEnd, "max_tokens": llm.StopLength, "refusal": llm.StopFilter,
		"pause_turn": llm.StopPause, "model_context_window_exceeded": llm.StopLength, "surprise": llm.StopOther,
	} {
		url, _, _ := serve(t, reply(word, block(0, `{"type":"text","text":""}`, `{"type":"text_delta","text":"x"}`))...)
		turn, err := collect(New(llm.Config{Provider: llm.Anthropic, Model: "c", BaseURL: url, APIKey: "k"}, nil), llm.Text(llm.User, "a"))
		if err != nil || turn.Stop != want {
			t.Errorf("%s: %q, %v", word, turn.Stop, err)
		}
	}
}

func TestStreamWithoutEndIsCutOff(t *testing.T) {
	events := reply("end_turn", block(0, `{"type":"text","text":""}`, `{"type":"text_delta","text":"half"}`))
	url, _, _ := serve(t, events[:3]...)
	turn, err := collect(New(llm.Config{Provider: llm.Anthropic, Model: "c", BaseURL: url, APIKey: "k"}, nil), llm.Text(llm.User, "a"))
	if llm.ReasonOf(err) != llm.CutOff || turn.Message.Text() != "half" {
		t.Errorf("%q, %v", turn.Message.Text(), err)
	}
}
