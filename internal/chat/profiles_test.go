package chat

import (
	"strings"
	"testing"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/profile"
	"junctor/internal/tool"
)

// TestProfileReadsOnlyWhatWasWrittenWithIt: a caller that is narrowed to a profile
// does not read the conversations of the same caller without it.
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
	// What the whole caller writes is no longer the profile's.
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
	<-w.gone
	if _, err := r.host.Open(t.Context(), narrow, part); err == nil {
		t.Error("the profile reads on")
	}
	if got := reads(narrow); got != "" {
		t.Errorf("the profile reads %q", got)
	}
}

// TestConversationChoosesProfile: the model gets the tools and the instructions of
// the profile that a conversation has chosen.
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
	c.say("hi")
	c.reply()
	if got := string(r.model.Last().Body); !strings.Contains(got, "calc") || strings.Contains(got, "boom") || !strings.Contains(got, "Only sums.") {
		t.Errorf("the model gets %s", got)
	}
	set.SetConfig(nil) // the profile is removed
	c.say("hi")
	if e := c.kind(wire.TypeError); !strings.Contains(e.Payload.Message, "sums") {
		t.Errorf("without the profile: %s", e.Raw)
	}
}
