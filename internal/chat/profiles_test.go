package chat

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/profile"
	"junctor/internal/tool"
)

// TestProfileReadsOnlyWhatWasWrittenWithIt checks that a caller narrowed to a
// profile cannot read the conversations that it had without the profile.
func TestProfileReadsOnlyWhatWasWrittenWithIt(t *testing.T) {
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{{Reply: llmtest.Reply{Text: "hello"}}}})
	whole := tool.Caller{ID: "sub:ann", Chat: true}
	narrow, other := whole, whole
	narrow.Profiles, other.Profiles = tool.Profiles{tool.UnknownProfile("part")}, tool.Profiles{tool.UnknownProfile("other")}
	write := func(caller tool.Caller, id, text string) string {
		t.Helper()
		s, err := r.host.Open(t.Context(), caller, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(t.Context(), caller, text, ""); err != nil {
			t.Fatal(err)
		}
		if err := s.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s.ID()
	}
	reads := func(caller tool.Caller) string {
		t.Helper()
		list, err := r.host.List(t.Context(), caller, time.Time{}, 0)
		found, err2 := r.host.Search(t.Context(), caller, "words", 0)
		if err != nil || err2 != nil || len(list) != len(found) {
			t.Fatalf("%d sessions, %d found: %v, %v", len(list), len(found), err, err2)
		}
		var titles []string
		for _, s := range list {
			titles = append(titles, s.Title)
			if _, err := r.host.Open(t.Context(), caller, s.ID); err != nil {
				t.Errorf("open %s: %v", s.Title, err)
			}
		}
		return strings.Join(titles, ", ")
	}
	secret := write(whole, "", "secret words")
	part := write(narrow, "", "narrow words")
	for name, tt := range map[string]struct {
		caller tool.Caller
		want   string
	}{"whole": {whole, "narrow words, secret words"}, "narrow": {narrow, "narrow words"}, "other": {other, ""}} {
		if got := reads(tt.caller); got != tt.want {
			t.Errorf("%s reads %q, want %q", name, got, tt.want)
		}
	}
	for _, loaded := range []bool{true, false} {
		if !loaded {
			r.end()
			r.start()
		}
		if _, err := r.host.Open(t.Context(), narrow, secret); err == nil {
			t.Errorf("a conversation of the whole caller is opened; loaded: %t", loaded)
		}
		if err := r.host.Delete(t.Context(), narrow, secret); err == nil {
			t.Errorf("a conversation of the whole caller is deleted; loaded: %t", loaded)
		}
	}
	// After the caller writes without the profile, the profile can no longer
	// read the conversation.
	s, err := r.host.Open(t.Context(), narrow, part)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Watch(t.Context(), narrow, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	write(whole, part, "more words")
	<-w.done
	if _, err := r.host.Open(t.Context(), narrow, part); err == nil {
		t.Error("the profile reads on")
	}
	if got := reads(narrow); got != "" {
		t.Errorf("the profile reads %q", got)
	}
}

// TestProfileIsTakenOnAnotherNode checks that a caller narrowed to a profile
// can neither read nor decide anything once the same caller has written to the
// conversation without the profile, on any node.
func TestProfileIsTakenOnAnotherNode(t *testing.T) {
	a := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "secret", Results: llmtest.N(0)}, Reply: llmtest.Reply{Text: "secret reply", Calls: []llmtest.Call{{Tool: "ask:delete", Args: json.RawMessage(`{}`)}}}},
		{Reply: llmtest.Reply{Text: "hello"}},
	}}, withSharedStore)
	b := &fixture{t: t, model: a.model, store: a.store, logs: a.logs}
	b.start(withSharedStore)
	whole := tool.Caller{ID: "sub:ann", Chat: true}
	narrow := whole
	narrow.Profiles = tool.Profiles{tool.UnknownProfile("part")}
	open := func(r *fixture, caller tool.Caller, id string) *Session {
		t.Helper()
		s, err := r.host.Open(t.Context(), caller, id)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	send := func(s *Session, caller tool.Caller, text string) {
		t.Helper()
		if err := s.Send(t.Context(), caller, text, ""); err != nil {
			t.Fatal(err)
		}
	}
	drain := func(w *Watcher) (got []string) {
		for {
			select {
			case data := <-w.queue:
				got = append(got, string(data))
			default:
				return got
			}
		}
	}
	first := open(a, narrow, "")
	send(first, narrow, "narrow words")
	if err := first.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, err := first.Watch(t.Context(), narrow, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	// A connection whose process has not seen the change yet.
	late := &connection{host: a.host, caller: narrow, session: first, watcher: &Watcher{session: first, caller: narrow, queue: make(chan []byte, queueLength), done: make(chan struct{})}}

	second := open(b, whole, first.ID())
	reply, err := second.Watch(t.Context(), whole, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Close()
	send(second, whole, "secret words")
	var approval message
	for approval.Type != wire.TypeApproval {
		data, ok := reply.next(t.Context())
		if !ok || json.Unmarshal(data, &approval) != nil {
			t.Fatalf("no approval: %s", data)
		}
	}
	for data, ok := w.next(t.Context()); ok; data, ok = w.next(t.Context()) { // until it is dropped
		if strings.Contains(string(data), "secret") {
			t.Fatalf("the watcher gets %s", data)
		}
	}
	for _, in := range []string{`{"type":"approve","payload":{"callId":"` + approval.Payload.CallID + `"}}`, `{"type":"abort"}`, `{"type":"history"}`} {
		first.mu.Lock()
		first.meta.Profiles = []string{"part"}
		first.mu.Unlock()
		late.handle(t.Context(), []byte(in))
		if got := drain(late.watcher); len(got) != 1 || !strings.Contains(got[0], "no such session") {
			t.Errorf("%s is answered with %s", in, got)
		}
	}
	if commands, err := a.store.Values(t.Context(), commandSpace); err != nil || len(commands) > 0 || !second.waiting() {
		t.Errorf("commands %v, %v; waiting: %t", commands, err, second.waiting())
	}
	if _, err := first.Watch(t.Context(), narrow, -1); err == nil {
		t.Error("the profile reads on")
	}
	second.Abort(t.Context())
	if err := second.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestConversationChoosesProfile checks that the model gets the tools and
// instructions of the conversation's profile.
func TestConversationChoosesProfile(t *testing.T) {
	set := profile.New(map[string]profile.Config{"sums": {Servers: []string{"calc"}, Instructions: "Only sums."}}, profile.Options{Servers: func() []string { return []string{"calc", "odd", "ask"} }})
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{{Reply: llmtest.Reply{Text: "hello"}}}}, func(o *Options, _ *[]llm.Config) { o.Profiles = set })
	c := r.connect("")
	c.send("preferences", map[string]any{"profile": "none"})
	if e := c.kind(wire.TypeError); !strings.Contains(e.Payload.Message, "sums") {
		t.Errorf("an unknown profile: %s", e.Raw)
	}
	c.send("preferences", map[string]any{"profile": "sums"})
	if m := c.kind(wire.TypeSession); !strings.Contains(string(m.Raw), `"profile":"sums"`) {
		t.Errorf("the session: %s", m.Raw)
	}
	c.sendText("hi")
	c.reply()
	if got := string(r.model.Last().Body); !strings.Contains(got, "calc") || strings.Contains(got, "boom") || !strings.Contains(got, "Only sums.") {
		t.Errorf("the model gets %s", got)
	}
	set.SetConfig(nil) // the profile is removed
	c.sendText("hi")
	if e := c.kind(wire.TypeError); !strings.Contains(e.Payload.Message, "sums") {
		t.Errorf("without the profile: %s", e.Raw)
	}
}

// TestModelCallsOnlyToolsOfRequest checks that a call of a tool that the
// conversation may not use fails as unknown, whatever name the model uses. The
// tool does not run, and its server is not named.
func TestModelCallsOnlyToolsOfRequest(t *testing.T) {
	each(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "call", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "add", Args: json.RawMessage(`{"a":1,"b":2}`)}}}},
		{When: llmtest.When{User: "call", Results: llmtest.N(1)}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "calc__add", Args: json.RawMessage(`{"a":1,"b":2}`)}}}},
		{When: llmtest.When{User: "call", Results: llmtest.N(2)}, Reply: llmtest.Reply{Text: "{{results}}"}},
	}}, func(t *testing.T, r *fixture) {
		c := r.connect("")
		c.send("preferences", map[string]any{"servers": []string{"odd"}})
		c.kind(wire.TypeSession)
		from := len(c.all)
		c.sendText("call")
		text, _ := c.reply()
		if strings.Count(text, "TOOL_NOT_FOUND") != 2 || strings.Contains(text, "Did you mean calc__") {
			t.Errorf("the model is told %s", text)
		}
		for _, m := range c.all[from:] {
			if strings.Contains(string(m.Raw), "calc:") {
				t.Errorf("the person is told %s", m.Raw)
			}
		}
	})
}
