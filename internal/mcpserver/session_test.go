package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

func TestAskInTheHandshakeEra(t *testing.T) {
	answers := make(chan string, 1)
	s := newSite(t, Options{}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		got, err := r.Exchange.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"sure?"}`))
		if err != nil {
			answers <- err.Error()
			return nil, err
		}
		answers <- string(got)
		return json.RawMessage(`{"ok":true}`), nil
	}})
	h := s.open(mcp.Version20251125, `{"elicitation":{}}`)
	ask := func() (*events, mcp.Message) {
		e := readEvents(t, s.send(ctxFor(t), "POST", `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, h...))
		return e, e.want()
	}
	t.Run("answered", func(t *testing.T) {
		e, q := ask()
		if !q.IsRequest() || q.Method != "elicitation/create" || string(q.Params) != `{"message":"sure?"}` {
			t.Fatalf("question = %+v", q)
		}
		wantBody(t, s.post(`{"jsonrpc":"2.0","id":"nobody","result":{}}`, h...), 202)
		wantBody(t, s.post(`{"jsonrpc":"2.0","id":`+string(q.ID)+`,"result":{"action":"accept","n":1.0}}`, h...), 202)
		if m := e.want(); string(m.Result) != `{"ok":true}` || m.ID != "7" {
			t.Errorf("answer = %+v", m)
		}
		if got := <-answers; got != `{"action":"accept","n":1.0}` {
			t.Errorf("Ask = %s", got)
		}
	})
	t.Run("refused", func(t *testing.T) {
		e, q := ask()
		s.post(`{"jsonrpc":"2.0","id":`+string(q.ID)+`,"error":{"code":-1,"message":"no"}}`, h...)
		if m := e.want(); m.Error == nil || m.Error.Code != -1 {
			t.Errorf("answer = %+v", m)
		}
		<-answers
	})
	t.Run("cannot", func(t *testing.T) {
		poor := s.open(mcp.Version20251125, `{"sampling":{}}`)
		wantBody(t, s.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, poor...), 200, "does not support elicitation")
		<-answers
	})
}

func TestClientCapabilitiesLimitServerRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		capabilities, method, params string
		ok                           bool
	}{
		"form":       {`{"elicitation":{}}`, "elicitation/create", `{}`, true},
		"url":        {`{"elicitation":{"url":{}}}`, "elicitation/create", `{"mode":"url"}`, true},
		"no url":     {`{"elicitation":{}}`, "elicitation/create", `{"mode":"url"}`, false},
		"sampling":   {`{"sampling":{}}`, "sampling/createMessage", `{}`, true},
		"roots":      {`{"roots":{}}`, "roots/list", ``, true},
		"no roots":   {`{}`, "roots/list", ``, false},
		"who knows":  {`{"roots":{}}`, "tasks/get", ``, false},
		"no answers": {``, "sampling/createMessage", ``, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := mayAsk(json.RawMessage(tt.capabilities), tt.method, json.RawMessage(tt.params)); (err == nil) != tt.ok {
				t.Errorf("mayAsk = %v", err)
			}
		})
	}
}

func TestCancelledServerRequestIsWithdrawn(t *testing.T) {
	s := newSite(t, Options{}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		_, err := r.Exchange.Ask(ctx, "roots/list", nil)
		return json.RawMessage(`{"gave":"up"}`), map[bool]error{true: nil, false: fmt.Errorf("no error")}[err != nil]
	}})
	h := s.open(mcp.Version20250618, `{"roots":{}}`)
	e := readEvents(t, s.send(ctxFor(t), "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, h...))
	q, c := e.want(), e.want()
	if c.Method != "notifications/cancelled" || string(rawjson.Field(c.Params, "requestId")) != string(q.ID) {
		t.Errorf("after the question %+v came %+v", q, c)
	}
	if m := e.want(); string(m.Result) != `{"gave":"up"}` {
		t.Errorf("answer = %+v", m)
	}
}

func TestSubscribedResources(t *testing.T) {
	s := newSite(t, Options{}, &scripted{})
	h := s.open(mcp.Version20250618, `{}`)
	other := s.open(mcp.Version20250618, `{}`)
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}`, h...), 200)
	for _, uri := range []string{"file:///b", "file:///a/b", "file:///ab", "file:///a"} {
		s.Notify("notifications/resources/updated", rawjson.SetField(nil, json.RawMessage(`"`+uri+`"`), "uri"))
	}
	e := readEvents(t, s.send(ctxFor(t), "GET", "", h...))
	for _, want := range []string{"file:///a/b", "file:///a"} {
		if m := e.want(); rawjson.FieldString(m.Params, "uri") != want {
			t.Errorf("update of %s, want %s", rawjson.FieldString(m.Params, "uri"), want)
		}
	}
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":1,"method":"resources/unsubscribe","params":{"uri":"file:///a"}}`, h...), 200)
	s.Notify("notifications/resources/updated", json.RawMessage(`{"uri":"file:///a"}`))
	s.Notify("notifications/resources/updated", json.RawMessage(`{"of":"no resource"}`))
	s.Notify("notifications/end", nil)
	for _, headers := range [][]string{h, other} {
		if headers[1] == other[1] {
			e = readEvents(t, s.send(ctxFor(t), "GET", "", other...))
		}
		if m := e.want(); m.Method != "notifications/end" {
			t.Errorf("got %+v", m)
		}
	}
}

func TestLogLevel(t *testing.T) {
	s := newSite(t, Options{}, &scripted{serve: func(_ context.Context, r *Request) (json.RawMessage, error) {
		if r.Method == "tools/call" {
			for _, level := range []string{"debug", "warning", "odd"} {
				r.Exchange.Notify("notifications/message", json.RawMessage(`{"level":"`+level+`"}`))
			}
		}
		return json.RawMessage(`{}`), nil
	}})
	levels := func(t *testing.T, resp *http.Response) string {
		e := readEvents(t, resp)
		var got []string
		for {
			m := e.want()
			if m.IsResponse() {
				return strings.Join(got, " ")
			}
			got = append(got, rawjson.FieldString(m.Params, "level"))
		}
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`
	h := s.open(mcp.Version20250618, `{}`)
	if got := levels(t, s.send(ctxFor(t), "POST", call, h...)); got != "debug warning odd" {
		t.Errorf("without a level: %s", got)
	}
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`, h...), 200)
	if got := levels(t, s.send(ctxFor(t), "POST", call, h...)); got != "warning odd" {
		t.Errorf("from info: %s", got)
	}
	s.Notify("notifications/message", json.RawMessage(`{"level":"debug"}`))
	s.Notify("notifications/message", json.RawMessage(`{"level":"error"}`))
	e := readEvents(t, s.send(ctxFor(t), "GET", "", h...))
	if m := e.want(); rawjson.FieldString(m.Params, "level") != "error" {
		t.Errorf("own stream: %+v", m)
	}
	body, mh := modern(1, "tools/call", `{"name":"x","_meta":{"`+mcp.MetaLogLevel+`":"warning"}}`, `{}`)
	if got := levels(t, s.send(ctxFor(t), "POST", body, mh...)); got != "warning odd" {
		t.Errorf("stateless, from warning: %s", got)
	}
	wantBody(t, s.modern(1, "tools/call", `{"name":"x"}`, `{}`), 200, `"id":1,"result"`) // not one event
}

func TestSessionsBelongToTheirCaller(t *testing.T) {
	srv := New(Options{}, &scripted{})
	defer srv.Close()
	s := newSite(t, Options{}, &scripted{})
	s.Server = srv
	hs := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		srv.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), tool.Caller{ID: r.Header.Get("X-Who")})))
	})
	s.url = newHTTP(t, hs)
	r := s.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`, "X-Who", "ann")
	id := r.header.Get(headerSession)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	wantBody(t, s.post(ping, headerSession, id, "X-Who", "ann"), 200)
	wantBody(t, s.post(ping, headerSession, id, "X-Who", "bob"), 404)
	wantBody(t, s.do("DELETE", "", headerSession, id, "X-Who", "bob"), 404)
	wantBody(t, s.do("GET", "", headerSession, id, "X-Who", "bob"), 404)
}

func TestSessionsAreBounded(t *testing.T) {
	b := newBlocked()
	s := newSite(t, Options{MaxSessions: 2}, b)
	first, second := s.open(mcp.Version20250618, `{}`), s.open(mcp.Version20250618, `{}`)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	wantBody(t, s.post(ping, first...), 200) // second is now the longest idle
	third := s.open(mcp.Version20250618, `{}`)
	wantBody(t, s.post(ping, second...), 404)
	wantBody(t, s.post(ping, first...), 200)
	// While all of them are in use there is no room.
	ctx, cancel := context.WithCancel(ctxFor(t))
	var wg sync.WaitGroup
	for _, h := range [][]string{first, third} {
		wg.Go(func() { s.send2(ctx, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, h) })
		<-b.begun
	}
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`), 503, "too many sessions")
	cancel()
	wg.Wait()
}

// send2 posts and ignores errors, such as a cancellation.
func (s *site) send2(ctx context.Context, body string, h []string) {
	req, _ := http.NewRequestWithContext(ctx, "POST", s.url, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
	}
}

func TestSessionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := New(Options{SessionIdle: time.Hour}, &scripted{})
		defer srv.Close()
		session := srv.open(newSession(tool.Local, nil))
		var ended atomic.Bool
		session.OnEnd(func() { ended.Store(true) })
		time.Sleep(50 * time.Minute)
		session.enter()
		time.Sleep(5 * time.Hour) // it has a reader
		session.leave()
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		if srv.Sessions() != 1 || ended.Load() {
			t.Fatal("a session in use has expired")
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if srv.Sessions() != 0 || !ended.Load() {
			t.Error("an idle session lives on")
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	b := newBlocked()
	s := newSite(t, Options{}, b)
	h := s.open(mcp.Version20250618, `{}`)
	e := readEvents(t, s.send(ctxFor(t), "GET", "", h...))
	var wg sync.WaitGroup
	wg.Go(func() {
		r := s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, h...)
		if r.status != 200 && r.status != 503 {
			t.Errorf("call in flight: %d %s", r.status, r.body)
		}
	})
	<-b.begun
	s.Close()
	wg.Wait()
	e.wantEnd()
	wantBody(t, s.post(`{}`), 503, "shutting down")
	if srv := New(Options{}, b); true {
		srv.Close()
		if srv.open(newSession(tool.Local, nil)) != nil {
			t.Error("a session after Close")
		}
	}
}

// A thousand idle sessions are cheap.
func TestSessionsAreCheap(t *testing.T) {
	const n = 1000
	s := newSite(t, Options{}, &scripted{})
	measure := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	s.open(mcp.Version20251125, `{}`)
	before := measure()
	for range n {
		s.open(mcp.Version20251125, `{"elicitation":{"form":{}},"sampling":{},"roots":{"listChanged":true}}`)
	}
	per := (int64(measure()) - int64(before)) / n
	t.Logf("%d bytes a session", per)
	if per > 15_000 {
		t.Errorf("%d bytes a session", per)
	}
	runtime.KeepAlive(s)
}

func TestSlowReaderLosesNotificationsNotResponses(t *testing.T) {
	st := newEventStream("s", false, 1)
	big := json.RawMessage(`"` + strings.Repeat("x", 10<<10) + `"`)
	for range 5000 {
		st.put(&mcp.Message{Method: "notifications/progress", Params: big})
	}
	st.put(&mcp.Message{ID: "1", Method: "roots/list"})
	st.answer(&mcp.Message{ID: "2", Result: big})
	b := st.take(firstReader)
	if n := len(b.events); n < 100 || n > callLimit.events+2 || !b.ended {
		t.Errorf("%d events wait, ended %v", n, b.ended)
	}
	if st.drops.Load() == 0 || !b.events[len(b.events)-1].reply || !strings.Contains(string(b.events[len(b.events)-2].data.Head), "roots/list") {
		t.Error("questions and answers must get through")
	}
}

// A client may reuse the id of a request as soon as it has received the
// response.
func TestRequestIDIsFreeOnceAnswered(t *testing.T) {
	s := newSite(t, Options{}, &scripted{})
	h := s.open(mcp.Version20250618, `{}`)
	for range 300 {
		wantBody(t, s.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, h...), 200, `"id":1,"result":{}`)
	}
}
