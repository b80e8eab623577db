package chat

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"junctor/internal/chat/wire"
	"junctor/internal/llm/llmtest"
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
