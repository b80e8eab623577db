package chat

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/tool"
)

func (c *client) history() []wire.HistoryMessage {
	c.t.Helper()
	c.send("history", nil)
	return c.kind(wire.TypeHistory).Payload.Messages
}

func texts(messages []wire.HistoryMessage) (out []string) {
	for _, m := range messages {
		out = append(out, (llm.Message{Parts: m.Parts}).Text())
	}
	return out
}

// TestBranches edits a message, answers one again and goes back. Each branch
// keeps its messages, and the model sees only the current one, even after a
// restart.
func TestBranches(t *testing.T) {
	t.Parallel()
	r := newFixture(t, llmtest.Script{}, withConfig(func(cfg *Config) { cfg.MessagesPerMinute = 1000 }))
	c := r.connect("")
	for _, text := range []string{"one", "two"} {
		c.sendText(text)
		c.reply()
	}
	first := c.history()
	c.send("message", map[string]any{"text": "two, edited", "edit": first[2].ID})
	var branch struct{ Payload wire.BranchPayload }
	if err := json.Unmarshal(c.kind(wire.TypeBranch).Raw, &branch); err != nil || branch.Payload != (wire.BranchPayload{After: first[1].ID, Replaces: first[2].ID}) {
		t.Errorf("branch %+v, %v", branch, err)
	}
	if got, _ := c.reply(); got != "You said: two, edited" {
		t.Errorf("reply %q", got)
	}
	if n := len(r.model.Last().Messages); n != 3 {
		t.Errorf("the model saw %d messages", n)
	}
	edited := c.history()
	want := []string{"one", "You said: one", "two, edited", "You said: two, edited"}
	if got := texts(edited); !slices.Equal(got, want) {
		t.Errorf("edited: %q", got)
	}
	if s := edited[2].Siblings; len(s) != 2 || s[0] != first[2].ID || s[1] != edited[2].ID || edited[0].Siblings != nil {
		t.Errorf("siblings %v", s)
	}

	// Regenerate by the id of the reply.
	c.send("regenerate", map[string]any{"messageId": edited[3].ID})
	branch.Payload = wire.BranchPayload{}
	if err := json.Unmarshal(c.kind(wire.TypeBranch).Raw, &branch); err != nil || branch.Payload != (wire.BranchPayload{After: edited[2].ID, Again: true}) {
		t.Errorf("branch %+v, %v", branch, err)
	}
	c.reply()
	again := c.history()
	if got := texts(again); !slices.Equal(got, want) || again[3].ID == edited[3].ID || len(again[3].Siblings) != 2 {
		t.Errorf("again: %q, siblings %v", got, again[3].Siblings)
	}

	// Switch back to the first branch and continue there.
	r.awaitIdle(c.id)
	c.send("branch", map[string]any{"messageId": first[2].ID})
	c.kind(wire.TypeBranch)
	if got := texts(c.history()); !slices.Equal(got, texts(first)) {
		t.Errorf("back: %q", got)
	}
	other := newSession(t, r, c.id)
	if got := texts(other.History().Messages); !slices.Equal(got, texts(first)) {
		t.Errorf("loaded again: %q", got)
	}
	c.sendText("three")
	c.reply()
	if got := texts(c.history()); !slices.Equal(got, append(texts(first), "three", "You said: three")) {
		t.Errorf("on: %q", got)
	}
	if got := texts(newSession(t, r, c.id).History().Messages); len(got) != 6 || got[4] != "three" {
		t.Errorf("loaded again: %q", got)
	}

	for _, bad := range []struct {
		kind    string
		payload map[string]any
	}{{"message", map[string]any{"text": "x", "edit": "none"}}, {"message", map[string]any{"text": "x", "edit": first[1].ID}}, {"regenerate", map[string]any{"messageId": "none"}}, {"branch", map[string]any{"messageId": "none"}}} {
		r.awaitIdle(c.id)
		c.send(bad.kind, bad.payload)
		if m := c.kind(wire.TypeError); m.Payload.Code != string(tool.InvalidRequest) {
			t.Errorf("%v: %s", bad, m.Raw)
		}
	}
	if got := texts(c.history()); len(got) != 6 {
		t.Errorf("after refusals: %q", got)
	}
}

// TestSwitchAfterReply checks that a branch can be switched once the reply is
// complete, while its turn is still ending.
func TestSwitchAfterReply(t *testing.T) {
	t.Parallel()
	r := newFixture(t, llmtest.Script{})
	c := r.connect("")
	c.sendText("one")
	c.reply()
	s := newSession(t, r, c.id)
	id := s.History().Messages[0].ID
	running := &turn{session: s, done: make(chan struct{})}
	s.turn = running
	if err := s.Switch(t.Context(), id); err == nil || tool.AsError(err).Kind != wire.CodeBusy {
		t.Errorf("during the reply: %v", err)
	}
	running.ending = true
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.Switch(ended, id); !errors.Is(err, context.Canceled) {
		t.Errorf("it does not wait: %v", err)
	}
	go func() {
		s.mu.Lock()
		s.turn = nil
		s.mu.Unlock()
		close(running.done)
	}()
	if err := s.Switch(t.Context(), id); err != nil {
		t.Errorf("after the turn: %v", err)
	}
}

// newSession loads a session from the store, like another process.
func newSession(t *testing.T, r *fixture, id string) *Session {
	t.Helper()
	r.awaitIdle(id)
	s := &Session{host: r.host, id: id, owner: tool.Local.ID, stored: true, watchers: map[*Watcher]struct{}{}}
	if err := s.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSummaryOfAnotherBranch checks that a summary is used only on the branch
// that it summarises.
func TestSummaryOfAnotherBranch(t *testing.T) {
	all := []historyEntry{{seq: 1}, {seq: 2}, {seq: 3, messageMeta: messageMeta{Parent: new(int64)}}, {seq: 4}}
	if path := pathTo(all, 0); len(path) != 2 || path[0].seq != 3 || onPath(path, 2) || !onPath(path, 3) {
		t.Errorf("path %v", path)
	}
	if path := pathTo(all, 2); len(path) != 2 || path[0].seq != 1 {
		t.Errorf("path %v", path)
	}
	if leaf := newestLeaf(all, 1); leaf != 2 {
		t.Errorf("leaf %d", leaf)
	}
}

// TestPreferences checks that a conversation has its own system prompt,
// temperature and servers.
func TestPreferences(t *testing.T) {
	t.Parallel()
	r := newFixture(t, llmtest.Script{})
	c := r.connect("")
	c.send("preferences", map[string]any{"systemPrompt": "Answer like a pirate.", "temperature": 0.3, "servers": []string{"calc"}})
	c.kind(wire.TypeSession)
	if m := r.dial("sessionId=" + c.id).next(); m.Type != wire.TypeConnection || !strings.Contains(string(m.Raw), "pirate") {
		t.Errorf("the greeting has no preferences: %s", m.Raw)
	}
	c.sendText("hello")
	c.reply()
	req := r.model.Last()
	if !strings.Contains(req.System, "pirate") || !strings.Contains(string(req.Body), `"temperature":0.3`) {
		t.Errorf("request %s", req.Body)
	}
	if len(req.Tools) != 1 || strings.Contains(req.System, "odd") {
		t.Errorf("tools %v", req.Tools)
	}
	if p := newSession(t, r, c.id).preferences(); p.SystemPrompt == "" || p.Temperature == nil || len(p.Servers) != 1 {
		t.Errorf("stored %+v", p)
	}
	c.send("preferences", map[string]any{"temperature": 3})
	if m := c.kind(wire.TypeError); !strings.Contains(m.Payload.Message, "between 0 and 2") {
		t.Errorf("%s", m.Raw)
	}
	c.send("preferences", nil)
	c.kind(wire.TypeSession)
	c.sendText("again")
	c.reply()
	if req := r.model.Last(); len(req.Tools) < 5 || strings.Contains(req.System, "pirate") {
		t.Errorf("tools %v", req.Tools)
	}
	h := r.host
	if res, _ := h.metaCall(&tool.Local, wire.Preferences{Servers: []string{"calc"}}, &llm.ToolCall{ID: "1", Tool: metaExecute, Arguments: json.RawMessage(`{"tool":"odd:boom"}`)}); res == nil || !res.IsError {
		t.Errorf("a tool of another server is executed")
	}
}

// TestAttachments sends images, text and a document to each provider.
func TestAttachments(t *testing.T) {
	each(t, llmtest.Script{}, func(t *testing.T, r *fixture) {
		c := r.connect("")
		b64 := base64.StdEncoding.EncodeToString
		c.send("message", map[string]any{"text": "look", "attachments": []map[string]any{
			{"name": "dot.png", "mimeType": "image/png", "data": b64([]byte("\x89PNG"))},
			{"name": "notes.md", "mimeType": "text/markdown", "data": b64([]byte("the secret word is xyzzy"))},
			{"name": "paper.pdf", "mimeType": "application/pdf", "data": b64([]byte("%PDF-1.7"))},
		}})
		if m := c.kind(wire.TypeMessage); !strings.Contains(string(m.Raw), `"notes.md"`) || strings.Contains(string(m.Raw), "JVBERi0") {
			t.Errorf("message %s", m.Raw)
		}
		c.reply()
		req := r.model.Last()
		if body := string(req.Body); !strings.Contains(body, "xyzzy") || !strings.Contains(body, b64([]byte("%PDF-1.7"))) || req.Messages[0].Images == 0 {
			t.Errorf("request %s", body)
		}
		parts := c.history()[0].Parts
		if len(parts) != 4 || parts[1].Image == nil || parts[2].File == nil || parts[2].File.Name != "notes.md" || parts[2].File.Data != nil || parts[3].File.Size != 8 {
			t.Errorf("history %+v", parts)
		}
		for name, a := range map[string]map[string]any{
			"binary":     {"name": "a.bin", "mimeType": "application/octet-stream", "data": b64([]byte{0, 1, 2})},
			"not base64": {"name": "a.txt", "mimeType": "text/plain", "data": "§"},
			"no name":    {"name": " ", "mimeType": "text/plain", "data": ""},
			"too large":  {"name": "a.txt", "mimeType": "text/plain", "data": b64(make([]byte, 3000))},
		} {
			r.awaitIdle(c.id)
			c.send("message", map[string]any{"text": "x", "attachments": []any{a}})
			if m := c.kind(wire.TypeError); m.Payload.Code == "" {
				t.Errorf("%s: %s", name, m.Raw)
			}
		}
	}, withConfig(func(cfg *Config) { cfg.MaxAttachmentBytes = 2000 }))
}

// TestSessionSearchPinAndTitle uses the HTTP API of sessions.
func TestSessionSearchPinAndTitle(t *testing.T) {
	t.Parallel()
	r := newFixture(t, llmtest.Script{})
	ask := func(method, path, body string) string {
		t.Helper()
		req, err := http.NewRequest(method, r.server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	c := r.connect("")
	c.sendText("where is the Äquator, roughly?")
	c.reply()
	other := r.connect("")
	other.sendText("something else")
	other.reply()
	r.awaitIdle(c.id)
	r.awaitIdle(other.id)

	if got := ask("GET", "/api/sessions?q=ROUGHLY", ""); !strings.Contains(got, c.id) || strings.Contains(got, other.id) || !strings.Contains(got, `"match":"where is the Äquator, roughly?"`) {
		t.Errorf("search: %s", got)
	}
	// Text of the record that is not part of a message is not found.
	if got := ask("GET", "/api/sessions?q=parts", ""); !strings.Contains(got, `"sessions":[]`) {
		t.Errorf("search: %s", got)
	}
	if got := ask("GET", "/api/sessions?q=else&as=eve", ""); !strings.Contains(got, `"sessions":[]`) {
		t.Errorf("search of another: %s", got)
	}
	if got := ask("PATCH", "/api/sessions/"+c.id, `{"pinned":true}`); !strings.Contains(got, `"pinned":true`) {
		t.Errorf("pin: %s", got)
	}
	c.sendText("more")
	c.reply()
	r.awaitIdle(c.id)
	if got := ask("GET", "/api/sessions", ""); strings.Count(got, `"pinned":true`) != 1 {
		t.Errorf("after a message: %s", got)
	}
	if got := ask("POST", "/api/sessions/"+c.id+"/title", ""); !strings.Contains(got, `"title":"You said: user: where is`) {
		t.Errorf("title: %s", got)
	}
	if got := ask("POST", "/api/sessions/"+c.id+"/title?as=eve", ""); strings.Contains(got, `"title"`) {
		t.Errorf("title by another: %s", got)
	}
}
