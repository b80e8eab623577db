package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

func TestHandshakeEra(t *testing.T) {
	for _, version := range handshakeVersions {
		t.Run(version, func(t *testing.T) {
			s := newSite(t, Options{}, &scripted{})
			h := s.open(version, `{}`)
			wantBody(t, s.post(`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`, h...), 200, `{"jsonrpc":"2.0","id":"a","result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}`)
			wantBody(t, s.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"n":12345678901234567890, "x":null}}}`, h...), 200, `"result":{"n":12345678901234567890, "x":null}`)
			wantBody(t, s.post(`{"jsonrpc":"2.0","id":3,"method":"ping"}`, h...), 200, `"id":3,"result":{}`)
			wantBody(t, s.post(`{"jsonrpc":"2.0","id":4,"method":"no/such"}`, h...), 200, `"code":-32601`, `METHOD_NOT_FOUND`)
			// Some clients predate the header.
			wantBody(t, s.post(`{"jsonrpc":"2.0","id":5,"method":"ping"}`, headerSession, h[1]), 200, `"id":5`)
			wantBody(t, s.do(http.MethodDelete, "", h...), 204)
			wantBody(t, s.post(`{"jsonrpc":"2.0","id":6,"method":"ping"}`, h...), 404, "initialize again")
			if n := s.Sessions(); n != 0 {
				t.Errorf("%d sessions after DELETE", n)
			}
		})
	}
}

func TestInitialize(t *testing.T) {
	s := newSite(t, Options{}, &scripted{})
	for name, tt := range map[string]struct{ asked, got string }{
		"old":     {mcp.Version20241105, mcp.Version20241105},
		"new":     {mcp.Version20251125, mcp.Version20251125},
		"unknown": {"1999-01-01", mcp.Version20251125},
		"future":  {"2030-01-01", mcp.Version20251125},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + tt.asked + `","capabilities":{}}}`)
			wantBody(t, r, 200, `"protocolVersion":"`+tt.got+`"`, `"serverInfo":{"name":"scripted","version":"1"}`, `"instructions":"Use <it>."`)
			if r.header.Get(headerSession) == "" {
				t.Error("no session id")
			}
		})
	}
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`), 200, "-32602", "protocolVersion")
	wantBody(t, s.post(`{"jsonrpc":"2.0","method":"initialize"}`), 400, "sent as a single request")
	wantBody(t, s.post(`[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}]`), 400, "sent as a single request")
	only := s.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`, "Accept", "text/event-stream")
	wantBody(t, only, 200, "data: {", "event: message")
}

func TestHTTPRefusesInvalidRequests(t *testing.T) {
	s := newSite(t, Options{Limits: mcp.Limits{MaxBytes: 1000}}, &scripted{})
	h := s.open(mcp.Version20250618, `{}`)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for name, tt := range map[string]struct {
		method, body string
		headers      []string
		status       int
		part         string
	}{
		"broken JSON":        {"POST", `{"jsonrpc":`, h, 400, "-32700"},
		"empty":              {"POST", ``, h, 400, "-32700"},
		"no object":          {"POST", `"hello"`, h, 400, "-32600"},
		"no version":         {"POST", `{"id":1,"method":"ping"}`, h, 400, `\"jsonrpc\"`},
		"bad id":             {"POST", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, h, 400, "-32600"},
		"too large":          {"POST", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 2000) + `"}`, h, 413, "limit"},
		"text":               {"POST", ping, append(h, "Content-Type", "text/plain"), 415, "application/json"},
		"no type":            {"POST", ping, append(h, "Content-Type", ""), 415, "application/json"},
		"accept":             {"POST", ping, append(h, "Accept", "image/png"), 406, "Accept"},
		"no session":         {"POST", ping, nil, 400, "initialize first"},
		"unknown session":    {"POST", ping, []string{headerSession, "x"}, 404, "initialize again"},
		"unknown version":    {"POST", ping, append(h, headerProtocol, "1999-01-01"), 400, "-32022"},
		"batch":              {"POST", `[` + ping + `]`, h, 400, "does not support batches"},
		"empty batch":        {"POST", `[]`, h, 400, "does not support batches"},
		"put":                {"PUT", ``, nil, 405, "use POST"},
		"get, no session":    {"GET", ``, []string{headerProtocol, mcp.Version20251125}, 400, "initialize first"},
		"get, accept":        {"GET", ``, append(h, "Accept", "application/json"), 406, "event-stream"},
		"get, stateless":     {"GET", ``, []string{headerProtocol, mcp.Version20260728}, 405, "subscriptions/listen"},
		"get, odd event":     {"GET", ``, append(h, headerLastEvent, "nonsense"), 400, "Last-Event-ID is not valid"},
		"get, gone stream":   {"GET", ``, append(h, headerLastEvent, "gone_3"), 400, "its answer is no longer available"},
		"get, gone events":   {"GET", ``, append(h, headerLastEvent, "own_7"), 400, "events after this Last-Event-ID are no longer available"},
		"delete, no session": {"DELETE", ``, nil, 400, "initialize first"},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.do(tt.method, tt.body, tt.headers...)
			wantBody(t, r, tt.status, tt.part)
			if _, err := mcp.Decode([]byte(r.body), mcp.Limits{}); err != nil {
				t.Errorf("the refusal is no JSON-RPC message: %v: %s", err, r.body)
			}
		})
	}
}

func TestBatches(t *testing.T) {
	s := newSite(t, Options{}, &scripted{})
	h := s.open(mcp.Version20250326, `{}`)
	r := s.post(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"method":"tools/list"},{"id":3}]`, h...)
	wantBody(t, r, 200, `"id":1,"result":{}`, `"id":2,"result":{"tools"`, `"id":3,"error":{"code":-32600`)
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(r.body), &all); err != nil || len(all) != 3 {
		t.Errorf("answers to a batch: %v, %s", err, r.body)
	}
	wantBody(t, s.post(`[{"jsonrpc":"2.0","method":"notifications/x"}]`, h...), 202)
}

func TestErrorsOnTheWire(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string
	}{
		"of the wire": {&mcp.Error{Code: -1, Message: "theirs", Data: json.RawMessage(`{"a":[1]}`)}, []string{`"code":-1,"message":"theirs","data":{"a":[1]}`}},
		"of a kind":   {fmt.Errorf("wrapped: %w", &tool.Error{Kind: tool.CircuitOpen, Msg: "open", RetryAfter: 2 * time.Second, Details: map[string]int{"n": 1}}), []string{`-32005`, `"message":"open"`, `"retryAfterSeconds":2`, `"details":{"n":1}`}},
		"no details":  {&tool.Error{Kind: tool.Timeout, Msg: "slow", Details: func() {}}, []string{`-32007`, `"code":"TIMEOUT"`}},
		"hidden":      {errors.New("secret path"), []string{`-32603`, "internal error"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, Options{}, &scripted{serve: func(context.Context, *Request) (json.RawMessage, error) { return nil, tt.err }})
			r := s.post(`{"jsonrpc":"2.0","id":1,"method":"x"}`, s.open(mcp.Version20251125, `{}`)...)
			wantBody(t, r, 200, tt.want...)
			if strings.Contains(r.body, "secret") {
				t.Errorf("the cause is shown: %s", r.body)
			}
		})
	}
	s := newSite(t, Options{}, &scripted{serve: func(context.Context, *Request) (json.RawMessage, error) { panic("boom") }})
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":1,"method":"x"}`, s.open(mcp.Version20251125, `{}`)...), 200, "-32603")
}

func TestNotificationsPrecedeResponse(t *testing.T) {
	const n = 200
	s := newSite(t, Options{}, &scripted{serve: func(_ context.Context, r *Request) (json.RawMessage, error) {
		for i := range n {
			r.Exchange.Notify("notifications/progress", json.RawMessage(fmt.Sprintf(`{"progressToken":"p","progress":%d}`, i)))
		}
		return json.RawMessage(`{}`), nil
	}})
	h := s.open(mcp.Version20251125, `{}`)
	read := func(t *testing.T, resp *http.Response) {
		e := readEvents(t, resp)
		for i := range n {
			m := e.want()
			if got := string(rawjson.Field(m.Params, "progress")); got != fmt.Sprint(i) || m.Method != "notifications/progress" {
				t.Fatalf("notification %d is %+v", i, m)
			}
		}
		if m := e.want(); m.ID != "1" || m.Result == nil {
			t.Fatalf("answer is %+v", m)
		}
		e.wantEnd()
	}
	t.Run("handshake", func(t *testing.T) {
		read(t, s.send(ctxFor(t), "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, h...))
	})
	t.Run("stateless", func(t *testing.T) {
		body, h := modern(1, "tools/call", `{"name":"x"}`, `{}`)
		read(t, s.send(ctxFor(t), "POST", body, h...))
	})
	t.Run("plain", func(t *testing.T) {
		wantBody(t, s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, append(h, "Accept", "application/json")...), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
}

func TestDisconnectCancelsCall(t *testing.T) {
	for name, tt := range map[string]struct {
		request func(s *site) (string, []string)
		cause   error
	}{
		"handshake": {func(s *site) (string, []string) {
			return `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, s.open(mcp.Version20250618, `{}`)
		}, errCallerLeft},
		"stateless":                {func(*site) (string, []string) { return modern(1, "tools/call", `{"name":"x"}`, `{}`) }, context.Canceled},
		"stateless, may be parked": {func(*site) (string, []string) { return modern(1, "tools/call", `{"name":"x"}`, elicits) }, errCallerLeft},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlocked()
			s := newSite(t, Options{StreamAfter: time.Hour}, b)
			body, h := tt.request(s)
			ctx, cancel := context.WithCancel(ctxFor(t))
			go func() { <-b.begun; cancel() }()
			req, _ := http.NewRequestWithContext(ctx, "POST", s.url, strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			for i := 0; i < len(h); i += 2 {
				req.Header.Set(h[i], h[i+1])
			}
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
				t.Fatal("an answer")
			}
			b.wantEnd(t, tt.cause)
		})
	}
}

func TestCancelledNotification(t *testing.T) {
	b := newBlocked()
	s := newSite(t, Options{}, b)
	h := s.open(mcp.Version20250618, `{}`)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		<-b.begun
		s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`, h...)
		s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`, h...)
		s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, h...)
	})
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, h...), 200, "-32800")
	b.wantEnd(t, errCancelledByCaller)
}

func TestIDsInFlightAreUnique(t *testing.T) {
	b := newBlocked()
	s := newSite(t, Options{MaxCalls: 2}, b)
	h := s.open(mcp.Version20250618, `{}`)
	ctx, cancel := context.WithCancel(ctxFor(t))
	defer cancel()
	var wg sync.WaitGroup
	for _, id := range []string{"1", "2"} {
		wg.Go(func() {
			req, _ := http.NewRequestWithContext(ctx, "POST", s.url, strings.NewReader(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call"}`))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set(headerSession, h[1])
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		})
		<-b.begun
	}
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, h...), 200, "-32600", "still being answered")
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":3,"method":"tools/call"}`, h...), 200, "-32006", "in flight")
	cancel()
	wg.Wait()
}
