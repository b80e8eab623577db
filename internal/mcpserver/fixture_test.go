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
