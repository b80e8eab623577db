package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"junctor/internal/chat/wire"
	"junctor/internal/llm/llmtest"
	"junctor/internal/store"
	"junctor/internal/tool"
)

func TestInvalidMessagesAreRefused(t *testing.T) {
	r := newFixture(t, llmtest.Script{}, withConfig(func(c *Config) { c.MaxMessageBytes = 1000; c.MessagesPerMinute = 6000 }))
	c := r.connect("")
	for name, tt := range map[string]struct{ in, code string }{
		"not JSON":      {`hello`, "PARSE_ERROR"},
		"wrong type":    {`{"type":"message","payload":{"text":7}}`, "INVALID_REQUEST"},
		"unknown type":  {`{"type":"dance"}`, "INVALID_REQUEST"},
		"empty text":    {`{"type":"message","payload":{"text":" \n "}}`, "INVALID_REQUEST"},
		"too long":      {`{"type":"message","payload":{"text":"` + strings.Repeat("x", 1001) + `"}}`, "TOO_LARGE"},
		"unknown model": {`{"type":"message","payload":{"text":"x","model":"nope"}}`, "INVALID_REQUEST"},
	} {
		c.raw(tt.in)
		if m := c.next(); m.Type != wire.TypeError || m.Payload.Code != tt.code {
			t.Errorf("%s: %s, want %s", name, m.Raw, tt.code)
		}
	}
	if err := c.conn.Write(t.Context(), websocket.MessageBinary, []byte{1}); err != nil {
		t.Fatal(err)
	}
	if m := c.next(); m.Payload.Code != "INVALID_REQUEST" {
		t.Errorf("binary: %s", m.Raw)
	}
	c.sendText("still here")
	if text, _ := c.reply(); text != "You said: still here" {
		t.Errorf("after all that: %q", text)
	}
	// A message of 30 MB closes its own connection only.
	big := r.connect("")
	_ = big.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"message","payload":{"text":"`+strings.Repeat("x", 30<<20)+`"}}`))
	for {
		_, err := big.read()
		if err == nil {
			continue
		}
		if code := websocket.CloseStatus(err); code != websocket.StatusMessageTooBig && !strings.Contains(err.Error(), "reset") && !strings.Contains(err.Error(), "pipe") && !errors.Is(err, io.EOF) {
			t.Errorf("closed with %v (%v)", code, err)
		}
		break
	}
	c.sendText("and here")
	if text, _ := c.reply(); text != "You said: and here" {
		t.Errorf("after thirty megabytes: %q", text)
	}
}

func TestMessagesAreRateLimited(t *testing.T) {
	r := newFixture(t, llmtest.Script{}, withConfig(func(c *Config) { c.MessagesPerMinute = 20 }))
	c := r.connect("")
	for range 20 {
		c.send("history", nil)
	}
	limited := c.readUntil(func(m message) bool { return m.Type == wire.TypeError })
	if limited.Payload.Code != "RATE_LIMITED" {
		t.Errorf("error %s", limited.Raw)
	}
	for range 2 * maxIgnored {
		if c.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"history"}`)) != nil {
			break
		}
	}
	for {
		if _, err := c.read(); err != nil {
			if code := websocket.CloseStatus(err); code != closeFlood && code != -1 {
				t.Errorf("closed with %d: %v", code, err)
			}
			break
		}
	}
}

func TestSessionsOfOtherCallersAreNotFound(t *testing.T) {
	r := newFixture(t, llmtest.Script{})
	mine := r.connect("as=me")
	mine.sendText("hello")
	mine.reply()
	for name, query := range map[string]string{
		"someone else's, live": "as=you&sessionId=" + mine.id,
		"never was":            "as=me&sessionId=never-was",
		"absurdly long":        "as=me&sessionId=" + strings.Repeat("x", 5000),
	} {
		c := r.dial(query)
		if m := c.next(); m.Type != wire.TypeConnection || m.Payload.State != "error" {
			t.Errorf("%s: %s", name, m.Raw)
		}
		if m := c.next(); m.Type != wire.TypeError || strings.Contains(string(m.Raw), "hello") {
			t.Errorf("%s: %s", name, m.Raw)
		}
		if _, err := c.read(); websocket.CloseStatus(err) != closeNoSession {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, err := r.host.Open(t.Context(), tool.Caller{ID: "me"}, mine.id); err != nil || s.wait(t.Context()) != nil {
		t.Fatal(err)
	}
	r.host.mu.Lock()
	clear(r.host.sessions) // unloaded sessions are checked too
	r.host.mu.Unlock()
	if _, err := r.host.Open(t.Context(), tool.Caller{ID: "you"}, mine.id); err == nil {
		t.Error("someone else's session was opened from the store")
	}
	if s, err := r.host.Open(t.Context(), tool.Caller{ID: "me"}, mine.id); err != nil || len(s.History().Messages) != 2 {
		t.Errorf("one's own: %v", err)
	}
}

func TestTooManyConnections(t *testing.T) {
	r := newFixture(t, llmtest.Script{}, withConfig(func(c *Config) { c.MaxConnections = 2 }))
	if res, err := http.Get(r.server.URL + "/ws"); err != nil || res.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("without an upgrade: %v, %v", res, err)
	}
	r.connect("")
	c := r.connect("")
	_, res, err := websocket.Dial(t.Context(), strings.Replace(r.server.URL, "http", "ws", 1)+"/ws", nil)
	if err == nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a third: %v", err)
	}
	c.conn.Close(websocket.StatusNormalClosure, "")
	deadline := time.Now().Add(testTimeout)
	for { // until the server has noticed the closed connection
		conn, _, err := websocket.Dial(t.Context(), strings.Replace(r.server.URL, "http", "ws", 1)+"/ws", nil)
		if err == nil {
			conn.CloseNow()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the place never becomes free")
		}
	}
}

func (r *fixture) rest(method, path, body string) (int, map[string]any, string) {
	r.t.Helper()
	req, _ := http.NewRequestWithContext(context.Background(), method, r.server.URL+path, strings.NewReader(body))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(res.Body)
	var out map[string]any
	json.Unmarshal(raw, &out)
	return res.StatusCode, out, string(raw)
}

func TestOldestSessionIsDeletedAtLimit(t *testing.T) {
	r := newFixture(t, llmtest.Script{}, withConfig(func(c *Config) { c.MaxSessions = 3 }))
	for i := range 6 {
		s, err := r.host.Open(t.Context(), tool.Local, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(t.Context(), tool.Local, fmt.Sprint("session ", i), ""); err != nil {
			t.Fatal(err)
		}
		r.awaitIdle(s.ID())
	}
	list, err := r.host.List(t.Context(), tool.Local, time.Time{}, 0)
	if err != nil || len(list) != 3 || list[0].Title != "session 5" {
		t.Errorf("%v, %v", list, err)
	}
}

func TestPinnedSessionsStayAtLimit(t *testing.T) {
	r := newFixture(t, llmtest.Script{}, withConfig(func(c *Config) { c.MaxSessions = 3 }))
	yes := true
	var ids []string
	for i := range 6 {
		s, err := r.host.Open(t.Context(), tool.Local, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(t.Context(), tool.Local, fmt.Sprint("session ", i), ""); err != nil {
			t.Fatal(err)
		}
		r.awaitIdle(s.ID())
		if ids = append(ids, s.ID()); i < 2 {
			if _, err := r.host.Change(t.Context(), tool.Local, s.ID(), wire.SessionChange{Pinned: &yes}); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, err := r.host.List(t.Context(), tool.Local, time.Time{}, 0)
	var titles []string
	for _, s := range list {
		titles = append(titles, s.Title)
	}
	slices.Sort(titles)
	if err != nil || !slices.Equal(titles, []string{"session 0", "session 1", "session 5"}) {
		t.Errorf("%q, %v", titles, err)
	}
	// Pinned sessions must leave room for a new one.
	if _, err := r.host.Change(t.Context(), tool.Local, ids[5], wire.SessionChange{Pinned: &yes}); err == nil || !strings.Contains(err.Error(), "unpin one first") {
		t.Errorf("pinned: %v", err)
	}
}

func TestEmptySessionsAreRemoved(t *testing.T) {
	r := newFixture(t, llmtest.Script{})
	count := func() int {
		r.host.mu.Lock()
		defer r.host.mu.Unlock()
		return len(r.host.sessions)
	}
	for range 100 {
		s, err := r.host.Open(t.Context(), tool.Local, "")
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Watch(t.Context(), tool.Local, -1)
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	r.host.sweep(time.Now().Add(unusedSessionIdle / 2)) // a client may reconnect after a short absence
	if n := count(); n != 100 {
		t.Errorf("%d sessions in memory, want 100", n)
	}
	r.host.sweep(time.Now().Add(2 * unusedSessionIdle))
	if n := count(); n != 0 {
		t.Errorf("%d sessions in memory", n)
	}
}

func TestIdleSessionsAreUnloaded(t *testing.T) {
	r := newFixture(t, llmtest.Script{})
	s, err := r.host.Open(t.Context(), tool.Local, "")
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Watch(t.Context(), tool.Local, -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), tool.Local, "hello", ""); err != nil {
		t.Fatal(err)
	}
	r.awaitIdle(s.ID())
	r.host.sweep(time.Now().Add(time.Hour))
	r.host.mu.Lock()
	n := len(r.host.sessions)
	r.host.mu.Unlock()
	if n != 1 {
		t.Errorf("a session that is watched was forgotten")
	}
	w.Close()
	r.host.sweep(time.Now().Add(time.Hour))
	r.host.mu.Lock()
	n = len(r.host.sessions)
	r.host.mu.Unlock()
	if n != 0 {
		t.Errorf("%d sessions in memory", n)
	}
	if h := r.open(s.ID()).History(); len(h.Messages) != 2 {
		t.Errorf("history after it came back: %d", len(h.Messages))
	}
}

func TestOneRequestIDFromTheSocketToTheRecord(t *testing.T) {
	r := newFixture(t, toolScript)
	c := r.connect("")
	c.sendText("add 1 and 2")
	c.reply()
	r.awaitIdle(c.id)
	records, err := r.store.Calls(t.Context(), store.CallQuery{})
	if err != nil || len(records) != 1 {
		t.Fatalf("%v, %v", records, err)
	}
	rec := records[0]
	if rec.Session != c.id || rec.Face != "chat" || !strings.HasPrefix(rec.RequestID, "turn_") {
		t.Errorf("record %+v", rec)
	}
	turn, _, _ := strings.Cut(rec.RequestID, "-")
	var trace string
	lines := 0
	for line := range strings.Lines(r.logs.String()) {
		var l map[string]any
		if json.Unmarshal([]byte(line), &l) != nil || l["msg"] != "reply done" && l["component"] != "executor" {
			continue
		}
		lines++
		if id, _ := l["requestId"].(string); !strings.HasPrefix(id, turn) {
			t.Errorf("request id in %s", line)
		}
		if l["sessionId"] != c.id || l["traceId"] == nil || trace != "" && l["traceId"] != trace {
			t.Errorf("session or trace in %s", line)
		}
		trace, _ = l["traceId"].(string)
	}
	if lines < 2 {
		t.Errorf("%d lines in the log:\n%s", lines, r.logs)
	}
}

func TestShutdownCompletesHistory(t *testing.T) {
	r := newFixture(t, slowScript)
	c := r.connect("")
	c.sendText("call")
	<-r.ups.begun
	r.end() // as on shutdown
	messages, err := r.store.Messages(t.Context(), c.id, 0, 0)
	if err != nil || len(messages) != 3 || !strings.Contains(string(messages[2].Content), "cancelled") {
		t.Errorf("%d messages, %v", len(messages), err)
	}
	if _, err := r.host.Open(t.Context(), tool.Local, ""); tool.KindOf(err) != tool.Unavailable {
		t.Errorf("opened after the end: %v", err)
	}
}
