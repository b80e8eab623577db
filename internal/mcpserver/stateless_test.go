package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
)

func TestStatelessEra(t *testing.T) {
	s := newSite(t, Options{Info: json.RawMessage(`{"name":"j"}`)}, &scripted{})
	wantBody(t, s.modern(1, "server/discover", ``, `{}`), 200, `"resultType":"complete"`, `"supportedVersions":["2026-07-28","2025-11-25"`,
		`"capabilities":{"tools":{"listChanged":true}`, `"serverInfo":{"name":"scripted","version":"1"}`, `"instructions":"Use <it>."`, `"ttlMs":0`, `"cacheScope":"private"`,
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"scripted"`)
	wantBody(t, s.modern(2, "tools/list", ``, `{}`), 200, `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"j"}},"tools":[`)
	wantBody(t, s.modern(3, "tools/call", `{"name":"echo","arguments":{"resultType":"odd","_meta":{},"n":1.50}}`, `{}`), 200, `"result":{"resultType":"odd","_meta":{},"n":1.50}`)
	wantBody(t, s.modern(4, "no/such", ``, `{}`), 404, "-32601")
	for _, gone := range []string{"ping", "initialize", "logging/setLevel", "resources/subscribe"} {
		wantBody(t, s.modern(5, gone, `{"uri":"x"}`, `{}`), 404, "-32601", "not part of")
	}
	if n := s.Sessions(); n != 0 {
		t.Errorf("%d sessions", n)
	}
	// The handshake era does not have the new methods.
	h := s.open(mcp.Version20251125, `{}`)
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, h...), 200, "-32601", mcp.Version20260728)
	// Both eras share one URL; the stateless era ignores a session header.
	body, mh := modern(6, "tools/list", ``, `{}`)
	wantBody(t, s.post(body, append(mh, headerSession, "nonsense")...), 200, "resultType")
}

func TestStatelessChecks(t *testing.T) {
	s := newSite(t, Options{}, &scripted{})
	call, h := modern(1, "tools/call", `{"name":"ë"}`, `{}`)
	without := func(path ...string) string {
		m, _ := mcp.Decode([]byte(call), mcp.Limits{})
		m.Params = rawjson.DeleteField(m.Params, path...)
		return string(mcp.AppendMessage(nil, &m))
	}
	with := func(value string, path ...string) string {
		m, _ := mcp.Decode([]byte(call), mcp.Limits{})
		m.Params = rawjson.SetField(m.Params, json.RawMessage(value), path...)
		return string(mcp.AppendMessage(nil, &m))
	}
	for name, tt := range map[string]struct {
		body    string
		headers []string
		status  int
		part    string
	}{
		"fine":                   {call, nil, 200, `"id":1,"result":`},
		"no version header":      {call, []string{headerProtocol, ""}, 400, "-32020"},
		"other version header":   {call, []string{headerProtocol, mcp.Version20251125}, 400, "-32020"},
		"no version in body":     {without("_meta", mcp.MetaProtocolVersion), nil, 400, "-32602"},
		"no meta":                {without("_meta"), nil, 400, "-32602"},
		"odd version":            {with(`5`, "_meta", mcp.MetaProtocolVersion), nil, 400, "-32602"},
		"unknown version":        {with(`"2031-01-01"`, "_meta", mcp.MetaProtocolVersion), []string{headerProtocol, "2031-01-01"}, 400, `"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28",`},
		"ancient version":        {with(`"1999-01-01"`, "_meta", mcp.MetaProtocolVersion), []string{headerProtocol, "1999-01-01"}, 400, `"requested":"1999-01-01"`},
		"versions differ":        {with(`"2031-01-01"`, "_meta", mcp.MetaProtocolVersion), nil, 400, "-32020"},
		"no capabilities":        {without("_meta", mcp.MetaClientCapabilities), nil, 400, "-32602"},
		"odd capabilities":       {with(`true`, "_meta", mcp.MetaClientCapabilities), nil, 400, "-32602"},
		"odd client":             {with(`"me"`, "_meta", mcp.MetaClientInfo), nil, 400, "-32602"},
		"no method header":       {call, []string{headerMethod, ""}, 400, "-32020"},
		"other method header":    {call, []string{headerMethod, "tools/list"}, 400, "-32020"},
		"no name header":         {call, []string{headerName, ""}, 400, "-32020"},
		"other name header":      {call, []string{headerName, "other"}, 400, "-32020"},
		"broken name header":     {call, []string{headerName, "=?base64?!!?="}, 400, "-32020"},
		"a response":             {`{"jsonrpc":"2.0","id":1,"result":{}}`, nil, 400, "-32600"},
		"a notification":         {`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, nil, 202, ""},
		"header, no meta at all": {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil, 400, "-32602"},
	} {
		t.Run(name, func(t *testing.T) {
			wantBody(t, s.post(tt.body, append(h[:len(h):len(h)], tt.headers...)...), tt.status, tt.part)
		})
	}
}

func TestCheckParamHeaders(t *testing.T) {
	const schema = `{"properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},"in":{"properties":{"flag":{"type":"boolean","x-mcp-header":"Flag"}}},"plain":{"type":"string"}}}`
	for name, tt := range map[string]struct {
		schema, arguments string
		header            http.Header
		ok                bool
	}{
		"match":        {schema, `{"region":"eu","n":42,"in":{"flag":true}}`, http.Header{"Mcp-Param-Region": {"eu"}, "Mcp-Param-N": {"42.0"}, "Mcp-Param-Flag": {"true"}}, true},
		"encoded":      {schema, `{"region":"ü"}`, http.Header{"Mcp-Param-Region": {mcp.HeaderValue("ü")}}, true},
		"null":         {schema, `{"region":null}`, http.Header{}, true},
		"unmarked":     {`{"properties":{"a":{}}}`, `{"a":1}`, http.Header{}, true},
		"broken marks": {`{"properties":{"a":{"x-mcp-header":""}}}`, `{"a":1}`, http.Header{}, true},
		"no HTTP":      {schema, `{"region":"eu"}`, nil, true},
		"missing":      {schema, `{"region":"eu"}`, http.Header{}, false},
		"differs":      {schema, `{"region":"eu"}`, http.Header{"Mcp-Param-Region": {"us"}}, false},
		"too many":     {schema, `{}`, http.Header{"Mcp-Param-Region": {"us"}}, false},
		"number":       {schema, `{"n":42}`, http.Header{"Mcp-Param-N": {"43"}}, false},
		"no number":    {schema, `{"n":42}`, http.Header{"Mcp-Param-N": {`"42"`}}, false},
		"bad base64":   {schema, `{"region":"eu"}`, http.Header{"Mcp-Param-Region": {"=?base64?%%?="}}, false},
		"an object":    {schema, `{"region":{}}`, http.Header{"Mcp-Param-Region": {"{}"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckParamHeaders(tt.header, json.RawMessage(tt.schema), json.RawMessage(tt.arguments))
			if (err == nil) != tt.ok {
				t.Errorf("CheckParamHeaders = %v", err)
			}
		})
	}
}

func TestErrorCodesAreTranslatedBetweenVersions(t *testing.T) {
	var fail error
	s := newSite(t, Options{}, &scripted{serve: func(context.Context, *Request) (json.RawMessage, error) { return nil, fail }})
	fail = &mcp.Error{Code: mcp.CodeResourceNotFound, Message: "gone"}
	wantBody(t, s.modern(1, "resources/read", `{"uri":"x:y"}`, `{}`), 400, `"code":-32602,"message":"gone"`)
	fail = &mcp.Error{Code: mcp.CodeURLElicitation, Message: "visit", Data: json.RawMessage(`{"elicitations":[{"mode":"url","url":"https://a","elicitationId":"1"},{"url":"https://b"}]}`)}
	wantBody(t, s.modern(1, "tools/call", `{"name":"x"}`, `{"elicitation":{"url":{}}}`), 200, `"resultType":"input_required"`, `"url-1":{"method":"elicitation/create","params":{"mode":"url","url":"https://a","elicitationId":"1"}}`, `"url-2"`)
	wantBody(t, s.modern(1, "tools/call", `{"name":"x"}`, `{"elicitation":{}}`), 200, `-32042`)
	fail = &mcp.Error{Code: mcp.CodeURLElicitation, Message: "visit"}
	wantBody(t, s.modern(1, "tools/call", `{"name":"x"}`, `{"elicitation":{"url":{}}}`), 200, `-32042`)
	fail = &mcp.Error{Code: mcp.CodeMissingCapability, Message: "needs"}
	wantBody(t, s.modern(1, "tools/call", `{"name":"x"}`, `{}`), 400, `-32021`)
}

// TestPlainAnswersHaveALength: small ones get theirs from net/http's server.
func TestPlainAnswersHaveALength(t *testing.T) {
	s := newSite(t, Options{}, &scripted{serve: func(_ context.Context, r *Request) (json.RawMessage, error) {
		n, err := strconv.Atoi(rawjson.FieldString(r.Params, "name"))
		return json.RawMessage(`{"text":"` + strings.Repeat("x", n) + `"}`), err
	}})
	for n := range 2 * serverBuffer {
		if n > 10 && (n < serverBuffer-200 || n > serverBuffer) {
			continue
		}
		body, h := modern(1, "tools/call", `{"name":"`+strconv.Itoa(n)+`"}`, `{}`)
		r := s.send(ctxFor(t), http.MethodPost, body, h...)
		got, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.ContentLength != int64(len(got)) || len(got) < n {
			t.Fatalf("%d bytes of text: length %d, body %d bytes, %v", n, r.ContentLength, len(got), err)
		}
	}
}

func TestCompleteAddsResultFields(t *testing.T) {
	s := &Server{defaultMembers: defaultMembers(nil)}
	for in, want := range map[string]string{
		`{}`:                           `{"resultType":"complete","ttlMs":0,"cacheScope":"private"}`,
		` { "a" : 1 }`:                 ` {"resultType":"complete","ttlMs":0,"cacheScope":"private", "a" : 1 }`,
		`{"resultType":"x","ttlMs":5}`: `{"cacheScope":"private","resultType":"x","ttlMs":5}`,
		`{"resultType":"x","ttlMs":5,"cacheScope":"public"}`: `{"resultType":"x","ttlMs":5,"cacheScope":"public"}`,
		`[]`:   `[]`,
		`null`: `null`,
	} {
		m := &mcp.Message{Result: json.RawMessage(in), ResultPrefix: s.missingMembers(json.RawMessage(in), true)}
		m.MergePrefix()
		if got := m.Result; string(got) != want {
			t.Errorf("complete(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestSubscriptionsListen(t *testing.T) {
	var served []string
	h := &scripted{}
	h.serve = func(_ context.Context, r *Request) (json.RawMessage, error) {
		served = append(served, r.Method+" "+rawjson.FieldString(r.Params, "uri"))
		if rawjson.FieldString(r.Params, "uri") == "bad" {
			return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "bad"}
		}
		return json.RawMessage(`{}`), nil
	}
	s := newSite(t, Options{}, h)
	listen := func(filter string) *http.Response {
		body, mh := modern(9, "subscriptions/listen", `{"notifications":`+filter+`}`, `{}`)
		return s.send(ctxFor(t), "POST", body, mh...)
	}
	e := readEvents(t, listen(`{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:b","a:b"]}`))
	ack := e.want()
	if ack.Method != "notifications/subscriptions/acknowledged" || string(rawjson.Field(ack.Params, "_meta", mcp.MetaSubscriptionID)) != "9" ||
		string(rawjson.Field(ack.Params, "notifications")) != `{"resourceSubscriptions":["a:b"],"toolsListChanged":true}` {
		t.Fatalf("acknowledged %s", ack.Params)
	}
	for s.subs.len() == 0 { // the acknowledgement is sent first
		<-ctxTick(t)
	}
	s.Notify("notifications/prompts/list_changed", nil)
	s.Notify("notifications/message", json.RawMessage(`{"level":"error"}`))
	s.Notify("notifications/resources/updated", json.RawMessage(`{"uri":"x:y"}`))
	s.Notify("notifications/resources/updated", json.RawMessage(`{"uri":"a:b"}`))
	s.Notify("notifications/tools/list_changed", nil)
	if m := e.want(); m.Method != "notifications/resources/updated" || string(m.Params) != `{"_meta":{"io.modelcontextprotocol/subscriptionId":9},"uri":"a:b"}` {
		t.Errorf("got %s %s", m.Method, m.Params)
	}
	if m := e.want(); m.Method != "notifications/tools/list_changed" || string(rawjson.Field(m.Params, "_meta", mcp.MetaSubscriptionID)) != "9" {
		t.Errorf("got %s %s", m.Method, m.Params)
	}
	// A subscription without any notifications ends immediately.
	none := readEvents(t, listen(`{}`))
	none.want()
	if m := none.want(); m.ID != "9" || !strings.Contains(string(m.Result), `"resultType":"complete"`) {
		t.Errorf("got %+v", m)
	}
	for filter, part := range map[string]string{`5`: "-32602", `{"resourceSubscriptions":["a:b",3]}`: "-32602", `{"resourceSubscriptions":["ok","bad"]}`: "bad"} {
		resp := listen(filter)
		b := make([]byte, 1000)
		n, _ := resp.Body.Read(b)
		resp.Body.Close()
		if resp.StatusCode != 400 || !strings.Contains(string(b[:n]), part) {
			t.Errorf("listen(%s) = %d %s", filter, resp.StatusCode, b[:n])
		}
	}
	// Closing the server ends the subscription with a response.
	s.Close()
	if m := e.want(); m.ID != "9" || string(rawjson.Field(m.Result, "_meta", mcp.MetaSubscriptionID)) != "9" {
		t.Errorf("the last message is %+v", m)
	}
	e.wantEnd()
	if !strings.Contains(strings.Join(served, ","), "resources/subscribe a:b,") || !strings.Contains(strings.Join(served, ","), "resources/unsubscribe ok") {
		t.Errorf("served %v", served)
	}
}
