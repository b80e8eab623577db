package chat

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"junctor/internal/chat/wire"
)

// schemas returns the message schemas from docs/chat.md.
var schemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "chat.md"))
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(page), "## Schemas")
	_, rest, _ = strings.Cut(rest, "```json\n")
	body, _, _ := strings.Cut(rest, "\n```")
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("chat.json", doc); err != nil {
		return nil, err
	}
	out := map[string]*jsonschema.Schema{}
	for _, name := range []string{"incoming", "outgoing"} {
		if out[name], err = c.Compile("chat.json#/$defs/" + name); err != nil {
			return nil, err
		}
	}
	return out, nil
})

// checkSchema fails the test when a message does not fit the documentation.
func checkSchema(t testing.TB, data []byte) {
	t.Helper()
	if err := fits("outgoing", data); err != nil {
		t.Errorf("message does not fit docs/chat.md: %v\n%s", err, data)
	}
}

func fits(name string, data []byte) error {
	all, err := schemas()
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return all[name].Validate(v)
}

func TestParseIncoming(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want string // error code; "" means accepted
	}{
		"message":           {`{"type":"message","payload":{"text":"hi"}}`, ""},
		"message and model": {`{"type":"message","payload":{"text":"hi","model":"m","new":1},"id":7}`, ""},
		"abort":             {`{"type":"abort"}`, ""},
		"abort with null":   {`{"type":"abort","payload":null}`, ""},
		"approve":           {`{"type":"approve","payload":{"callId":"1"}}`, ""},
		"approve always":    {`{"type":"approve","payload":{"callId":"1","scope":"always"}}`, ""},
		"deny":              {`{"type":"deny","payload":{"callId":"1","reason":"no"}}`, ""},
		"history":           {`{"type":"history","payload":{}}`, ""},
		"answer":            {`{"type":"answer","payload":{"questionId":"1","action":"accept","content":{"a":1}}}`, ""},
		"answer no":         {`{"type":"answer","payload":{"questionId":"1","action":"decline"}}`, ""},
		"answer for long":   {`{"type":"answer","payload":{"questionId":"1","action":"accept","scope":"session"}}`, ""},
		"no questionId":     {`{"type":"answer","payload":{"action":"accept"}}`, "INVALID_REQUEST"},
		"no action":         {`{"type":"answer","payload":{"questionId":"1"}}`, "INVALID_REQUEST"},
		"odd action":        {`{"type":"answer","payload":{"questionId":"1","action":"expired"}}`, "INVALID_REQUEST"},
		"content is text":   {`{"type":"answer","payload":{"questionId":"1","action":"accept","content":"x"}}`, "INVALID_REQUEST"},
		"answer for ever":   {`{"type":"answer","payload":{"questionId":"1","action":"accept","scope":"always"}}`, "INVALID_REQUEST"},
		"regenerate":        {`{"type":"regenerate","payload":{"messageId":"1"}}`, ""},
		"branch":            {`{"type":"branch","payload":{"messageId":"1"}}`, ""},
		"branch of nothing": {`{"type":"branch","payload":{}}`, "INVALID_REQUEST"},
		"preferences":       {`{"type":"preferences","payload":{"systemPrompt":"x","temperature":0.5,"servers":["a"]}}`, ""},
		"no preferences":    {`{"type":"preferences"}`, ""},
		"hot":               {`{"type":"preferences","payload":{"temperature":"hot"}}`, "INVALID_REQUEST"},
		"attachment":        {`{"type":"message","payload":{"text":"","attachments":[{"name":"a.txt","data":"YQ=="}]}}`, ""},
		"not JSON":          {`hello`, "PARSE_ERROR"},
		"not UTF-8":         {"{\"type\":\"answer\",\"payload\":{\"content\":{\"a\":\"\xff\"}}}", "PARSE_ERROR"},
		"empty":             {``, "PARSE_ERROR"},
		"an array":          {`[]`, "INVALID_REQUEST"},
		"a number":          {`7`, "INVALID_REQUEST"},
		"no type":           {`{"payload":{}}`, "INVALID_REQUEST"},
		"unknown type":      {`{"type":"dance"}`, "INVALID_REQUEST"},
		"type is a number":  {`{"type":7}`, "INVALID_REQUEST"},
		"payload is text":   {`{"type":"message","payload":"hi"}`, "INVALID_REQUEST"},
		"no text":           {`{"type":"message","payload":{}}`, "INVALID_REQUEST"},
		"text is a number":  {`{"type":"message","payload":{"text":7}}`, "INVALID_REQUEST"},
		"no callId":         {`{"type":"approve","payload":{}}`, "INVALID_REQUEST"},
		"odd scope":         {`{"type":"approve","payload":{"callId":"1","scope":"ever"}}`, "INVALID_REQUEST"},
	} {
		_, err := wire.Parse([]byte(tt.in))
		code := ""
		if err != nil {
			code = errCode(err)
		}
		if code != tt.want {
			t.Errorf("%s: %q (%v), want %q", name, code, err, tt.want)
		}
		if documented := fits("incoming", []byte(tt.in)) == nil; documented != (tt.want == "") {
			t.Errorf("%s: accepted %v, documented %v", name, tt.want == "", documented)
		}
	}
}

func FuzzIncoming(f *testing.F) {
	f.Add([]byte(`{"type":"message","payload":{"text":"hi"}}`))
	f.Add([]byte(`{"type":"approve","payload":{"callId":"1","scope":"always"}}`))
	f.Add([]byte(`{"type":"deny","payload":{"callId":"1","reason":"\ud800"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := wire.Parse(data)
		if (in == nil) == (err == nil) {
			t.Fatalf("%v, %v", in, err)
		}
		if err != nil {
			out, merr := json.Marshal(wire.Outgoing{Type: wire.TypeError, Payload: wire.ErrorPayload{Code: errCode(err), Message: err.Error()}})
			if merr != nil || fits("outgoing", out) != nil {
				t.Fatalf("the answer %s is not one: %v", out, fits("outgoing", out))
			}
		}
	})
}
