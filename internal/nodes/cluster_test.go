package nodes

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// place is a node with an MCP server over HTTP.
type place struct {
	t      *testing.T
	node   *Node
	server *mcpserver.Server
	url    string
	store  *switched
	stop   func()
}

// handler responds according to the method.
type handler struct{ ended chan error }

func (h *handler) Describe(context.Context, *mcpserver.Request) (mcpserver.Description, error) {
	return mcpserver.Description{Info: json.RawMessage(`{"name":"t","version":"1"}`), Capabilities: json.RawMessage(`{"logging":{}}`)}, nil
}

func (h *handler) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

func (h *handler) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	switch r.Method {
	case "ask":
		fallthrough
	case "tools/call":
		r.Exchange.Notify("notifications/progress", json.RawMessage(`{"progressToken":"x","progress":1}`))
		got, err := r.Exchange.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"sure?"}`))
		if err != nil {
			h.ended <- context.Cause(ctx)
			return nil, err
		}
		return json.RawMessage(`{"heard":` + string(got) + `}`), nil
	case "level":
		return json.RawMessage(fmt.Sprintf(`{"level":%q,"uris":%d}`, r.Session.LogLevel(), len(r.Session.Subscriptions()))), nil
	case "shout":
		r.Session.Notify("notifications/message", json.RawMessage(`{"level":"error","data":"hey"}`))
		r.Session.Notify("notifications/tools/list_changed", nil)
	}
	return json.RawMessage(`{}`), nil
}

func (w *testCluster) place(view string, h mcpserver.Handler) *place {
	n, s, stop := w.node()
	p := &place{t: w.t, node: n, store: s, stop: stop}
	p.server = mcpserver.New(mcpserver.Options{Cluster: n.Cluster(), View: view, Log: slog.New(slog.DiscardHandler)}, h)
	hs := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		who := r.Header.Get("X-Caller")
		p.server.ServeHTTP(rw, r.WithContext(tool.WithCaller(r.Context(), tool.Caller{ID: "key:" + who, Name: who})))
	}))
	p.url = hs.URL
	w.t.Cleanup(func() {
		p.server.Close()
		hs.CloseClientConnections()
		hs.Close()
	})
	return p
}

func (p *place) send(ctx context.Context, method, body string, headers ...string) *http.Response {
	p.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, p.url, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func (p *place) post(body string, headers ...string) (int, string) {
	p.t.Helper()
	resp := p.send(limit(p.t), "POST", body, headers...)
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// open creates a session and returns the headers that identify it.
func (p *place) open() []string {
	p.t.Helper()
	resp := p.send(limit(p.t), "POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`, "X-Caller", "me")
	if resp.StatusCode != 200 {
		p.t.Fatal(resp.Status)
	}
	return []string{"Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"), "X-Caller", "me"}
}

// stream reads events.
type stream struct {
	t  *testing.T
	r  *bufio.Reader
	id string
}

func events(t *testing.T, resp *http.Response) *stream {
	t.Helper()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("no event stream: %s %s", resp.Status, b)
	}
	return &stream{t: t, r: bufio.NewReader(resp.Body)}
}

func (s *stream) next() mcp.Message {
	s.t.Helper()
	for {
		line, err := s.r.ReadString('\n')
		if err != nil {
			s.t.Fatalf("the stream ended: %v", err)
		}
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			s.id = strings.TrimSpace(id)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "" {
			m, err := mcp.Decode([]byte(strings.TrimSpace(data)), mcp.Limits{})
			if err != nil {
				s.t.Fatal(err)
			}
			return m
		}
	}
}

func expect(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%s: %s, want %s in it", what, got, part)
		}
	}
}

const call = `{"jsonrpc":"2.0","id":7,"method":"ask"}`

// TestSessionOnAnyNode checks that a session created on one node is served by
// another, for the same caller and view only.
func TestSessionOnAnyNode(t *testing.T) {
	w := newTestCluster(t)
	h := &handler{ended: make(chan error, 10)}
	a, b, other := w.place("meta", h), w.place("meta", h), w.place("direct", h)
	for _, p := range []*place{a, b} {
		for _, q := range []*place{a, b} {
			wait(t, "known to each other", func() bool {
				p.node.mu.Lock()
				defer p.node.mu.Unlock()
				return p == q || p.node.others[q.node.ID()]
			})
		}
	}
	me := a.open()
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for what, tt := range map[string]struct {
		at     *place
		header []string
		status int
	}{
		"here":        {a, me, 200},
		"there":       {b, me, 200},
		"other view":  {other, me, 404},
		"someone":     {b, []string{me[0], me[1], "X-Caller", "you"}, 404},
		"stranger":    {b, []string{me[0], "NOSUCHSESSION", "X-Caller", "me"}, 404},
		"absurd name": {b, []string{me[0], strings.Repeat("x", 500), "X-Caller", "me"}, 404},
	} {
		if status, body := tt.at.post(ping, tt.header...); status != tt.status {
			t.Errorf("%s: %d %s, want %d", what, status, body, tt.status)
		}
	}

	t.Run("what it asked for", func(t *testing.T) {
		a.post(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}`, me...)
		a.post(`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a://b"}}`, me...)
		late := w.place("meta", h)
		for _, p := range []*place{b, late} {
			wait(t, "level and resources known elsewhere", func() bool {
				_, body := p.post(`{"jsonrpc":"2.0","id":4,"method":"level"}`, me...)
				return strings.Contains(body, `"level":"error","uris":1`)
			})
		}
	})

	t.Run("question and answer", func(t *testing.T) {
		e := events(t, b.send(limit(t), "POST", call, me...))
		e.next() // progress
		q := e.next()
		if q.Method != "elicitation/create" {
			t.Fatalf("question %+v", q)
		}
		for _, id := range []string{`"junctor-x"`, `"other-` + b.node.ID() + `-1"`} { // ids of questions unknown to this node
			a.post(`{"jsonrpc":"2.0","id":`+id+`,"result":{}}`, me...)
		}
		if status, _ := a.post(`{"jsonrpc":"2.0","id":`+string(q.ID)+`,"result":{"action":"accept"}}`, me...); status != 202 {
			t.Errorf("the answer was taken with %d", status)
		}
		if m := e.next(); string(m.Result) != `{"heard":{"action":"accept"}}` {
			t.Errorf("result %s, %v", m.Result, m.Error)
		}
	})

	t.Run("cancel", func(t *testing.T) {
		e := events(t, b.send(limit(t), "POST", call, me...))
		e.next()
		e.next()
		a.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, me...)
		if err := <-h.ended; err == nil || !strings.Contains(err.Error(), "cancelled") {
			t.Errorf("the call ended with %v", err)
		}
	})

	t.Run("own stream", func(t *testing.T) {
		e := events(t, a.send(limit(t), "GET", "", me...))
		wait(t, "b knows who reads", func() bool {
			b.post(`{"jsonrpc":"2.0","id":5,"method":"shout"}`, me...)
			a.node.mu.Lock()
			defer a.node.mu.Unlock()
			return !a.node.seen[b.node.ID()].IsZero()
		})
		if m := e.next(); m.Method != "notifications/message" || !strings.Contains(string(m.Params), "hey") {
			t.Errorf("heard %+v", m)
		}
		// The stream is resumed on b, which does not store its events.
		again := events(t, b.send(limit(t), "GET", "", append(me, "Last-Event-ID", strings.TrimSuffix(e.id, "1")+"0")...))
		if m := again.next(); m.Method != "notifications/message" {
			t.Errorf("replayed %+v", m)
		}
	})

	t.Run("taken up elsewhere", func(t *testing.T) {
		ctx, cancel := context.WithCancel(limit(t))
		e := events(t, a.send(ctx, "POST", call, me...))
		e.next()
		cancel()
		again := events(t, b.send(limit(t), "GET", "", append(me, "Last-Event-ID", e.id)...))
		q := again.next()
		if q.Method != "elicitation/create" {
			t.Fatalf("question %+v", q)
		}
		b.post(`{"jsonrpc":"2.0","id":`+string(q.ID)+`,"result":{"n":1}}`, me...)
		if m := again.next(); string(m.Result) != `{"heard":{"n":1}}` {
			t.Errorf("result %s, %v", m.Result, m.Error)
		}
		if status, body := b.post("", append(me, "Last-Event-ID", e.id)...); status == 200 {
			t.Errorf("a POST with nothing: %s", body)
		}
	})

	t.Run("streams of the dead", func(t *testing.T) {
		c := w.place("meta", h)
		resp := c.send(limit(t), "GET", "", me...)
		events(t, resp)
		gone := c.node.ID()
		c.stop()
		resp = b.send(limit(t), "GET", "", append(me, "Last-Event-ID", gone+".CALL_3")...)
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 400 {
			t.Errorf("the stream of a call of a dead node: %d %s", resp.StatusCode, body)
		}
		events(t, b.send(limit(t), "GET", "", append(me, "Last-Event-ID", gone+".own_3")...))
	})

	t.Run("end", func(t *testing.T) {
		if resp := b.send(limit(t), "DELETE", "", me...); resp.StatusCode != 204 {
			t.Errorf("DELETE: %s", resp.Status)
		}
		wait(t, "its end at a", func() bool {
			status, _ := a.post(ping, me...)
			return status == 404
		})
	})
}

// TestParkedCallIsFoundOnOtherNode checks that the retry of a parked call
// finds it on another node or gets an error that it is lost.
func TestParkedCallIsFoundOnOtherNode(t *testing.T) {
	w := newTestCluster(t)
	h := &handler{ended: make(chan error, 10)}
	a, b := w.place("meta", h), w.place("meta", h)
	modern := func(id int, params string) (string, []string) {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x",%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"progressToken":"x"}}}`, id, params)
		return body, []string{"X-Caller", "me", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "x"}
	}
	ask := func(p *place) string {
		body, header := modern(1, "")
		e := events(t, p.send(limit(t), "POST", body, header...))
		e.next()
		m := e.next()
		return rawjson.FieldString(m.Result, "requestState")
	}
	state := ask(a)
	if !strings.Contains(state, a.node.ID()) {
		t.Fatalf("state %q", state)
	}
	wait(t, "a known at b", func() bool { return b.node.Known(context.Background(), a.node.ID()) })
	body, header := modern(2, fmt.Sprintf(`"requestState":%q,"inputResponses":{"1":{"action":"accept"}},`, state))
	for who, want := range map[string]string{"you": "not valid", "me": `"heard":{"action":"accept"}`} {
		if who == "me" {
			continue
		}
		_, answer := b.post(body, append(header, "X-Caller", who)...)
		expect(t, who, answer, want)
	}
	_, answer := b.post(body, header...)
	expect(t, "the retry", answer, `"id":2`, `"heard":{"action":"accept"}`)
	_, answer = b.post(body, header...)
	expect(t, "the same again", answer, "used already")

	state = ask(a)
	ctx, leave := context.WithCancel(limit(t))
	body, header = modern(3, fmt.Sprintf(`"requestState":%q,"inputResponses":{},`, state))
	resp := b.send(ctx, "POST", body, header...) // not answered: the question is asked again
	text, _ := io.ReadAll(resp.Body)
	expect(t, "a retry without the answer", string(text), "input_required")
	leave()

	body, header = modern(4, fmt.Sprintf(`"requestState":%q,`, state))
	a.server.Close()
	a.stop()
	_, answer = b.post(body, header...)
	expect(t, "a lost call", answer, `-32602`, "make the request again without it")
	body, header = modern(5, `"requestState":"junctor.SOMEONE.else",`)
	resp = b.send(limit(t), "POST", body, header...)
	e := events(t, resp)
	e.next()
	if m := e.next(); rawjson.FieldString(m.Result, "resultType") != "input_required" {
		t.Errorf("a state of another gateway: %s %v", m.Result, m.Error)
	}
}

// TestSessionsWhileStoreIsUnavailable checks that while the store is
// unavailable a session is served by the node that created it, and shared
// later. Another node responds with 404, or with 503 if it cannot reach the
// store either.
func TestSessionsWhileStoreIsUnavailable(t *testing.T) {
	w := newTestCluster(t)
	h := &handler{ended: make(chan error, 10)}
	a := w.place("meta", h)
	b := w.place("meta", h)
	a.store.away.Store(true)
	me := a.open()
	if status, body := a.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, me...); status != 200 {
		t.Errorf("served here: %d %s", status, body)
	}
	if status, _ := b.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, me...); status != 404 {
		t.Errorf("served there with %d", status)
	}
	b.store.away.Store(true)
	if status, body := b.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, me...); status != 503 {
		t.Errorf("looked up without a store: %d %s", status, body)
	}
	if resp := a.send(limit(t), "DELETE", "", me...); resp.StatusCode != 503 {
		t.Errorf("ended without a store: %s", resp.Status)
	}
	a.store.away.Store(false)
	b.store.away.Store(false)
	// A later change stores the session.
	a.post(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}`, me...)
	wait(t, "the session elsewhere", func() bool {
		status, _ := b.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, me...)
		return status == 200
	})
	huge := fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":"1"}}}`, strings.Repeat("x", 70<<10))
	if _, body := a.post(huge, "X-Caller", "me"); !strings.Contains(body, "too large") {
		t.Errorf("a huge client: %.200s", body)
	}
}
