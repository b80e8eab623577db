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

func TestStandaloneStream(t *testing.T) {
	s := newSite(t, Options{}, &scripted{})
	h := s.open(mcp.Version20250618, `{}`)
	// There is no reader yet: notifications are kept, equal ones only once.
	for range 3 {
		s.Notify("notifications/tools/list_changed", nil)
	}
	e := readEvents(t, s.send(ctxFor(t), "GET", "", h...))
	if m := e.want(); m.Method != "notifications/tools/list_changed" {
		t.Fatalf("got %+v", m)
	}
	first := e.id
	s.Notify("notifications/one", json.RawMessage(`{"n":1}`))
	if m := e.want(); m.Method != "notifications/one" {
		t.Fatalf("got %+v", m)
	}
	// Resuming the stream replays the events after Last-Event-ID, and ends the
	// previous response.
	again := readEvents(t, s.send(ctxFor(t), "GET", "", append(h, headerLastEvent, first)...))
	if m := again.want(); m.Method != "notifications/one" {
		t.Fatalf("replay = %+v", m)
	}
	e.wantEnd()
	s.Notify("notifications/two", nil)
	if m := again.want(); m.Method != "notifications/two" {
		t.Fatalf("got %+v", m)
	}
	wantBody(t, s.do("DELETE", "", h...), 204)
	again.wantEnd()
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

// A caller whose connection breaks during a call resumes the stream without
// loss.
func TestStreamIsResumedWithoutLoss(t *testing.T) {
	step := make(chan struct{})
	s := newSite(t, Options{}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		for i := range 6 {
			r.Exchange.Notify("notifications/progress", json.RawMessage(fmt.Sprintf(`{"progress":%d}`, i)))
			if i == 2 {
				select {
				case <-step:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		}
		return json.RawMessage(`{"done":true}`), nil
	}})
	h := s.open(mcp.Version20251125, `{}`)
	ctx, cancel := context.WithCancel(ctxFor(t))
	e := readEvents(t, s.send(ctx, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, h...))
	e.want()
	if m := e.want(); string(rawjson.Field(m.Params, "progress")) != "1" {
		t.Fatalf("got %+v", m)
	}
	cancel()
	step <- struct{}{}
	for _, last := range []string{e.id, strings.TrimSuffix(e.id, "2") + "0"} { // and once more from the start
		again := readEvents(t, s.send(ctxFor(t), "GET", "", append(h, headerLastEvent, last)...))
		from := 2
		if strings.HasSuffix(last, "_0") {
			from = 0
		}
		for i := from; i < 6; i++ {
			if m := again.want(); string(rawjson.Field(m.Params, "progress")) != fmt.Sprint(i) {
				t.Fatalf("after %s, event %d is %+v", last, i, m)
			}
		}
		if m := again.want(); string(m.Result) != `{"done":true}` {
			t.Fatalf("answer = %+v", m)
		}
		again.wantEnd()
	}
	wantBody(t, s.do("GET", "", append(h, headerLastEvent, e.id[:strings.LastIndexByte(e.id, '_')]+"_99")...), 400, "events after this Last-Event-ID are no longer available")
}

func TestBrokenStreamExpires(t *testing.T) {
	b := newBlocked()
	inner := b.serve
	b.serve = func(ctx context.Context, r *Request) (json.RawMessage, error) {
		r.Exchange.Notify("notifications/progress", nil)
		return inner(ctx, r)
	}
	s := newSite(t, Options{ResumeTimeout: time.Millisecond}, b)
	h := s.open(mcp.Version20251125, `{}`)
	ctx, cancel := context.WithCancel(ctxFor(t))
	e := readEvents(t, s.send(ctx, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, h...))
	e.want()
	<-b.begun
	cancel()
	b.wantEnd(t, errCallerLeft)
}

func TestSlowResponseBecomesStream(t *testing.T) {
	for version, prime := range map[string]bool{mcp.Version20250618: false, mcp.Version20251125: true} {
		t.Run(version, func(t *testing.T) {
			goOn := make(chan struct{})
			s := newSite(t, Options{StreamAfter: time.Millisecond, KeepAlive: time.Millisecond}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
				<-goOn
				return json.RawMessage(`{}`), nil
			}})
			h := s.open(version, `{}`)
			resp := s.send(ctxFor(t), "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, h...)
			e := readEvents(t, resp)
			line, _ := e.r.ReadString('\n')
			if got := strings.HasPrefix(line, "id: "); got != prime {
				t.Errorf("first line %q, prime %v", line, prime)
			}
			for range 3 { // keep-alives
				if line, err := e.r.ReadString(':'); err != nil {
					t.Fatal(line, err)
				}
			}
			close(goOn)
			if m := e.want(); m.ID != "1" {
				t.Errorf("answer = %+v", m)
			}
		})
	}
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

// A session's standalone stream on a hijacked connection: keep-alives, the end
// when the caller disconnects, and pending notifications when it reconnects.
func TestStandaloneStreamOnHijackedConnection(t *testing.T) {
	s := newSite(t, Options{KeepAlive: time.Millisecond}, &scripted{})
	h := s.open(mcp.Version20251125, `{}`)
	session := s.sessions.all()[0]
	ctx, cancel := context.WithCancel(ctxFor(t))
	resp := s.send(ctx, "GET", "", h...)
	e := readEvents(t, resp)
	for range 5 {
		if text, err := e.r.ReadString(':'); err != nil {
			t.Fatal(text, err)
		}
	}
	if session.idle() {
		t.Error("a session with a reader is idle")
	}
	s.Notify("notifications/one", nil)
	if m := e.want(); m.Method != "notifications/one" {
		t.Fatalf("got %+v", m)
	}
	cancel()
	for !session.idle() {
		<-ctxTick(t)
	}
	s.Notify("notifications/two", nil)
	again := readEvents(t, s.send(ctxFor(t), "GET", "", h...))
	if m := again.want(); m.Method != "notifications/two" {
		t.Fatalf("got %+v", m)
	}
	s.end(session)
	again.wantEnd()
}

// If the connection cannot be hijacked the stream is served nevertheless.
func TestStandaloneStreamWithoutHijacking(t *testing.T) {
	srv := New(Options{}, &scripted{})
	s := newSite(t, Options{}, &scripted{})
	s.Server = srv
	s.url = newHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-As") == "2" {
			r.ProtoMajor = 2
		}
		srv.ServeHTTP(plainWriter{w}, r)
	}))
	h := s.open(mcp.Version20251125, `{}`)
	for _, as := range []string{"1", "2"} {
		e := readEvents(t, s.send(ctxFor(t), "GET", "", append(h, "X-As", as)...))
		srv.Notify("notifications/one", json.RawMessage(`{"as":`+as+`}`))
		if m := e.want(); string(rawjson.Field(m.Params, "as")) != as {
			t.Fatalf("got %+v", m)
		}
	}
	srv.Close()
}

// plainWriter hides the optional methods of a ResponseWriter, except Flush.
type plainWriter struct{ http.ResponseWriter }

func (w plainWriter) Flush()                      { w.ResponseWriter.(http.Flusher).Flush() }
func (w plainWriter) Unwrap() http.ResponseWriter { return nothing{} }

type nothing struct{ http.ResponseWriter }

// TestReplayMemoryIsBounded reads many large streamed responses in one session,
// and leaves others unread: streams over the replay limit must not stay in
// memory until they expire.
func TestReplayMemoryIsBounded(t *testing.T) {
	const answers, size = 100, 1 << 20
	large := json.RawMessage(`"` + strings.Repeat("x", size) + `"`)
	goOn := make(chan struct{})
	s := newSite(t, Options{ResumeTimeout: time.Hour}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		r.Exchange.Notify("notifications/progress", nil)
		if string(rawjson.Field(r.Params, "wait")) == "true" {
			<-goOn
		}
		return large, nil
	}})
	h := s.open(mcp.Version20251125, `{}`)
	const first = maxReplay + 44 // the heap may have 20 fewer
	for i := range first {
		e := readEvents(t, s.send(ctxFor(t), "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, i+1), h...))
		e.want()
		e.want()
		e.wantEnd()
	}
	// Readers that are still ending and pooled buffers are freed within a few
	// collections; streams kept for a replay would stay for an hour.
	limit := uint64((maxReplay + 24) * size)
	for ctx := ctxFor(t); ; runtime.Gosched() {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if m.HeapAlloc <= limit {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("after %d answers of 1 MiB the heap has %d MiB, want at most %d", first, m.HeapAlloc>>20, limit>>20)
		}
	}
	// Callers that disconnect before the response arrives.
	for i := range answers {
		ctx, leave := context.WithCancel(ctxFor(t))
		h := h
		if i%10 == 0 {
			h = s.open(mcp.Version20251125, `{}`)
		}
		e := readEvents(t, s.send(ctx, "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"wait":true}}`, answers+i+1), h...))
		e.want()
		leave()
	}
	close(goOn)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && s.Server.replay.Load() < 16*size; {
		runtime.Gosched()
	}
	if kept := s.Server.replay.Load(); kept > replayBytes {
		t.Errorf("%d bytes are kept for replays, want at most %d", kept, replayBytes)
	}
	for _, session := range s.Server.sessions.all() {
		s.Server.end(session)
	}
	for ctx := ctxFor(t); s.Server.replay.Load() != 0; runtime.Gosched() {
		if ctx.Err() != nil {
			t.Fatalf("%d bytes are counted after every session ended", s.Server.replay.Load())
		}
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
