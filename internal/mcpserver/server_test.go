package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// scripted is a Handler made of functions.
type scripted struct {
	describe func(ctx context.Context, r *Request) (Description, error)
	serve    func(ctx context.Context, r *Request) (json.RawMessage, error)
	notified func(ctx context.Context, s *Session, method string, params json.RawMessage)
}

func (h *scripted) Describe(ctx context.Context, r *Request) (Description, error) {
	if h.describe != nil {
		return h.describe(ctx, r)
	}
	return Description{
		Info:         json.RawMessage(`{"name":"scripted","version":"1"}`),
		Capabilities: json.RawMessage(`{"tools":{"listChanged":true},"resources":{"subscribe":true}}`),
		Instructions: "Use <it>.",
	}, nil
}

func (h *scripted) Serve(ctx context.Context, r *Request) (json.RawMessage, error) {
	if h.serve != nil {
		return h.serve(ctx, r)
	}
	switch r.Method {
	case "tools/list":
		return json.RawMessage(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`), nil
	case "tools/call":
		return rawjson.Field(r.Params, "arguments"), nil
	case "resources/subscribe", "resources/unsubscribe", "logging/setLevel":
		return json.RawMessage(`{}`), nil
	}
	return nil, &tool.Error{Kind: tool.MethodNotFound, Msg: "no method " + r.Method}
}

func (h *scripted) Notified(ctx context.Context, s *Session, method string, params json.RawMessage) {
	if h.notified != nil {
		h.notified(ctx, s, method, params)
	}
}

// site is a Server over real HTTP.
type site struct {
	*Server
	t   testing.TB
	url string
}

func newSite(t testing.TB, o Options, h Handler) *site {
	t.Helper()
	s := New(o, h)
	hs := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		hs.CloseClientConnections()
		hs.Close()
	})
	return &site{Server: s, t: t, url: hs.URL}
}

// ctxFor bounds a test that waits for something.
func ctxFor(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (s *site) send(ctx context.Context, method, body string, headers ...string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp
}

func (s *site) post(body string, headers ...string) reply {
	s.t.Helper()
	return s.do(http.MethodPost, body, headers...)
}

func (s *site) do(method, body string, headers ...string) reply {
	s.t.Helper()
	resp := s.send(ctxFor(s.t), method, body, headers...)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(b)}
}

// open creates a session and returns the headers that identify it.
func (s *site) open(version, capabilities string) []string {
	s.t.Helper()
	r := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, version, capabilities))
	if r.status != http.StatusOK {
		s.t.Fatalf("initialize: %d %s", r.status, r.body)
	}
	h := []string{headerSession, r.header.Get(headerSession), headerProtocol, version}
	if got := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, h...); got.status != http.StatusAccepted {
		s.t.Fatalf("initialized: %d %s", got.status, got.body)
	}
	return h
}

// events reads an event stream message by message.
type events struct {
	t  testing.TB
	r  *bufio.Reader
	id string // of the last event
	c  io.Closer
}

func readEvents(t testing.TB, resp *http.Response) *events {
	t.Helper()
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("no event stream: %d %s %s", resp.StatusCode, resp.Header.Get("Content-Type"), b)
	}
	e := &events{t: t, r: bufio.NewReader(resp.Body), c: resp.Body}
	t.Cleanup(func() { resp.Body.Close() })
	return e
}

func (e *events) next() (mcp.Message, error) {
	for {
		line, err := e.r.ReadString('\n')
		if err != nil {
			return mcp.Message{}, err
		}
		line = strings.TrimRight(line, "\n")
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			e.id = id
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && data != "" {
			return mcp.Decode([]byte(data), mcp.Limits{})
		}
	}
}

func (e *events) want() mcp.Message {
	e.t.Helper()
	m, err := e.next()
	if err != nil {
		e.t.Fatalf("event: %v", err)
	}
	return m
}

func (e *events) wantEnd() {
	e.t.Helper()
	if m, err := e.next(); err == nil {
		e.t.Fatalf("one more event: %+v", m)
	}
}

// modern makes a request of the stateless era and its headers.
func modern(id int, method, params, capabilities string) (string, []string) {
	p := json.RawMessage(params)
	if len(p) == 0 {
		p = json.RawMessage(`{}`)
	}
	p = rawjson.SetField(p, json.RawMessage(capabilities), "_meta", mcp.MetaClientCapabilities)
	p = rawjson.SetField(p, json.RawMessage(`"`+mcp.Version20260728+`"`), "_meta", mcp.MetaProtocolVersion)
	h := []string{headerProtocol, mcp.Version20260728, headerMethod, method}
	for _, field := range []string{"name", "uri"} {
		if v := rawjson.FieldString(p, field); v != "" {
			h = append(h, headerName, mcp.HeaderValue(v))
		}
	}
	return string(mcp.AppendMessage(nil, &mcp.Message{ID: mcp.NumberID(int64(id)), Method: method, Params: p})), h
}

func (s *site) modern(id int, method, params, capabilities string) reply {
	s.t.Helper()
	body, h := modern(id, method, params, capabilities)
	return s.post(body, h...)
}

func wantBody(t testing.TB, r reply, status int, parts ...string) {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	for _, part := range parts {
		if !strings.Contains(r.body, part) {
			t.Errorf("answer lacks %q: %s", part, r.body)
		}
	}
}

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

// blocked is a Handler whose calls wait for their cancellation and report its
// cause.
type blocked struct {
	scripted
	begun chan *Request
	ended chan error
}

func newBlocked() *blocked {
	b := &blocked{begun: make(chan *Request, 16), ended: make(chan error, 16)}
	b.serve = func(ctx context.Context, r *Request) (json.RawMessage, error) {
		b.begun <- r
		<-ctx.Done()
		b.ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}
	return b
}

func (b *blocked) wantEnd(t testing.TB, want error) {
	t.Helper()
	select {
	case err := <-b.ended:
		if !errors.Is(err, want) {
			t.Errorf("the call ended by %v, want %v", err, want)
		}
	case <-time.After(time.Minute):
		t.Fatal("the call goes on")
	}
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

func newHTTP(t testing.TB, h http.Handler) string {
	hs := httptest.NewServer(h)
	t.Cleanup(func() {
		hs.CloseClientConnections()
		hs.Close()
	})
	return hs.URL
}

// ctxTick lets other goroutines run before a condition is checked again.
func ctxTick(t testing.TB) <-chan time.Time {
	if err := ctxFor(t).Err(); err != nil {
		t.Fatal(err)
	}
	return time.After(time.Millisecond)
}
