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

func TestSessionsOverHTTP(t *testing.T) {
	r := newFixture(t, toolScript)
	c := r.connect("")
	c.sendText("add 1 and 2")
	c.reply()
	r.awaitIdle(c.id)
	path := "/api/sessions/" + c.id

	_, list, _ := r.rest("GET", "/api/sessions?limit=10&before="+time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano), "")
	if all := list["sessions"].([]any); len(all) != 1 || all[0].(map[string]any)["title"] != "add 1 and 2" || all[0].(map[string]any)["active"] != false {
		t.Errorf("list %v", list)
	}
	if _, one, _ := r.rest("GET", path, ""); len(one["messages"].([]any)) != 4 {
		t.Errorf("session %v", one)
	}
	if status, one, _ := r.rest("PATCH", path, `{"title":"  Sums \n of mine ","model":"m"}`); status != 200 || one["title"] != "Sums of mine" || one["model"] != "m" {
		t.Errorf("renamed %v", one)
	}
	if m := c.kind(wire.TypeSession); m.Payload.Title != "Sums of mine" {
		t.Errorf("watchers were told %s", m.Raw)
	}
	for body, want := range map[string]int{`{"title":""}`: 400, `{"title":"` + strings.Repeat("x", 300) + `"}`: 400, `{"model":"nope"}`: 400, `{"name":"x"}`: 400, `nonsense`: 400, `{"title":"` + strings.Repeat("x", 100_000) + `"}`: 413} {
		if status, _, raw := r.rest("PATCH", path, body); status != want {
			t.Errorf("%.40s: %d %s", body, status, raw)
		}
	}
	_, _, md := r.rest("GET", path+"/export", "")
	for _, want := range []string{"# Sums of mine", "## You\n\nadd 1 and 2", "**Call of `calc:add`**", "\"a\": 1", "**Result of `calc__add`**\n\n```\n3\n```", "It is 3."} {
		if !strings.Contains(md, want) {
			t.Errorf("the export lacks %q:\n%s", want, md)
		}
	}
	if _, js, _ := r.rest("GET", path+"/export?format=json", ""); len(js["messages"].([]any)) != 4 || js["title"] != "Sums of mine" {
		t.Errorf("JSON export %v", js)
	}
	for _, p := range []string{"/api/sessions?limit=x", "/api/sessions?before=x", path + "/export?format=pdf"} {
		if status, body, _ := r.rest("GET", p, ""); status != 400 || body["code"] != "INVALID_REQUEST" {
			t.Errorf("%s: %d %v", p, status, body)
		}
	}
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		if status, _, raw := r.rest(method, path+"?as=you", `{"title":"x"}`); status != 404 {
			t.Errorf("%s by someone else: %d %s", method, status, raw)
		}
	}
	if status, _, _ := r.rest("GET", path+"/export?as=you", ""); status != 404 {
		t.Errorf("export by someone else: %d", status)
	}
	if _, models, _ := r.rest("GET", "/api/models", ""); fmt.Sprint(models["models"]) != "[map[contextWindow:400000 default:true documents:true id:m model:gpt-test provider:openai]]" {
		t.Errorf("models %v", models)
	}
	if status, _, _ := r.rest("DELETE", path, ""); status != 204 {
		t.Errorf("delete: %d", status)
	}
	for {
		if _, err := c.read(); err != nil {
			if websocket.CloseStatus(err) != closeDeleted {
				t.Errorf("watcher of a deleted session: %v", err)
			}
			break
		}
	}
	if status, _, _ := r.rest("GET", path, ""); status != 404 {
		t.Errorf("deleted, and still there: %d", status)
	}
	r.set = llm.NewSet()
	if _, models, _ := r.rest("GET", "/api/models", ""); !strings.Contains(fmt.Sprint(models["message"]), "no model") {
		t.Errorf("without models: %v", models)
	}
}

func TestDeleteEndsTheReply(t *testing.T) {
	r := newFixture(t, slowScript)
	c := r.connect("")
	c.sendText("call")
	<-r.ups.begun
	if status, _, raw := r.rest("DELETE", "/api/sessions/"+c.id, ""); status != 204 {
		t.Fatalf("%d %s", status, raw)
	}
	if _, err := r.host.Open(t.Context(), tool.Local, c.id); err == nil {
		t.Error("it is still there")
	}
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

// brokenStore fails the operations named in fail.
type brokenStore struct {
	Store
	fail sync.Map
}

func (s *brokenStore) err(what string) error {
	if _, ok := s.fail.Load(what); ok {
		return fmt.Errorf("%s: %w", what, store.ErrUnavailable)
	}
	return nil
}

func (s *brokenStore) AppendMessages(ctx context.Context, id string, m ...store.Message) error {
	if err := s.err("messages"); err != nil {
		return err
	}
	if len(m) > 0 && m[0].Role == "assistant" {
		if err := s.err("assistant"); err != nil {
			return err
		}
	}
	return s.Store.AppendMessages(ctx, id, m...)
}

func (s *brokenStore) AppendEvents(ctx context.Context, id string, e ...store.Event) error {
	if err := s.err("events"); err != nil {
		return err
	}
	return s.Store.AppendEvents(ctx, id, e...)
}

func (s *brokenStore) CreateSession(ctx context.Context, c store.Session) error {
	if err := s.err("create"); err != nil {
		return err
	}
	return s.Store.CreateSession(ctx, c)
}

func (s *brokenStore) Session(ctx context.Context, id string) (store.Session, error) {
	if err := s.err("session"); err != nil {
		return store.Session{}, err
	}
	return s.Store.Session(ctx, id)
}

func (s *brokenStore) Sessions(ctx context.Context, q store.SessionQuery) ([]store.Session, error) {
	if err := s.err("session"); err != nil {
		return nil, err
	}
	return s.Store.Sessions(ctx, q)
}

func (s *brokenStore) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (store.Lease, bool, error) {
	if err := s.err("lease"); err != nil {
		return store.Lease{}, false, err
	}
	return s.Store.Acquire(ctx, name, owner, ttl)
}

func TestStoreErrorsAreReported(t *testing.T) {
	var broken *brokenStore
	r := newFixture(t, llmtest.Script{}, func(o *Options, _ *[]llm.Config) {
		broken = &brokenStore{Store: o.Store}
		o.Store = broken
	})
	c := r.connect("")
	for _, what := range []string{"create", "lease", "messages"} {
		broken.fail.Store(what, true)
		c.sendText("hello")
		if m := c.kind(wire.TypeError); m.Payload.Code != "UNAVAILABLE" {
			t.Errorf("%s: %s", what, m.Raw)
		}
		broken.fail.Delete(what)
	}
	c.sendText("hello")
	if text, _ := c.reply(); text != "You said: hello" {
		t.Errorf("once it is back: %q", text)
	}
	r.awaitIdle(c.id)
	broken.fail.Store("events", true) // the conversation continues but cannot be resumed
	c.sendText("hello")
	if text, _ := c.reply(); text != "You said: hello" {
		t.Errorf("without events: %q", text)
	}
	r.awaitIdle(c.id)
	broken.fail.Delete("events")
	broken.fail.Store("assistant", true)
	c.sendText("hello")
	if _, stop := c.reply(); stop != stopError {
		t.Errorf("unsaved reply: %s", stop)
	}
	r.awaitIdle(c.id)
	broken.fail.Delete("assistant")
	broken.fail.Store("session", true)
	if status, _, raw := r.rest("GET", "/api/sessions", ""); status != 503 {
		t.Errorf("list: %d %s", status, raw)
	}
	if status, _, raw := r.rest("GET", "/api/sessions/"+c.id, ""); status != 503 {
		t.Errorf("show: %d %s", status, raw)
	}
	r.host.mu.Lock()
	clear(r.host.sessions)
	r.host.mu.Unlock()
	n := r.dial("sessionId=" + c.id)
	n.next()
	n.next()
	if _, err := n.read(); websocket.CloseStatus(err) != websocket.StatusTryAgainLater {
		t.Errorf("closed with %v", err)
	}
}
