package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
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
		"passed on as it is": {Capabilities{}, "tools/call", `{"name":"x"}`, tool.Exchange{PassInput: true, Transparent: true, Capabilities: full}, string(full), `{}`},
		"without others' extensions": {Capabilities{Extensions: json.RawMessage(`{"ours":{}}`)}, "tools/call", `{"name":"x"}`, tool.Exchange{PassInput: true, Capabilities: json.RawMessage(`{"roots":{},"extensions":{"x":{}},"experimental":{"y":{}}}`)},
			`{"extensions":{"ours":{}},"roots":{}}`, `{}`},
		"the caller's own era goes": {Capabilities{}, "tools/call", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"1999","keep":[1], "io.modelcontextprotocol/clientInfo":{"name":"forged"}},"name":"x"}`, tool.Exchange{}, `{}`, `{"keep":[1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			sent := make(chan mcp.Message, 1)
			c := mustPlay(t, Options{Name: "me", Version: "9", Capabilities: tt.caps}, func(s *script) {
				s.result(s.want("server/discover"), discoverResult)
				m := s.want(tt.method)
				sent <- m
				s.result(m, `{"resultType":"complete"}`)
			})
			if _, err := c.Do(t.Context(), tool.Request{Method: tt.method, Params: json.RawMessage(tt.params), Exchange: tt.ex}); err != nil {
				t.Fatal(err)
			}
			meta := rawjson.Field((<-sent).Params, "_meta")
			if rawjson.FieldString(meta, mcp.MetaProtocolVersion) != mcp.Version20260728 || string(rawjson.Field(meta, mcp.MetaClientInfo)) != `{"name":"me","version":"9"}` {
				t.Errorf("_meta = %s", meta)
			}
			if got := string(rawjson.Field(meta, mcp.MetaClientCapabilities)); got != tt.want {
				t.Errorf("capabilities %s, want %s", got, tt.want)
			}
			for _, key := range []string{mcp.MetaProtocolVersion, mcp.MetaClientInfo, mcp.MetaClientCapabilities} {
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
		"last round":    {tool.Exchange{Ask: answer}, append(slices.Repeat([]string{question}, maxRounds), `{"done":3}`), `{"done":3}`},
		"no such type":  {tool.Exchange{Ask: answer}, []string{`{"inputRequests":{"a":{"method":"roots/list"}}}`}, `{"inputRequests":{"a":{"method":"roots/list"}}}`},
		"then an error": {tool.Exchange{Ask: answer}, []string{question, "error"}, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustPlay(t, testOptions(), func(s *script) {
				s.result(s.want("server/discover"), discoverResult)
				seen := map[mcp.ID]bool{}
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

// Methods that the stateless era does not have are emulated for callers of the
// handshake era.
func TestModernServerWithHandshakeCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		received := make(chan string, 8)
		listening := func(s *script, want string) mcp.Message {
			m := s.want("subscriptions/listen")
			if got := string(rawjson.Field(m.Params, "notifications")); got != want {
				s.t.Errorf("listens to %s, want %s", got, want)
			}
			s.notify("notifications/subscriptions/acknowledged", `{"notifications":{}}`)
			return m
		}
		c := mustPlay(t, Options{OnNotification: func(method string, params json.RawMessage) { received <- method + rawjson.FieldString(params, "uri") }}, func(s *script) {
			s.result(s.want("server/discover"), discoverResult)
			const lists = `{"toolsListChanged":true}`
			first := listening(s, lists)
			s.notify("notifications/tools/list_changed", `{"_meta":{"io.modelcontextprotocol/subscriptionId":`+string(first.ID)+`}}`)
			s.want("notifications/cancelled") // of the first stream
			second := listening(s, `{"resourceSubscriptions":["file:///a"],"toolsListChanged":true}`)
			s.notify("notifications/resources/updated", `{"uri":"file:///a"}`)
			m := s.want("tools/call")
			if level := rawjson.FieldString(m.Params, "_meta", mcp.MetaLogLevel); level != "debug" {
				s.t.Errorf("log level %q", level)
			}
			s.result(m, `{}`)
			s.want("notifications/cancelled")
			third := listening(s, lists)
			s.notify("notifications/cancelled", `{"requestId":`+string(third.ID)+`}`) // the server ends it
			fourth := listening(s, lists)                                             // after a second
			s.refuse(fourth, mcp.CodeMethodNotFound, "not any more", "")
			_ = second
		})
		wants := func(want string) {
			if got := <-received; got != want {
				t.Errorf("received %q, want %q", got, want)
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
		time.Sleep(time.Hour) // fake time, in which streams are opened and closed
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.listening.running {
			t.Error("still listens to a server that has no subscriptions")
		}
	})
}

// Subscribing again opens no new stream, which might miss an update.
func TestSubscribingAgainKeepsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan string, 10)
		c := mustPlay(t, Options{OnNotification: func(string, json.RawMessage) {}}, func(s *script) {
			s.result(s.want("server/discover"), strings.Replace(discoverResult, `{"tools":{"listChanged":true}}`, `{}`, 1))
			for {
				m, err := s.link.Receive()
				if err != nil {
					return
				}
				if m.Method == "subscriptions/listen" {
					streams <- string(rawjson.Field(m.Params, "notifications", "resourceSubscriptions"))
				}
			}
		})
		for _, uri := range []string{"a", "b", "a", "b"} {
			if _, err := c.Do(t.Context(), tool.Request{Method: "resources/subscribe", Params: json.RawMessage(`{"uri":"` + uri + `"}`)}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		var got []string
		for len(streams) > 0 {
			got = append(got, <-streams)
		}
		if want := []string{`["a"]`, `["a","b"]`}; !slices.Equal(got, want) {
			t.Errorf("streams %v, want %v", got, want)
		}
	})
}

// A caller of the stateless era uses a server of the handshake era.
func TestHandshakeServerWithModernCaller(t *testing.T) {
	c := mustPlay(t, Options{}, func(s *script) {
		s.handshakeEra()
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

// No question is asked if one of them cannot be.
func TestInputsAreCheckedBeforeTheFirstIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustPlay(t, testOptions(), func(s *script) {
			s.result(s.want("server/discover"), discoverResult)
			s.result(s.want("tools/call"), `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"evil/do"}}}`)
		})
		asked := make(chan string, 2)
		ask := func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			asked <- method
			return json.RawMessage(`{}`), nil
		}
		if _, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Exchange: tool.Exchange{Ask: ask}}); err == nil || !strings.Contains(err.Error(), "cannot be asked") {
			t.Errorf("err = %v", err)
		}
		synctest.Wait()
		if len(asked) > 0 {
			t.Errorf("asked %s", <-asked)
		}
	})
}

// A follower that stops removes only its own tasks and not those of others that
// follow the same tasks, even if there was no room for its tasks or the server
// had refused them.
func TestStoppedFollowersLeaveTheTasksOfOthers(t *testing.T) {
	c := mustPlay(t, Options{OnNotification: func(string, json.RawMessage) {}}, func(s *script) {
		s.result(s.want("server/discover"), strings.Replace(discoverResult, `{"tools":{"listChanged":true}}`, `{}`, 1))
		for { // subscription streams are opened and closed
			if _, err := s.link.Receive(); err != nil {
				return
			}
		}
	})
	followed := func(want int) {
		t.Helper()
		c.mu.Lock()
		defer c.mu.Unlock()
		if got := len(c.listening.tasks); got != want {
			t.Errorf("%d tasks are followed, want %d", got, want)
		}
	}
	ids := make([]string, maxSubscriptions)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	stopFirst := c.FollowTasks(ids)
	c.FollowTasks(ids[:1])() // there is no room for it
	followed(maxSubscriptions)
	stopFirst()
	followed(0)

	stopFirst = c.FollowTasks(ids[:1])
	c.mu.Lock()
	c.listening.tasks = nil // as when the server refuses them
	c.mu.Unlock()
	stopSecond := c.FollowTasks(ids[:1])
	stopFirst()
	followed(1)
	stopSecond()
	followed(0)
}
