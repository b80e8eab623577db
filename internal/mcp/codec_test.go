package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"junctor/internal/rawjson"
)

func TestDecode(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want Message
	}{
		"request":        {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, Message{ID: "1", Method: "tools/call", Params: json.RawMessage(`{"name":"x"}`)}},
		"any order":      {` { "params" : { "a" : [1,2] } , "method" : "m" , "id" : "a\u0062" , "jsonrpc" : "2.0" } ` + "\n", Message{ID: `"ab"`, Method: "m", Params: json.RawMessage(`{ "a" : [1,2] }`)}},
		"notification":   {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, Message{Method: "notifications/initialized"}},
		"null params":    {`{"jsonrpc":"2.0","method":"ping","id":0,"params":null}`, Message{ID: "0", Method: "ping"}},
		"array params":   {`{"jsonrpc":"2.0","method":"m","params":[1]}`, Message{Method: "m", Params: json.RawMessage(`[1]`)}},
		"result":         {`{"result":{"n":12345678901234567890},"jsonrpc":"2.0","id":7}`, Message{ID: "7", Result: json.RawMessage(`{"n":12345678901234567890}`)}},
		"null result":    {`{"result":null,"jsonrpc":"2.0","id":7}`, Message{ID: "7", Result: json.RawMessage(`null`)}},
		"null error":     {`{"result":1,"error":null,"jsonrpc":"2.0","id":7}`, Message{ID: "7", Result: json.RawMessage(`1`)}},
		"error":          {`{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no \"m\"","data":{"a":1}}}`, Message{ID: `"x"`, Error: &Error{Code: -32601, Message: `no "m"`, Data: json.RawMessage(`{"a":1}`)}}},
		"error, null id": {`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad"}}`, Message{Error: &Error{Code: -32700, Message: "bad"}}},
		"clumsy error":   {`{"jsonrpc":"2.0","id":1,"result":null,"error":"boom"}`, Message{ID: "1", Error: &Error{Code: CodeInternalError, Message: "boom"}}},
		"float code":     {`{"jsonrpc":"2.0","id":1,"error":{"code":-3.2e4,"message":7}}`, Message{ID: "1", Error: &Error{Code: -32000, Message: "7"}}},
		"odd code":       {`{"jsonrpc":"2.0","id":1,"error":{"code":"E1"}}`, Message{ID: "1", Error: &Error{Code: CodeInternalError}}},
		"number error":   {`{"jsonrpc":"2.0","id":1,"error":17}`, Message{ID: "1", Error: &Error{Code: CodeInternalError, Message: "17"}}},
		"escaped key":    {`{"jsonrpc":"2.0","\u006dethod":"ping","\u0069d":3,"other":{}}`, Message{ID: "3", Method: "ping"}},
		"last one wins":  {`{"jsonrpc":"2.0","id":1,"id":2,"method":"a","method":"b"}`, Message{ID: "2", Method: "b"}},
		"unicode method": {`{"jsonrpc":"2.0","method":"a\u00e4ö"}`, Message{Method: "aäö"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode([]byte(tt.in), Limits{})
			if err != nil {
				t.Fatalf("Decode(%s): %v", tt.in, err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("Decode(%s) = %+v, want %+v", tt.in, got, tt.want)
			}
			again, err := Decode(AppendMessage(nil, &got), Limits{})
			if err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("round trip gave %+v, %v, want %+v", again, err, got)
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		code int
		id   ID
		msg  string
	}{
		"empty":            {"", CodeParseError, "", "empty"},
		"cut":              {`{"jsonrpc":"2.0","id":1`, CodeParseError, "", "byte 23"},
		"cut key":          {`{"jsonrpc`, CodeParseError, "", "byte"},
		"no colon":         {`{"jsonrpc" 1}`, CodeParseError, "", "byte"},
		"no comma":         {`{"jsonrpc":"2.0" "id":1}`, CodeParseError, "", "byte"},
		"no key":           {`{1:2}`, CodeParseError, "", "byte"},
		"bad value":        {`{"jsonrpc":tru}`, CodeParseError, "", "byte"},
		"trailing":         {`{"jsonrpc":"2.0","id":1,"method":"m"} x`, CodeParseError, "1", "more data"},
		"a string":         {`"hello"`, CodeInvalidRequest, "", "object"},
		"words":            {`hello`, CodeParseError, "", "byte 0"},
		"empty object":     {`{}`, CodeInvalidRequest, "", "jsonrpc"},
		"no version":       {`{"id":4,"method":"m"}`, CodeInvalidRequest, "4", "jsonrpc"},
		"old version":      {`{"jsonrpc":"1.0","id":4,"method":"m"}`, CodeInvalidRequest, "4", "2.0"},
		"null id":          {`{"jsonrpc":"2.0","id":null,"method":"m"}`, CodeInvalidRequest, "", "null"},
		"object id":        {`{"jsonrpc":"2.0","id":{},"method":"m"}`, CodeInvalidRequest, "", "id must be"},
		"number method":    {`{"jsonrpc":"2.0","id":"q","method":1}`, CodeInvalidRequest, `"q"`, "method"},
		"empty method":     {`{"jsonrpc":"2.0","id":"q","method":""}`, CodeInvalidRequest, `"q"`, "method"},
		"string params":    {`{"jsonrpc":"2.0","id":1,"method":"m","params":"p"}`, CodeInvalidRequest, "1", "params"},
		"method, result":   {`{"jsonrpc":"2.0","id":1,"method":"m","result":1}`, CodeInvalidRequest, "1", "either"},
		"result and error": {`{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`, CodeInvalidRequest, "1", "both"},
		"nothing":          {`{"jsonrpc":"2.0","id":1}`, CodeInvalidRequest, "1", "neither"},
		"result, no id":    {`{"jsonrpc":"2.0","result":1}`, CodeInvalidRequest, "", "without an id"},
		"batch":            {`[{"jsonrpc":"2.0","method":"m"}]`, CodeInvalidRequest, "", "object"},
		"deep":             {`{"jsonrpc":"2.0","id":1,"params":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `,"method":"m"}`, CodeInvalidRequest, "1", "deeper than 256"},
		"far too deep":     {`{"jsonrpc":"2.0","id":1,"params":` + strings.Repeat("[", 11_000) + strings.Repeat("]", 11_000) + `,"method":"m"}`, CodeParseError, "1", "deep"},
		"not UTF-8":        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":\"\xff\"}}", CodeParseError, "1", "UTF-8, at byte 52"},
		"not UTF-8 key":    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"\xc3\":1}}", CodeParseError, "1", "UTF-8"},
		"surrogate bytes":  {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":\"\xed\xa0\x80\"}}", CodeParseError, "1", "UTF-8"},
		"large":            {`{"jsonrpc":"2.0","id":9,"method":"` + strings.Repeat("x", 2000) + `"}`, CodeInvalidRequest, "9", "limit of 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(tt.in), Limits{MaxBytes: max(1000, 3*strings.Count(tt.in, "["))})
			d, ok := errors.AsType[*DecodeError](err)
			if !ok {
				t.Fatalf("Decode(%.60s) error = %v, want a *DecodeError", tt.in, err)
			}
			if d.Code != tt.code || d.ID != tt.id || !strings.Contains(d.Msg, tt.msg) {
				t.Errorf("Decode(%.60s) error = %+v, want code %d, id %q, message with %q", tt.in, d, tt.code, tt.id, tt.msg)
			}
			if d.TooLarge != (name == "large") {
				t.Errorf("TooLarge = %v", d.TooLarge)
			}
			m, err := Decode(AppendMessage(nil, d.Response()), Limits{})
			if err != nil || m.Error == nil || m.Error.Code != tt.code || m.ID != tt.id {
				t.Errorf("its response reads as %+v, %v", m, err)
			}
		})
	}
}

func TestDecodeEach(t *testing.T) {
	for name, tt := range map[string]struct {
		in    string
		batch bool
		want  string // ids and methods, ! for an error
	}{
		"single":         {`{"jsonrpc":"2.0","id":1,"method":"a"}`, false, "1a"},
		"single, broken": {`{"jsonrpc"`, false, "!"},
		"batch":          {` [ {"jsonrpc":"2.0","id":1,"method":"a"} , {"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":2,"result":{}}]`, true, "1a b 2"},
		"one is broken":  {`[{"jsonrpc":"2.0","id":1,"method":"a"},5,{"jsonrpc":"2.0","method":"b"}]`, true, "1a ! b"},
		"empty":          {`[]`, true, "!"},
		"cut":            {`[{"jsonrpc":"2.0","id":1,"method":"a"}`, true, "!"},
		"trailing":       {`[{"jsonrpc":"2.0","id":1,"method":"a"}]]`, true, "!"},
		"too many":       {`[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"a"}]`, true, "a a a !"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			batch := DecodeEach([]byte(tt.in), Limits{MaxBatch: 3}, func(m Message, err error) {
				if err != nil {
					got = append(got, "!")
					return
				}
				got = append(got, string(m.ID)+m.Method)
			})
			if batch != tt.batch || strings.Join(got, " ") != tt.want {
				t.Errorf("got %v %q, want %v %q", batch, got, tt.batch, tt.want)
			}
		})
	}
}

func TestAppendMessageStaysOnOneLine(t *testing.T) {
	m := Message{ID: NumberID(-5), Method: "a\nb", Params: json.RawMessage("{\r\n  \"x\": \"1\\n2\"\r\n}")}
	line := AppendMessage(nil, &m)
	if bytes.ContainsAny(line, "\r\n") {
		t.Fatalf("line break in %q", line)
	}
	back, err := Decode(line, Limits{})
	if err != nil || back.Method != m.Method || back.ID != "-5" || rawjson.FieldString(back.Params, "x") != "1\n2" {
		t.Errorf("came back as %+v, %v", back, err)
	}
	if bytes.ContainsAny(m.Params, "\n") == false {
		t.Error("the message itself was changed")
	}
	if got := string(AppendMessage(nil, &Message{ID: `"a\"b"`})); got != `{"jsonrpc":"2.0","id":"a\"b","result":{}}` {
		t.Errorf("empty result = %s", got)
	}
}

// realTraffic are messages as real clients and servers wrote them.
var realTraffic = []string{
	`{"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"mcp-inspector","version":"0.16.2"}},"jsonrpc":"2.0","id":0}`,
	`{"result":{"protocolVersion":"2025-06-18","capabilities":{"prompts":{},"resources":{"subscribe":true},"tools":{},"logging":{},"completions":{}},"serverInfo":{"name":"example-servers/everything","title":"Everything Example Server","version":"1.0.0"},"instructions":"Testing and demonstration server.\n\n## Resources\n"},"jsonrpc":"2.0","id":0}`,
	`{"method":"notifications/progress","params":{"progress":1,"total":5,"progressToken":1},"jsonrpc":"2.0"}`,
	`{"result":{"content":[{"type":"text","text":"Long running operation completed. Duration: 1 seconds, Steps: 5."}]},"jsonrpc":"2.0","id":3}`,
	`{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"unknown tool \"nope\"","data":{"tool":"nope"}}}`,
	`{"jsonrpc":"2.0","id":"9f0c","method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name":"echo","arguments":{"n":12345678901234567890}}}`,
	`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4,"reason":"x"}}]`,
}

// FuzzDecode compares the envelope with the result of encoding/json, and checks
// that AppendMessage reproduces the message.
func FuzzDecode(f *testing.F) {
	for _, seed := range realTraffic {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data, Limits{})
		DecodeEach(data, Limits{}, func(Message, error) {})
		if err != nil {
			if _, ok := errors.AsType[*DecodeError](err); !ok {
				t.Fatalf("error is a %T", err)
			}
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(data, &members); err != nil {
			t.Fatalf("accepted, but encoding/json says %v: %q", err, data)
		}
		same := func(name string, got json.RawMessage) {
			want := members[name]
			if string(want) == "null" && len(got) == 0 {
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s = %q, encoding/json has %q", name, got, want)
			}
		}
		if m.Method != "" {
			same("params", m.Params)
			var method string
			if json.Unmarshal(members["method"], &method); method != m.Method {
				t.Errorf("method = %q, encoding/json has %q", m.Method, method)
			}
		} else if m.Error == nil {
			same("result", m.Result)
		}
		again, err := Decode(AppendMessage(nil, &m), Limits{MaxBytes: 2*len(data) + 1000})
		if err != nil {
			t.Fatalf("does not survive: %v", err)
		}
		again.Params, m.Params = flat(again.Params), flat(m.Params)
		again.Result, m.Result = flat(again.Result), flat(m.Result)
		if m.Error != nil {
			again.Error.Data, m.Error.Data = flat(again.Error.Data), flat(m.Error.Data)
		}
		if fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", m) && m.Error == nil {
			t.Errorf("%+v came back as %+v", m, again)
		}
	})
}

func flat(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(strings.NewReplacer("\n", " ", "\r", " ").Replace(string(raw)))
}
