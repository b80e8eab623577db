package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

func TestModernRequests(t *testing.T) {
	ask := func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	full := json.RawMessage(`{"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"extensions":{"x":{}}}`)
	for name, tt := range map[string]struct {
		caps   Capabilities
		method string
		params string
		ex     tool.Exchange
		want   string // the declared capabilities
		rest   string // the rest of _meta
	}{
		"a list gets what the client can do": {Capabilities{Roots: true}, "tools/list", ``, tool.Exchange{}, `{"roots":{}}`, `{}`},
		"a caller that cannot be asked":      {Capabilities{Sampling: true}, "tools/call", `{"name":"x"}`, tool.Exchange{Capabilities: full}, `{}`, `{}`},
		"a caller that declared nothing":     {Capabilities{Sampling: true}, "tools/call", `{"name":"x"}`, tool.Exchange{Ask: ask}, `{}`, `{}`},
		"what both can do": {Capabilities{Sampling: true, ElicitationForm: true}, "tools/call", `{"name":"x","_meta":{"a":1}}`, tool.Exchange{Ask: ask, Capabilities: full},
			`{"elicitation":{"form":{}},"sampling":{}}`, `{"a":1}`},
		"everything": {Capabilities{Sampling: true, SamplingTools: true, ElicitationForm: true, ElicitationURL: true, Roots: true}, "prompts/get", `{"name":"x"}`, tool.Exchange{Ask: ask, Capabilities: full},
			`{"roots":{"listChanged":true},"elicitation":{"url":{},"form":{}},"sampling":{"tools":{}}}`, `{}`},
		"an empty elicitation means form": {Capabilities{ElicitationForm: true, ElicitationURL: true}, "resources/read", `{"uri":"x"}`, tool.Exchange{Ask: ask, Capabilities: json.RawMessage(`{"elicitation":{}}`)},
			`{"elicitation":{"form":{}}}`, `{}`},
		"passed on as it is":        {Capabilities{}, "tools/call", `{"name":"x"}`, tool.Exchange{PassInput: true, Capabilities: full}, string(full), `{}`},
		"the caller's own era goes": {Capabilities{}, "tools/call", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"1999","keep":[1], "io.modelcontextprotocol/clientInfo":{"name":"forged"}},"name":"x"}`, tool.Exchange{}, `{}`, `{"keep":[1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			sent := make(chan Message, 1)
			c := mustPlay(t, ClientOptions{Name: "me", Version: "9", Capabilities: tt.caps}, func(s *script) {
				s.result(s.want("server/discover"), discoverResult)
				m := s.want(tt.method)
				sent <- m
				s.result(m, `{"resultType":"complete"}`)
			})
			if _, err := c.Do(t.Context(), tool.Request{Method: tt.method, Params: json.RawMessage(tt.params), Exchange: tt.ex}); err != nil {
				t.Fatal(err)
			}
			meta := rawjson.Field((<-sent).Params, "_meta")
			if rawjson.FieldString(meta, MetaProtocolVersion) != Version20260728 || string(rawjson.Field(meta, MetaClientInfo)) != `{"name":"me","version":"9"}` {
				t.Errorf("_meta = %s", meta)
			}
			if got := string(rawjson.Field(meta, MetaClientCapabilities)); got != tt.want {
				t.Errorf("capabilities %s, want %s", got, tt.want)
			}
			for _, key := range []string{MetaProtocolVersion, MetaClientInfo, MetaClientCapabilities} {
				meta = rawjson.DeleteField(meta, key)
			}
			if string(meta) != tt.rest {
				t.Errorf("the rest is %s, want %s", meta, tt.rest)
			}
		})
	}
}

func TestInputRequired(t *testing.T) {
	const question = `{"resultType":"input_required","inputRequests":{"q\"1":{"method":"elicitation/create","params":{"message":"?"}},"q2":{"method":"roots/list"}},"requestState":"s\u00e4"}`
	answer := func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		if method == "roots/list" {
			return json.RawMessage(`{"roots":[]}`), nil
		}
		if rawjson.FieldString(params, "message") == "fail" {
			return nil, errors.New("no")
		}
		return json.RawMessage(`{"action":"accept"}`), nil
	}
	for name, tt := range map[string]struct {
		ex      tool.Exchange
		answers []string // of the server, one after the other
		want    string   // result, or what the error says
	}{
		"answered":      {tool.Exchange{Ask: answer}, []string{question, `{"done":1}`}, `{"done":1}`},
		"passed":        {tool.Exchange{PassInput: true}, []string{question}, question},
		"nobody":        {tool.Exchange{}, []string{question}, "cannot be asked"},
		"busy":          {tool.Exchange{}, []string{`{"resultType":"input_required","requestState":"s\u00e4"}`, `{"done":2}`}, `{"done":2}`},
		"asker fails":   {tool.Exchange{Ask: answer}, []string{`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"fail"}}}}`}, "failed"},
		"not allowed":   {tool.Exchange{Ask: answer}, []string{`{"resultType":"input_required","inputRequests":{"a":{"method":"evil/do\u0001"}}}`}, "cannot be asked"},
		"too many":      {tool.Exchange{Ask: answer}, []string{`{"resultType":"input_required","inputRequests":{` + strings.TrimSuffix(strings.Repeat(`"a":{"method":"roots/list"},`, maxInputs+1), ",") + `}}`}, "questions at once"},
		"for ever":      {tool.Exchange{Ask: answer}, []string{question, question, question, question, question, question, question, question, question, question, question}, "did not finish"},
		"no such type":  {tool.Exchange{Ask: answer}, []string{`{"inputRequests":{"a":{"method":"roots/list"}}}`}, `{"inputRequests":{"a":{"method":"roots/list"}}}`},
		"then an error": {tool.Exchange{Ask: answer}, []string{question, "error"}, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustPlay(t, testOptions(), func(s *script) {
				s.result(s.want("server/discover"), discoverResult)
				seen := map[ID]bool{}
				for i, a := range tt.answers {
					m := s.want("tools/call")
					if seen[m.ID] {
						s.t.Errorf("id %s used twice", m.ID)
					}
					seen[m.ID] = true
					state, responses := string(rawjson.Field(m.Params, "requestState")), string(rawjson.Field(m.Params, "inputResponses"))
					if i == 0 && (state != "" || responses != "") {
						s.t.Errorf("first try with %s", m.Params)
					}
					if i > 0 && state != `"s\u00e4"` {
						s.t.Errorf("state came back as %s", state)
					}
					if i > 0 && tt.answers[i-1] == question && responses != `{"q\"1":{"action":"accept"},"q2":{"roots":[]}}` {
						s.t.Errorf("responses are %s", responses)
					}
					if a == "error" {
						s.refuse(m, 1, "broken", "")
					} else {
						s.result(m, a)
					}
				}
			})
			result, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"x","_meta":{"progressToken":5}}`), Exchange: tt.ex})
			if got := string(result); err == nil && got != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// What the new era does without is bridged for callers of the old one.
func TestModernServerWithHandshakeCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan string, 8)
		listening := func(s *script, want string) Message {
			m := s.want("subscriptions/listen")
			if got := string(rawjson.Field(m.Params, "notifications")); got != want {
				s.t.Errorf("listens to %s, want %s", got, want)
			}
			s.notify("notifications/subscriptions/acknowledged", `{"notifications":{}}`)
			return m
		}
		c := mustPlay(t, ClientOptions{OnNotification: func(method string, params json.RawMessage) { heard <- method + rawjson.FieldString(params, "uri") }}, func(s *script) {
			s.result(s.want("server/discover"), discoverResult)
			const lists = `{"toolsListChanged":true}`
			first := listening(s, lists)
			s.notify("notifications/tools/list_changed", `{"_meta":{"io.modelcontextprotocol/subscriptionId":`+string(first.ID)+`}}`)
			s.want("notifications/cancelled") // of the first stream
			second := listening(s, `{"resourceSubscriptions":["file:///a"],"toolsListChanged":true}`)
			s.notify("notifications/resources/updated", `{"uri":"file:///a"}`)
			m := s.want("tools/call")
			if level := rawjson.FieldString(m.Params, "_meta", MetaLogLevel); level != "debug" {
				s.t.Errorf("log level %q", level)
			}
			s.result(m, `{}`)
			s.want("notifications/cancelled")
			third := listening(s, lists)
			s.notify("notifications/cancelled", `{"requestId":`+string(third.ID)+`}`) // the server ends it
			fourth := listening(s, lists)                                             // after a second
			s.refuse(fourth, CodeMethodNotFound, "not any more", "")
			_ = second
		})
		wants := func(want string) {
			if got := <-heard; got != want {
				t.Errorf("heard %q, want %q", got, want)
			}
		}
		wants("notifications/tools/list_changed")
		do := func(method, params string) {
			if result, err := c.Do(t.Context(), tool.Request{Method: method, Params: json.RawMessage(params)}); err != nil || string(result) != "{}" {
				t.Errorf("%s: %s, %v", method, result, err)
			}
		}
		do("resources/subscribe", `{"uri":"file:///a"}`)
		wants("notifications/resources/updatedfile:///a")
		do("logging/setLevel", `{"level":"debug"}`)
		do("tools/call", `{"name":"x"}`)
		do("resources/unsubscribe", `{"uri":"file:///a"}`)
		if _, err := c.Do(t.Context(), tool.Request{Method: "resources/subscribe"}); err == nil {
			t.Error("subscribed to nothing")
		}
		time.Sleep(time.Hour) // of the bubble: the streams come and go
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.listening.running {
			t.Error("still listens to a server that has no subscriptions")
		}
	})
}

// A caller of the new era in front of a server of the old one.
func TestHandshakeServerWithModernCaller(t *testing.T) {
	c := mustPlay(t, ClientOptions{}, func(s *script) {
		s.oldEra()
		m := s.want("logging/setLevel")
		if rawjson.FieldString(m.Params, "level") != "info" {
			s.t.Errorf("set %s", m.Params)
		}
		s.refuse(m, 1, "no", "")
		for _, want := range []string{`{"name":"x"}`, `{"name":"x","_meta":{"keep":1}}`, `{"_meta":{"traceparent":"00"}}`} {
			m := s.want("tools/call")
			if string(m.Params) != want {
				s.t.Errorf("sent %s, want %s", m.Params, want)
			}
			s.result(m, `{}`)
		}
	})
	for _, params := range []string{
		`{"name":"x","_meta":{"io.modelcontextprotocol/logLevel":"info","io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`,
		`{"name":"x","_meta":{"io.modelcontextprotocol/logLevel":"error","keep":1}}`,
		`{"_meta":{"traceparent":"00"}}`,
	} {
		if _, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Params: json.RawMessage(params)}); err != nil {
			t.Error(err)
		}
	}
}

func TestHeaderParams(t *testing.T) {
	for name, tt := range map[string]struct{ schema, want string }{
		"none":        {`{"type":"object"}`, ""},
		"one":         {`{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}`, "r=Region"},
		"nested":      {`{"properties":{"a":{"properties":{"b":{"type":"integer","x-mcp-header":"B"}}}}}`, "a.b=B"},
		"empty":       {`{"properties":{"r":{"type":"string","x-mcp-header":""}}}`, "! not empty"},
		"no string":   {`{"properties":{"r":{"type":"string","x-mcp-header":5}}}`, "! must be a string"},
		"bad name":    {`{"properties":{"r":{"type":"string","x-mcp-header":"a b"}}}`, "! no name"},
		"line break":  {`{"properties":{"r":{"type":"string","x-mcp-header":"a\r\nX: y"}}}`, "! no name"},
		"twice":       {`{"properties":{"r":{"type":"string","x-mcp-header":"A"},"s":{"type":"string","x-mcp-header":"a"}}}`, "! twice"},
		"number":      {`{"properties":{"r":{"type":"number","x-mcp-header":"A"}}}`, "! number"},
		"in an inner": {`{"properties":{"a":{"properties":{"b":{"type":"array","x-mcp-header":"B"}}}}}`, "! array"},
		"very deep":   {strings.Repeat(`{"properties":{"a":`, 200) + `{}` + strings.Repeat(`}}`, 200), ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := HeaderParams(json.RawMessage(tt.schema))
			var got []string
			for _, p := range found {
				got = append(got, strings.Join(p.Path, ".")+"="+p.Header)
			}
			if want, fails := strings.CutPrefix(tt.want, "! "); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			} else if err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestHeaderValue(t *testing.T) {
	for in, want := range map[string]string{
		"us-west1": "us-west1", "": "", "a b": "a b", " padded ": "=?base64?IHBhZGRlZCA=?=", "line1\nline2": "=?base64?bGluZTEKbGluZTI=?=",
		"Hello, 世界": "=?base64?SGVsbG8sIOS4lueVjA==?=", "=?base64?literal?=": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
	} {
		if got := HeaderValue(in); got != want {
			t.Errorf("HeaderValue(%q) = %q, want %q", in, got, want)
		}
	}
	if _, ok := ParseHeaderValue("=?base64?!!?="); ok {
		t.Error("broken base64 was accepted")
	}
	for in, want := range map[string]string{`"x"`: "x", `true`: "true", `42`: "42", `-7.0`: "-7", `1.5`: "!", `9007199254740992`: "!", `1e400`: "!", `null`: "!", `{}`: "!", ``: "!"} {
		got, ok := headerText(json.RawMessage(in))
		if !ok {
			got = "!"
		}
		if got != want {
			t.Errorf("headerText(%s) = %q, want %q", in, got, want)
		}
	}
}

// FuzzHeaderValue: what is put into a header comes back, and never breaks the
// line.
func FuzzHeaderValue(f *testing.F) {
	f.Add("x")
	f.Add("=?base64?x?=")
	f.Fuzz(func(t *testing.T, s string) {
		v := HeaderValue(s)
		if back, ok := ParseHeaderValue(v); !ok || back != s {
			t.Fatalf("%q became %q and %q", s, v, back)
		}
		for i := range len(v) {
			if v[i] < ' ' && v[i] != '\t' || v[i] >= 0x7f {
				t.Fatalf("%q in a header", v)
			}
		}
		ParseHeaderValue(s)
		_ = http.Header{"X": {v}}
	})
}

func FuzzHeaderParams(f *testing.F) {
	f.Add([]byte(`{"properties":{"r":{"type":"string","x-mcp-header":"Region"},"a":{"properties":{"b":{"type":"integer","x-mcp-header":"B"}}}}}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		found, err := HeaderParams(schema)
		if err != nil && found != nil {
			t.Fatal("both")
		}
		for _, p := range found {
			if strings.ContainsAny(p.Header, " \r\n:") || p.Header == "" {
				t.Fatalf("header %q", p.Header)
			}
		}
	})
}

func TestFreshnessOfResult(t *testing.T) {
	for in, want := range map[string]Freshness{
		`{"ttlMs":1500,"cacheScope":"public"}`:   {1500 * time.Millisecond, true},
		`{"ttlMs":0}`:                            {0, false},
		`{"ttlMs":1e300,"cacheScope":"private"}`: {24 * time.Hour, false},
	} {
		if got, ok := FreshnessOf(json.RawMessage(in)); !ok || got != want {
			t.Errorf("FreshnessOf(%s) = %v, %v, want %v", in, got, ok, want)
		}
	}
	for _, in := range []string{`{}`, `{"ttlMs":-1}`, `{"ttlMs":"5"}`, `{"ttlMs":null}`} {
		if got, ok := FreshnessOf(json.RawMessage(in)); ok {
			t.Errorf("FreshnessOf(%s) = %v", in, got)
		}
	}
}
