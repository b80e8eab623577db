package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
)

// asking is a Handler whose calls ask their caller.
func asking(n int, ended chan<- error) *scripted {
	return &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		r.Exchange.Notify("notifications/progress", json.RawMessage(`{"progressToken":"first","progress":1}`))
		answers := make([]string, n)
		for i := range n {
			got, err := r.Exchange.Ask(ctx, "elicitation/create", json.RawMessage(fmt.Sprintf(`{"message":"q%d"}`, i)))
			if err != nil {
				if ended != nil {
					ended <- err
				}
				return nil, err
			}
			answers[i] = rawjson.FieldString(got, "content", "x")
		}
		r.Exchange.Notify("notifications/progress", json.RawMessage(`{"progressToken":"first","progress":2}`))
		return json.Marshal(map[string]any{"answers": answers})
	}}
}

const elicits = `{"elicitation":{"form":{}}}`

// inputs reads an input_required answer.
func inputs(t testing.TB, result json.RawMessage) (keys []string, state string) {
	t.Helper()
	if rawjson.FieldString(result, "resultType") != "input_required" {
		t.Fatalf("result = %s", result)
	}
	for key, q := range rawjson.Members(rawjson.Field(result, "inputRequests")) {
		if rawjson.FieldString(q, "method") != "elicitation/create" {
			t.Errorf("question %s", q)
		}
		keys = append(keys, key)
	}
	return keys, rawjson.FieldString(result, "requestState")
}

func (s *site) last(body string, h []string) mcp.Message {
	s.t.Helper()
	e := readEvents(s.t, s.send(ctxFor(s.t), "POST", body, h...))
	for {
		if m := e.want(); m.IsResponse() {
			return m
		}
	}
}

func TestParkedCallIsResumed(t *testing.T) {
	s := newSite(t, Options{}, asking(2, nil))
	const params = `{"name":"x","arguments":{"b":1,"a":[2,3]},"_meta":{"progressToken":"first"}}`
	body, h := modern(1, "tools/call", params, elicits)
	m := s.last(body, h)
	for round := range 2 {
		if string(m.ID) != fmt.Sprint(round+1) {
			t.Fatalf("answer to %s", m.ID)
		}
		keys, state := inputs(t, m.Result)
		if len(keys) != 1 || s.parked.len() != 1 {
			t.Fatalf("questions %v, %d parked", keys, s.parked.len())
		}
		// The retry has its members in another order, a different token, and an
		// answer to a question that was not asked.
		retry := rawjson.SetField(json.RawMessage(`{"arguments":{"a":[2,3], "b":1},"name":"x","_meta":{"progressToken":"second"}}`), rawjson.AppendQuoted(nil, state), "requestState")
		retry = rawjson.SetField(retry, json.RawMessage(fmt.Sprintf(`{"%s":{"action":"accept","content":{"x":"r%d"}},"other":{}}`, keys[0], round)), "inputResponses")
		body, h = modern(round+2, "tools/call", string(retry), elicits)
		if round == 0 {
			r := s.post(body, h...) // only the next question: plain JSON
			wantBody(t, r, 200)
			m, _ = mcp.Decode([]byte(r.body), mcp.Limits{})
			continue
		}
		e := readEvents(t, s.send(ctxFor(t), "POST", body, h...))
		if n := e.want(); rawjson.FieldString(n.Params, "progressToken") != "second" || string(rawjson.Field(n.Params, "progress")) != "2" {
			t.Errorf("progress = %s", n.Params)
		}
		m = e.want()
	}
	if string(m.Result) != `{"resultType":"complete","answers":["r0","r1"]}` || m.ID != "3" {
		t.Errorf("answer = %s %s", m.ID, m.Result)
	}
	if s.parked.len() != 0 {
		t.Error("the call is still parked")
	}
}

func TestRequestStateIsGuarded(t *testing.T) {
	s := newSite(t, Options{}, asking(1, nil))
	park := func() (string, string) {
		body, h := modern(1, "tools/call", `{"name":"x","arguments":{"a":1}}`, elicits)
		keys, state := inputs(t, s.last(body, h).Result)
		return keys[0], state
	}
	key, state := park()
	answer := `{"` + key + `":{"action":"accept"}}`
	retry := func(params, state, responses string) reply {
		p := rawjson.SetField(json.RawMessage(params), rawjson.AppendQuoted(nil, state), "requestState")
		if responses != "" {
			p = rawjson.SetField(p, json.RawMessage(responses), "inputResponses")
		}
		return s.modern(2, "tools/call", string(p), elicits)
	}
	const same = `{"name":"x","arguments":{"a":1}}`
	tampered := []byte(state)
	tampered[len(s.parked.prefix)+3] ^= 1
	for name, r := range map[string]reply{
		"tampered":        retry(same, string(tampered), answer),
		"cut":             retry(same, state[:len(state)-4], answer),
		"empty":           retry(same, s.parked.prefix, answer),
		"other arguments": retry(`{"name":"x","arguments":{"a":2}}`, state, answer),
		"odd responses":   retry(same, state, `[1]`),
		"odd response":    retry(same, state, `{"`+key+`":5}`),
	} {
		t.Run(name, func(t *testing.T) { wantBody(t, r, 400, "-32602") })
	}
	t.Run("other caller", func(t *testing.T) {
		req := &Request{Method: "tools/call", Params: json.RawMessage(same)}
		req.Caller.ID = "somebody else"
		if _, err := s.parked.take(state, req); err == nil {
			t.Error("taken by another caller")
		}
	})
	t.Run("nothing answered", func(t *testing.T) {
		r := retry(same, state, "")
		wantBody(t, r, 200)
		m, _ := mcp.Decode([]byte(r.body), mcp.Limits{})
		keys, next := inputs(t, m.Result)
		if keys[0] != key || next == state {
			t.Errorf("asked %v again, state the same: %v", keys, next == state)
		}
		wantBody(t, retry(same, state, answer), 400, "used already")
		state = next
	})
	wantLast(t, s, same, state, answer)
	t.Run("used", func(t *testing.T) { wantBody(t, retry(same, state, answer), 400, "used already") })
	t.Run("not ours", func(t *testing.T) { // an upstream's own state is forwarded
		p := rawjson.SetField(json.RawMessage(same), json.RawMessage(`"theirs"`), "requestState")
		body, h := modern(3, "tools/call", string(p), elicits)
		inputs(t, s.last(body, h).Result)
	})
}

func wantLast(t *testing.T, s *site, params, state, answer string) {
	t.Helper()
	p := rawjson.SetField(rawjson.SetField(json.RawMessage(params), rawjson.AppendQuoted(nil, state), "requestState"), json.RawMessage(answer), "inputResponses")
	body, h := modern(4, "tools/call", string(p), elicits)
	if m := s.last(body, h); !strings.Contains(string(m.Result), "answers") {
		t.Errorf("answer = %+v", m)
	}
}

// capture is an outlet that records its messages.
type capture struct {
	mu  sync.Mutex
	all []*mcp.Message
}

func (c *capture) put(m *mcp.Message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, m)
	return true
}
func (c *capture) answer(m *mcp.Message) { c.put(m) }
func (c *capture) last() *mcp.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) == 0 {
		return nil
	}
	return c.all[len(c.all)-1]
}

func modernRequestFor(t testing.TB, s *Server, id int, method, params string) *Request {
	body, _ := modern(id, method, params, elicits)
	m, err := mcp.Decode([]byte(body), mcp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	r, refused := s.statelessRequest(&m)
	if refused != nil {
		t.Fatal(refused)
	}
	return r
}

func TestParkedCallsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		s := New(Options{ParkTimeout: time.Minute}, asking(1, ended))
		defer s.Close()
		out := &capture{}
		s.startStateless(t.Context(), modernRequestFor(t, s, 1, "tools/call", `{"name":"x"}`), out)
		synctest.Wait()
		_, state := inputs(t, out.last().Result)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if err := <-ended; err != errCallerLeft || s.parked.len() != 0 {
			t.Errorf("the call ended by %v, %d parked", err, s.parked.len())
		}
		again := &capture{}
		s.startStateless(t.Context(), modernRequestFor(t, s, 2, "tools/call", `{"name":"x","requestState":"`+state+`"}`), again)
		if m := again.last(); m.Error == nil || !strings.Contains(m.Error.Message, "expired") {
			t.Errorf("late retry: %+v", m)
		}
	})
}

func TestParkedCallEndsOnTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			go func() {
				time.Sleep(time.Second)
				for range 2 * maxParkedNotifications {
					r.Exchange.Notify("notifications/progress", json.RawMessage(`{"progress":1}`))
				}
			}()
			_, err := r.Exchange.Ask(ctx, "elicitation/create", nil)
			return json.RawMessage(fmt.Sprintf(`{"gave up":%v}`, err != nil)), nil
		}})
		defer s.Close()
		out := &capture{}
		s.startStateless(t.Context(), modernRequestFor(t, s, 1, "tools/call", `{"name":"x"}`), out)
		synctest.Wait()
		_, state := inputs(t, out.last().Result)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		again := &capture{}
		s.startStateless(t.Context(), modernRequestFor(t, s, 2, "tools/call", `{"name":"x","requestState":"`+state+`"}`), again)
		if m := again.last(); m.ID != "2" || !strings.Contains(string(m.Result), `"gave up":true`) {
			t.Errorf("retry: %+v", m)
		}
		if n := len(again.all); n != maxParkedNotifications+1 {
			t.Errorf("%d messages, want the %d that were held and the answer", n, maxParkedNotifications)
		}
	})
}

func TestParkingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 100)
		s := New(Options{MaxParked: 8}, asking(1, ended))
		out := &capture{}
		for i := range 10 {
			s.startStateless(t.Context(), modernRequestFor(t, s, i+1, "tools/call", `{"name":"x"}`), out)
		}
		synctest.Wait()
		if n := s.parked.len(); n != 2 { // a quarter for one caller
			t.Errorf("%d parked", n)
		}
		refused := 0
		for _, m := range out.all {
			if m.Error != nil && m.Error.Code == -32006 {
				refused++
			}
		}
		if refused != 8 {
			t.Errorf("%d refused", refused)
		}
		s.Close()
		synctest.Wait()
		if s.parked.len() != 0 || len(ended) != 10 {
			t.Errorf("%d parked, %d ended after Close", s.parked.len(), len(ended))
		}
	})
}

func TestCallsThatCannotBeParked(t *testing.T) {
	s := newSite(t, Options{}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		if r.Exchange.Ask == nil {
			return json.RawMessage(`{"ask":"nil"}`), nil
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		var errs []string
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for range maxQuestions + 1 {
			wg.Go(func() {
				_, err := r.Exchange.Ask(ctx, "elicitation/create", nil)
				mu.Lock()
				errs = append(errs, err.Error())
				mu.Unlock()
				cancel()
			})
		}
		wg.Wait()
		return nil, &mcp.Error{Code: -1, Message: errs[0]}
	}})
	wantBody(t, s.modern(1, "tools/list", `{}`, elicits), 200, "cannot be asked during tools/list")
	wantBody(t, s.modern(1, "tools/call", `{"name":"x"}`, `{}`), 200, `"ask":"nil"`)
	body, h := modern(1, "tools/call", `{"name":"x"}`, elicits)
	wantBody(t, s.post(body, h...), 200, "input_required")
}

// Disconnecting after the call was parked does not end it; disconnecting during
// a retry does.
func TestDisconnectDuringParkedCall(t *testing.T) {
	ended := make(chan error, 1)
	s := newSite(t, Options{}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		if _, err := r.Exchange.Ask(ctx, "elicitation/create", nil); err != nil {
			ended <- err
			return nil, err
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}})
	r := s.modern(1, "tools/call", `{"name":"x"}`, elicits)
	m, _ := mcp.Decode([]byte(r.body), mcp.Limits{})
	keys, state := inputs(t, m.Result)
	ctx, cancel := context.WithCancel(ctxFor(t))
	body, h := modern(2, "tools/call", `{"name":"x","requestState":"`+state+`","inputResponses":{"`+keys[0]+`":{}}}`, elicits)
	var wg sync.WaitGroup
	wg.Go(func() { s.send2(ctx, body, h) })
	for s.parked.len() > 0 {
		<-ctxTick(t)
	}
	select {
	case err := <-ended:
		t.Fatalf("ended early: %v", err)
	default:
	}
	cancel()
	wg.Wait()
	if err := <-ended; err != errCallerLeft {
		t.Errorf("ended by %v", err)
	}
}

// Cancelling a retry on a byte stream ends the call that it resumed.
func TestRetryOnAStreamIsCancelled(t *testing.T) {
	b := newBlocked()
	wait := b.serve
	b.serve = func(ctx context.Context, r *Request) (json.RawMessage, error) {
		if _, err := r.Exchange.Ask(ctx, "elicitation/create", nil); err != nil {
			return nil, err
		}
		return wait(ctx, r)
	}
	l := newLine(t, New(Options{}, b))
	body, _ := modern(1, "tools/call", `{"name":"x"}`, elicits)
	keys, state := inputs(t, l.ask(body).Result)
	body, _ = modern(2, "tools/call", `{"name":"x","requestState":"`+state+`","inputResponses":{"`+keys[0]+`":{}}}`, elicits)
	l.send(body)
	<-b.begun
	l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	b.wantEnd(t, errCallerLeft)
	l.in.Close()
	l.wantEnd()
}

// A call that asks after its caller has disconnected is not parked.
func TestCallWithoutCallerIsNotParked(t *testing.T) {
	begun, asked := make(chan struct{}), make(chan error, 1)
	s := newSite(t, Options{}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		close(begun)
		<-ctx.Done()
		_, err := r.Exchange.Ask(context.WithoutCancel(ctx), "elicitation/create", nil)
		asked <- err
		return nil, err
	}})
	ctx, cancel := context.WithCancel(ctxFor(t))
	body, h := modern(1, "tools/call", `{"name":"x"}`, elicits)
	var wg sync.WaitGroup
	wg.Go(func() { s.send2(ctx, body, h) })
	<-begun
	cancel()
	if err := <-asked; err != errCallerLeft || s.parked.len() > 0 {
		t.Errorf("asked: %v; %d calls are parked", err, s.parked.len())
	}
	wg.Wait()
}

func (l *parkedCalls) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}
