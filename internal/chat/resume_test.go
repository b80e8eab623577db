package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// slowScript has replies that tests can interrupt: tool calls block the reply
// to "count" in two places until the test releases them.
var slowScript = llmtest.Script{Chunk: 2, Rules: []llmtest.Rule{
	{When: llmtest.When{User: "call"}, Reply: llmtest.Reply{Text: "Calling.", Calls: calls("odd:slow", "odd:slow")}},
	{When: llmtest.When{User: "count", Results: llmtest.N(0)}, Reply: llmtest.Reply{Text: strings.Repeat("one two three four five ", 3), Calls: calls("odd:slow")}},
	{When: llmtest.When{User: "count", Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: strings.Repeat("one two three four five ", 3), Calls: calls("odd:slow")}},
	{When: llmtest.When{User: "count", Results: llmtest.N(2)}, Reply: llmtest.Reply{Text: strings.Repeat("one two three four five ", 2)}},
	{When: llmtest.When{User: "once", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: calls("odd:slow")}},
	{When: llmtest.When{User: "stall"}, Reply: llmtest.Reply{Text: strings.Repeat("word ", 40), StallAfter: 20}},
}}

// sequence checks that the numbered messages of several connections make one
// unbroken sequence, and returns its text.
func sequence(t *testing.T, clients ...*client) string {
	t.Helper()
	want, text := int64(1), ""
	for _, c := range clients {
		for _, m := range c.all {
			if m.Type == wire.TypeConnection || m.Type == wire.TypeHistory {
				continue
			}
			if m.Seq != want {
				t.Fatalf("message %s has number %d, want %d", m.Raw, m.Seq, want)
			}
			want++
			if m.Type == wire.TypeText {
				text += m.Payload.Content
			}
		}
	}
	return text
}

func TestReconnectResumesReply(t *testing.T) {
	each(t, slowScript, func(t *testing.T, r *fixture) {
		first := r.connect("")
		first.sendText("count")
		first.kind(wire.TypeText)
		first.conn.CloseNow() // the connection breaks
		<-r.ups.begun
		second := r.again(first)
		r.ups.release <- struct{}{}
		second.kind(wire.TypeText)
		second.conn.CloseNow()
		<-r.ups.begun
		third := r.again(second)
		r.ups.release <- struct{}{}
		if _, stop := third.reply(); stop != stopEnd {
			t.Errorf("stop %s", stop)
		}
		if got := sequence(t, first, second, third); got != strings.Repeat("one two three four five ", 8) {
			t.Errorf("text %q", got)
		}
		// A client that connects without a number gets the history.
		late := r.connect("sessionId=" + first.id)
		if m := late.next(); m.Type != wire.TypeHistory || len(m.Payload.Messages) != 6 || m.Seq != third.seq {
			t.Errorf("history %s", m.Raw)
		}
	})
}

func TestLateWatcherReceivesWholeReply(t *testing.T) {
	r := newFixture(t, slowScript)
	a := r.connect("")
	a.sendText("hello")
	a.reply()
	a.sendText("count")
	a.kind(wire.TypeText)
	<-r.ups.begun
	b := r.dial("sessionId=" + a.id)
	if m := b.next(); !m.Payload.Active {
		t.Errorf("greeting %s", m.Raw)
	}
	if m := b.next(); m.Type != wire.TypeHistory || len(m.Payload.Messages) != 2 {
		t.Errorf("history %s", m.Raw)
	}
	if m := b.next(); m.Type != wire.TypeMessage || m.Payload.Text != "count" {
		t.Errorf("the turn begins with %s", m.Raw)
	}
	r.ups.release <- struct{}{}
	<-r.ups.begun
	r.ups.release <- struct{}{}
	wantText, _ := a.reply()
	gotText, stop := b.reply()
	if !strings.HasSuffix(gotText, wantText) || gotText != strings.Repeat("one two three four five ", 8) || stop != stopEnd {
		t.Errorf("%q, %s", gotText, stop)
	}
	// Both receive all later messages, with the same numbers.
	b.sendText("hello")
	for _, c := range []*client{a, b} {
		if text, _ := c.reply(); text != "You said: hello" {
			t.Errorf("%q", text)
		}
	}
	if a.seq != b.seq {
		t.Errorf("numbers %d and %d", a.seq, b.seq)
	}
}

func TestUnknownSequenceNumberSendsHistory(t *testing.T) {
	r := newFixture(t, llmtest.Script{})
	c := r.connect("")
	for i := range 4 {
		c.sendText(fmt.Sprint("turn ", i))
		c.reply()
	}
	r.awaitIdle(c.id)
	for _, after := range []string{"1", "100000", "-5", "x"} {
		n := r.connect(url.Values{"sessionId": {c.id}, "after": {after}}.Encode())
		if m := n.next(); m.Type != wire.TypeHistory || len(m.Payload.Messages) != 8 {
			t.Errorf("after %s: %s", after, m.Raw)
		}
	}
	// The last two turns can be replayed.
	n := r.connect(url.Values{"sessionId": {c.id}, "after": {fmt.Sprint(c.seq - 3)}}.Encode())
	for i := range int64(3) {
		if m := n.next(); m.Seq != c.seq-2+i {
			t.Errorf("replayed %s", m.Raw)
		}
	}
}

func TestAbort(t *testing.T) {
	each(t, slowScript, func(t *testing.T, r *fixture) {
		c := r.connect("")
		c.send("abort", nil)
		if m := c.next(); m.Type != wire.TypeError || m.Payload.Code != "INVALID_REQUEST" {
			t.Errorf("nothing to abort: %s", m.Raw)
		}
		// While the model is sending text.
		c.sendText("stall")
		c.kind(wire.TypeText)
		c.send("message", map[string]any{"text": "me too"})
		if m := c.kind(wire.TypeError); m.Payload.Code != wire.CodeBusy {
			t.Errorf("second message: %s", m.Raw)
		}
		c.send("abort", nil)
		if _, stop := c.reply(); stop != stopAborted {
			t.Errorf("stop %s", stop)
		}
		// While tools are running.
		c.sendText("call")
		<-r.ups.begun
		<-r.ups.begun
		c.send("abort", nil)
		if _, stop := c.reply(); stop != stopAborted {
			t.Errorf("stop %s", stop)
		}
		// The model accepts the remaining history, which records the
		// cancellation.
		c.sendText("hello")
		if text, stop := c.reply(); text != "You said: hello" || stop != stopEnd {
			t.Errorf("%q, %s", text, stop)
		}
		cancelled := 0
		for _, m := range r.model.Last().Messages {
			for _, res := range m.Results {
				if strings.Contains(res.Text, "cancelled") {
					cancelled++
				}
			}
		}
		if cancelled != 2 {
			t.Errorf("%d cancelled results", cancelled)
		}
		if h := r.awaitIdle(c.id).History().Messages; h[1].Notice != noticeAborted || h[1].Parts[0].Text == "" {
			t.Errorf("half reply: %+v", h[1])
		}
	})
}

func TestReplyEndsAfterDisconnectGrace(t *testing.T) {
	r := newFixture(t, slowScript)
	c := r.connect("")
	c.sendText("stall")
	c.kind(wire.TypeText)
	c.conn.CloseNow()
	c = r.again(c) // in time
	if !r.open(c.id).Active() {
		t.Error("a reload of the page killed the reply")
	}
	cfg := r.host.config()
	cfg.DisconnectGraceMs = 20
	r.host.SetConfig(cfg)
	c.conn.CloseNow()
	s := r.awaitIdle(c.id) // no client reconnects, so the reply is stopped
	if h := s.History().Messages; len(h) != 2 || h[1].Notice != noticeAborted {
		t.Errorf("history %+v", h)
	}
}

// spy reports the acquisitions of watch leases.
type spy struct {
	Store
	marks chan bool // whether the lease was free
}

func (s *spy) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (store.Lease, bool, error) {
	l, held, err := s.Store.Acquire(ctx, name, owner, ttl)
	if strings.HasPrefix(name, "chat-watch/") && err == nil {
		s.marks <- held
	}
	return l, held, err
}

func TestReplyContinuesWhileWatchedOnOtherNode(t *testing.T) {
	spies := []*spy{{marks: make(chan bool, 1000)}, {marks: make(chan bool, 1000)}}
	shared := func(i int) option {
		return func(o *Options, models *[]llm.Config) {
			withSharedStore(o, models)
			o.Config.DisconnectGraceMs = 20
			spies[i].Store = o.Store
			o.Store = spies[i]
		}
	}
	a := newFixture(t, slowScript, shared(0))
	b := &fixture{t: t, model: a.model, store: a.store, logs: a.logs}
	b.start(shared(1))
	first := a.connect("")
	first.sendText("stall")
	first.kind(wire.TypeText)
	other := b.connect("sessionId=" + first.id)
	other.kind(wire.TypeText)
	<-spies[1].marks // the second node holds the watch lease
	first.conn.CloseNow()
	for range 3 { // the grace period ends repeatedly
		if free := <-spies[0].marks; free {
			t.Fatal("the first node does not see that it is watched on the second")
		}
	}
	if s := a.open(first.id); !s.Active() {
		t.Error("the reply was stopped")
	}
	other.conn.CloseNow()
	s := a.awaitIdle(first.id) // no watchers are left
	if h := s.History().Messages; len(h) != 2 || h[1].Notice != noticeAborted {
		t.Errorf("history %+v", h)
	}
}

func TestApproval(t *testing.T) {
	script := llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "delete", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "ask:delete", Args: json.RawMessage(`{"path":"/x"}`)}}}},
		{When: llmtest.When{User: "delete", Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "{{result}}"}},
	}}
	each(t, script, func(t *testing.T, r *fixture) {
		c := r.connect("")
		decide := func(kind string, payload map[string]any) string {
			t.Helper()
			c.sendText("delete")
			m := c.kind(wire.TypeApproval)
			if m.Payload.Tool != "ask:delete" || string(m.Payload.Arguments) != `{"path":"/x"}` {
				t.Fatalf("approval %s", m.Raw)
			}
			payload["callId"] = m.Payload.CallID
			c.send(kind, payload)
			text, _ := c.reply()
			return text
		}
		unasked := func() string {
			t.Helper()
			c.sendText("delete")
			text, _ := c.reply()
			return text
		}
		if got := decide("deny", map[string]any{"reason": "too dangerous"}); !strings.Contains(got, "not approved") || !strings.Contains(got, "too dangerous") {
			t.Errorf("denied: %q", got)
		}
		if r.ups.count("ask:delete") != 0 {
			t.Error("it was called all the same")
		}
		if got := decide("approve", map[string]any{}); got != "done delete" {
			t.Errorf("approved once: %q", got)
		}
		if got := decide("approve", map[string]any{"scope": "session"}); got != "done delete" {
			t.Errorf("approved for the session: %q", got)
		}
		if got := unasked(); got != "done delete" {
			t.Errorf("in the same session: %q", got)
		}
		c.send("approve", map[string]any{"callId": "long gone"})
		if m := c.kind(wire.TypeError); m.Payload.Code != wire.CodeNoApproval || m.Payload.CallID != "long gone" {
			t.Errorf("no such approval: %s", m.Raw)
		}
		c = r.connect("") // asked again in another session, now permanently
		if got := decide("approve", map[string]any{"scope": "always"}); got != "done delete" {
			t.Errorf("approved always: %q", got)
		}
		c = r.connect("")
		if got := unasked(); got != "done delete" {
			t.Errorf("in another session: %q", got)
		}
		// Another caller is still asked, and an abort ends the question.
		c = r.connect("as=someone")
		c.sendText("delete")
		c.kind(wire.TypeApproval)
		c.send("abort", nil)
		if _, stop := c.reply(); stop != stopAborted {
			t.Errorf("stop %s", stop)
		}
	})
}

// TestStopWaiting checks that replies that wait for a person end when the
// gateway stops, with the reason in the history.
func TestStopWaiting(t *testing.T) {
	for want, call := range map[string]llmtest.Call{
		wire.TypeApproval: {Tool: "ask:delete", Args: json.RawMessage(`{}`)},
		wire.TypeQuestion: {Tool: "odd:visit", Args: json.RawMessage(`{"elicitations":[{"url":"https://example.com/","message":"sign in"}]}`)},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{{Reply: llmtest.Reply{Calls: []llmtest.Call{call}}}}})
			c := r.connect("")
			c.sendText("go")
			c.kind(want)
			r.host.StopWaiting()
			if m := c.kind(wire.TypeError); m.Payload.Code != wire.CodeAborted || !strings.Contains(m.Payload.Message, "the gateway is stopping") {
				t.Errorf("%s", m.Raw)
			}
			if _, stop := c.reply(); stop != stopAborted {
				t.Errorf("stop = %q", stop)
			}
			again := r.connect("sessionId=" + c.id)
			if m := again.kind(wire.TypeHistory); !strings.Contains(string(m.Raw), "the gateway was stopped before") {
				t.Errorf("%s", m.Raw)
			}
		})
	}
}

func TestApprovalTimesOut(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: calls("ask:delete")}},
		{When: llmtest.When{Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "{{result}}"}},
	}}, withApprovalTimeout(50*time.Millisecond))
	c := r.connect("")
	c.sendText("go")
	if text, _ := c.reply(); !strings.Contains(text, "no answer came") {
		t.Errorf("%q", text)
	}
}

func TestSessionsSurviveARestart(t *testing.T) {
	each(t, toolScript, func(t *testing.T, r *fixture) {
		c := r.connect("")
		c.sendText("add 1 and 2")
		c.reply()
		r.awaitIdle(c.id)
		r.end()
		cfg := providers()[strings.Split(t.Name(), "/")[1]]
		r.start(withModels(cfg)) // another process
		n := r.again(c)
		n.sendText("add 20 and 22")
		if text, stop := n.reply(); !strings.HasSuffix(text, "It is 42.") || stop != stopEnd {
			t.Errorf("%q, %s", text, stop)
		}
		sequence(t, c, n)
		if len(r.model.Last().Messages) < 6 {
			t.Errorf("the model saw %d messages", len(r.model.Last().Messages))
		}
	})
}

// crash stores a session as left by a process that was killed during a reply.
func crash(t *testing.T, r *fixture, messages []store.Message, events ...wire.Outgoing) string {
	t.Helper()
	ctx := t.Context()
	id := newID("crashed")
	if err := r.store.CreateSession(ctx, store.Session{ID: id, Owner: "local", Title: "t", Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		messages[i].Seq, messages[i].Time = int64(i+1), time.Now()
	}
	if err := r.store.AppendMessages(ctx, id, messages...); err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		e.Seq = int64(i + 1)
		data, _ := json.Marshal(e)
		if err := r.store.AppendEvents(ctx, id, store.Event{Seq: e.Seq, Time: time.Now(), Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	// Last, because a host that has just started looks for such sessions.
	if _, err := r.store.UpdateSession(ctx, id, func(s *store.Session) error {
		s.Metadata = json.RawMessage(`{"seq":0,"turn":{"active":true,"event":1,"message":1}}`)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return id
}

func stored(role llm.Role, parts ...llm.Part) store.Message {
	content, _ := json.Marshal(messageMeta{ID: newID("m"), Parts: parts})
	return store.Message{Role: string(role), Content: content}
}

func TestHistoryAfterCrashIsValid(t *testing.T) {
	each(t, llmtest.Script{}, func(t *testing.T, r *fixture) {
		user := stored(llm.User, llm.Part{Text: "do it"})
		call := stored(llm.Assistant, llm.Part{Text: "Calling."}, llm.Part{Call: &llm.ToolCall{ID: "1", Name: "odd__slow", Arguments: json.RawMessage("{}")}})
		outgoing := []wire.Outgoing{{Type: wire.TypeMessage, Payload: wire.MessagePayload{ID: "m", Text: "do it"}},
			{Type: wire.TypeText, Payload: wire.ContentPayload{Content: "Half a "}}, {Type: wire.TypeText, Payload: wire.ContentPayload{Content: "sentence"}}}
		for name, tt := range map[string]struct {
			id   string
			want []llm.Role
		}{
			"before the reply":     {crash(t, r, []store.Message{user}, outgoing[0]), []llm.Role{llm.User, llm.Assistant}},
			"in mid-reply":         {crash(t, r, []store.Message{user}, outgoing...), []llm.Role{llm.User, llm.Assistant}},
			"while a tool ran":     {crash(t, r, []store.Message{user, call}, outgoing...), []llm.Role{llm.User, llm.Assistant, llm.Tool, llm.Assistant}},
			"after the tool's end": {crash(t, r, []store.Message{user, call, stored(llm.Tool, llm.Part{Result: llm.TextResult(&llm.ToolCall{ID: "1", Name: "odd__slow"}, "r", false)})}), []llm.Role{llm.User, llm.Assistant, llm.Tool, llm.Assistant}},
		} {
			c := r.connect("sessionId=" + tt.id)
			m := c.next()
			var roles []llm.Role
			for _, h := range m.Payload.Messages {
				roles = append(roles, h.Role)
			}
			if fmt.Sprint(roles) != fmt.Sprint(tt.want) {
				t.Fatalf("%s: %v, want %v", name, roles, tt.want)
			}
			last := m.Payload.Messages[len(roles)-1]
			if last.Notice != noticeInterrupted || !strings.Contains(last.Parts[0].Text, "interrupted") {
				t.Errorf("%s: %+v", name, last)
			}
			if name == "in mid-reply" && !strings.HasPrefix(last.Parts[0].Text, "Half a sentence") {
				t.Errorf("what had been said is lost: %q", last.Parts[0].Text)
			}
			c.sendText("go on")
			if text, stop := c.reply(); text != "You said: go on" || stop != stopEnd {
				t.Errorf("%s: %q, %s", name, text, stop)
			}
			if s := r.awaitIdle(tt.id); s.Active() {
				t.Errorf("%s: still active", name)
			}
		}
	})
}

// TestReplyOfDeadProcessEnds starts a gateway on an unshared store while the
// lease of a killed process has not expired. No client opens the second
// conversation.
func TestReplyOfDeadProcessEnds(t *testing.T) {
	r := newFixture(t, llmtest.Script{})
	r.end()
	user := stored(llm.User, llm.Part{Text: "do it"})
	watched := crash(t, r, []store.Message{user})
	alone := crash(t, r, []store.Message{user})
	for _, id := range []string{watched, alone} {
		if _, held, err := r.store.Acquire(t.Context(), leaseName(id), "node-that-died", defaultLeaseTime); err != nil || !held {
			t.Fatal(held, err)
		}
	}
	r.start()
	c := r.connect("sessionId=" + watched)
	c.readUntil(finished)
	c.sendText("go on")
	if text, stop := c.reply(); text != "You said: go on" || stop != stopEnd {
		t.Errorf("%q, %s", text, stop)
	}
	for ctx := t.Context(); ; {
		list, err := r.host.List(ctx, tool.Local, time.Time{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(list, func(s wire.SessionInfo) bool { return s.ID == alone && s.Active }) {
			break
		}
		time.Sleep(5 * time.Millisecond) // poll interval
	}
}

func TestReplyIsForwardedBetweenNodes(t *testing.T) {
	a := newFixture(t, slowScript, withSharedStore)
	b := &fixture{t: t, model: a.model, store: a.store, logs: a.logs}
	b.start(withSharedStore)

	first := a.connect("")
	first.sendText("count")
	first.kind(wire.TypeText)
	first.conn.CloseNow()
	<-a.ups.begun
	second := b.again(first) // the reply still runs on the first node
	a.ups.release <- struct{}{}
	<-a.ups.begun
	a.ups.release <- struct{}{}
	if _, stop := second.reply(); stop != stopEnd {
		t.Errorf("stop %s", stop)
	}
	if got := sequence(t, first, second); got != strings.Repeat("one two three four five ", 8) {
		t.Errorf("text %q", got)
	}
	a.awaitIdle(first.id)
	second.sendText("hello") // the next reply runs on the second node
	if text, stop := second.reply(); text != "You said: hello" || stop != stopEnd {
		t.Errorf("%q, %s", text, stop)
	}
	sequence(t, first, second)
	b.awaitIdle(first.id)

	// A user's input on one node reaches the reply on the other.
	first = a.again(second)
	first.sendText("stall")
	first.kind(wire.TypeText)
	other := b.connect("sessionId=" + first.id)
	other.kind(wire.TypeText)
	other.send("message", map[string]any{"text": "me too"})
	if m := other.kind(wire.TypeError); m.Payload.Code != wire.CodeBusy {
		t.Errorf("second message: %s", m.Raw)
	}
	other.send("abort", nil)
	for _, c := range []*client{first, other} {
		if _, stop := c.reply(); stop != stopAborted {
			t.Errorf("stop %s", stop)
		}
	}
	a.awaitIdle(first.id)
	first.sendText("hello")
	if text, stop := first.reply(); text != "You said: hello" || stop != stopEnd {
		t.Errorf("%q, %s", text, stop)
	}
}

func TestSlowClientIsDisconnectedAndResumes(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: calls("odd:progress", "odd:progress", "odd:progress", "odd:progress")}},
		{When: llmtest.When{Results: llmtest.N(4)}, Reply: llmtest.Reply{Text: "done"}},
	}}) // only the number of messages matters, so they are small
	s, err := r.host.Open(t.Context(), tool.Local, "")
	if err != nil {
		t.Fatal(err)
	}
	fast, err := s.Watch(t.Context(), tool.Local, -1)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := s.Watch(t.Context(), tool.Local, -1)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		for {
			data, ok := fast.next(ctx)
			if !ok || strings.Contains(string(data), `"stop":"`) && strings.Contains(string(data), "turn 60") {
				return
			}
			select {
			case <-slow.done:
				return
			default:
			}
		}
	})
	for i := 0; ; i++ { // until the client that never reads is dropped
		if err := s.Send(t.Context(), tool.Local, fmt.Sprint("turn ", i), ""); err != nil {
			t.Fatal(err)
		}
		r.awaitIdle(s.ID())
		select {
		case <-slow.done:
		default:
			if i > 200 {
				t.Fatal("a client that reads nothing is never dropped")
			}
			continue
		}
		break
	}
	wg.Wait()
	if _, ok := slow.next(t.Context()); !ok {
		t.Error("what was in the queue is lost")
	}
	select {
	case <-fast.done:
		t.Error("the fast one was dropped too")
	default:
	}
}

func TestHeartbeat(t *testing.T) {
	r := newFixture(t, llmtest.Script{}, withConfig(func(c *Config) { c.PingMs = 100 }))
	// A client that answers pings stays connected, however long it is idle.
	pings := make(chan struct{}, 100)
	conn, _, err := websocket.Dial(t.Context(), strings.Replace(r.server.URL, "http", "ws", 1)+"/ws", &websocket.DialOptions{
		OnPingReceived: func(context.Context, []byte) bool { pings <- struct{}{}; return true }})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	read := make(chan error, 1)
	go func() {
		for {
			if _, _, err := conn.Read(context.Background()); err != nil {
				read <- err
				return
			}
		}
	}()
	for range 4 {
		select {
		case <-pings:
		case err := <-read:
			t.Fatalf("closed: %v", err)
		}
	}
	// One that does not answer pings is disconnected.
	dead, _, err := websocket.Dial(t.Context(), strings.Replace(r.server.URL, "http", "ws", 1)+"/ws", &websocket.DialOptions{
		OnPingReceived: func(context.Context, []byte) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	defer dead.CloseNow()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for {
		if _, _, err := dead.Read(ctx); err != nil {
			if ctx.Err() != nil {
				t.Error("a dead connection is kept")
			}
			break
		}
	}
}

func TestManySessionsAtOnce(t *testing.T) {
	if testing.Short() || raceDetector {
		load(t, 100, 20)
		return
	}
	load(t, 1000, 200)
}

// load runs a turn with a tool call in many sessions concurrently, breaks some
// of their connections during the reply, and checks that no client misses a
// message.
func load(t *testing.T, sessions, cut int) {
	t.Helper()
	script := llmtest.Script{Chunk: 4, Rules: []llmtest.Rule{
		{When: llmtest.When{Match: `add (\d+) and (\d+)`, Results: llmtest.N(0)}, Reply: llmtest.Reply{Text: "Let me see. ", Calls: []llmtest.Call{{Tool: "calc:add", Args: json.RawMessage(`{"a":"=$1","b":"=$2"}`)}}}},
		{When: llmtest.When{Match: `add (\d+) and (\d+)`, Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: strings.Repeat("It is {{result}}. ", 10)}},
	}}
	r := newFixture(t, script, withConfig(func(c *Config) { c.MessagesPerMinute = 6000 }))
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			c := r.connect("")
			clients := []*client{c}
			c.sendText(fmt.Sprintf("add %d and 1", i))
			if i < cut {
				for range 1 + rand.IntN(6) {
					if m := c.next(); finished(m) {
						break
					}
				}
				c.conn.CloseNow()
				c = r.again(c)
				clients = append(clients, c)
			}
			if last := clients[0].all[len(clients[0].all)-1]; !finished(last) {
				if _, stop := c.reply(); stop != stopEnd {
					t.Errorf("session %d: %s", i, stop)
				}
			}
			want := "Let me see. " + strings.Repeat(fmt.Sprintf("It is %d. ", i+1), 10)
			if got := sequence(t, clients...); got != want {
				t.Errorf("session %d: %q", i, got)
			}
		})
	}
	wg.Wait()
}

// BenchmarkIdleSession reports the memory of a session whose client is
// connected and idle after one turn. It includes the client side, so the figure
// is an upper bound.
func BenchmarkIdleSession(b *testing.B) {
	r := newFixture(b, llmtest.Script{}, withConfig(func(c *Config) { c.MessagesPerMinute = 6000 }))
	warm := r.connect("")
	warm.sendText("hello")
	warm.reply()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const n = 500
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = r.connect("")
		clients[i].sendText("hello")
		clients[i].reply()
		r.awaitIdle(clients[i].id)
		clients[i].all = nil
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)
	b.ReportMetric(float64(used)/n, "bytes/session")
	runtime.KeepAlive(clients)
}
