package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/store"
	"junctor/internal/tool"
)

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
