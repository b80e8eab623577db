package mcpclient

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
	"junctor/internal/tool"
)

// asker is a caller that accepts every question and records the call that was
// asked.
type asker struct {
	mu     sync.Mutex
	asked  []string
	queued map[string][]bool
}

// call makes a call during which its caller can be asked.
func (a *asker) call(ctx context.Context, c *Client, caller, name string) error {
	_, err := c.Do(ctx, tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"` + name + `"}`), Caller: caller, Exchange: tool.Exchange{
		Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.asked = append(a.asked, name)
			return json.RawMessage(`{"action":"accept"}`), nil
		},
		Queued: func(waits bool) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.queued == nil {
				a.queued = map[string][]bool{}
			}
			a.queued[name] = append(a.queued[name], waits)
		},
	}})
	return err
}

// ask sends a question and returns the text of the error, or "".
func (s *script) ask(id mcp.ID, meta string) string {
	s.send(mcp.Message{ID: id, Method: "elicitation/create", Params: json.RawMessage(`{"message":"?","_meta":` + meta + `}`)})
	m := s.next()
	if m.ID != id {
		s.t.Errorf("got %+v, want the answer to %s", m, id)
	}
	if m.Error != nil {
		return m.Error.Message
	}
	return ""
}

func TestAmbiguousQuestionMakesCallsRunOneAtATime(t *testing.T) {
	var a asker
	o := testOptions()
	announced := make(chan struct{})
	o.OnOneAtATime = func() { close(announced) }
	inFlight := make(chan struct{})
	c := mustPlay(t, o, func(s *script) {
		s.handshakeEra()
		first, second := s.want("tools/call"), s.want("tools/call")
		close(inFlight)
		if got := s.ask(`"1"`, `{}`); !strings.Contains(got, "one at a time") {
			s.t.Errorf("a question during two calls: %q", got)
		}
		if got := s.ask(first.ID, fmt.Sprintf(`{"progressToken":%s}`, first.ID)); !strings.Contains(got, "one at a time") {
			s.t.Errorf("a question that asks for its own progress: %q", got)
		}
		if got := s.ask(`"2"`, fmt.Sprintf(`{"progressToken":%s}`, second.ID)); got != "" {
			s.t.Errorf("a question of the second call: %q", got)
		}
		s.result(first, `{}`)
		s.result(second, `{}`)
		for range 3 {
			call := s.want("tools/call")
			if got := s.ask("7", `{}`); got != "" {
				s.t.Errorf("a question during one call: %q", got)
			}
			s.result(call, `{}`)
		}
	})
	var early, late sync.WaitGroup
	for _, name := range []string{"x", "y"} {
		early.Go(func() {
			if err := a.call(t.Context(), c, "key:"+name, "early"); err != nil {
				t.Error(err)
			}
		})
	}
	<-inFlight
	<-announced
	for i := range 3 {
		late.Go(func() {
			if err := a.call(t.Context(), c, "key:"+fmt.Sprint(i), fmt.Sprintf("late %d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	early.Wait()
	late.Wait()
	seen := map[string]int{}
	for _, name := range a.asked {
		seen[name]++
	}
	if len(a.asked) != 4 || seen["early"] != 1 || seen["late 0"] != 1 || seen["late 1"] != 1 || seen["late 2"] != 1 {
		t.Errorf("asked: %q, want each late call once", a.asked)
	}
	for name, waits := range a.queued {
		if len(waits) != 2 || !waits[0] || waits[1] {
			t.Errorf("%s: Queued was called with %v, want true and then false", name, waits)
		}
	}
}

// A call that is cancelled while queued does not block the others.
func TestQueuedCallIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a asker
		o := testOptions()
		o.OneAtATime = true
		release := make(chan struct{})
		c := mustPlay(t, o, func(s *script) {
			s.handshakeEra()
			first := s.want("tools/call")
			s.result(s.want("ping"), `{}`)
			<-release
			s.result(first, `{}`)
			s.result(s.want("tools/call"), `{}`)
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := a.call(t.Context(), c, "key:a", "first"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if err := a.call(ctx, c, "key:a", "gives up"); tool.KindOf(err) != tool.Canceled {
				t.Errorf("the call that was cancelled: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if err := a.call(t.Context(), c, "key:a", "last"); err != nil {
				t.Error(err)
			}
		})
		if _, err := c.Do(t.Context(), tool.Request{Method: "ping"}); err != nil {
			t.Errorf("a request that causes no question: %v", err)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(release)
		wg.Wait()
		if len(a.queued["last"]) != 2 || len(a.queued["gives up"]) != 2 || len(a.queued["first"]) != 0 {
			t.Errorf("Queued: %v", a.queued)
		}
	})
}

func TestQuestionAfterCancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a asker
		go1 := make(chan struct{})
		c := mustPlay(t, testOptions(), func(s *script) {
			s.handshakeEra()
			s.want("tools/call")
			close(go1)
			s.want("notifications/cancelled")
			for _, want := range []string{"another caller was cancelled", "", ""} {
				call := s.want("tools/call")
				if got := s.ask(`"q"`, `{}`); want == "" && got != "" || !strings.Contains(got, want) {
					s.t.Errorf("got %q, want %q", got, want)
				}
				s.result(call, `{}`)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { gone <- a.call(ctx, c, "key:a", "a") }()
		<-go1
		cancel()
		if err := <-gone; tool.KindOf(err) != tool.Canceled {
			t.Errorf("the call that was cancelled: %v", err)
		}
		for i, caller := range []string{"key:b", "key:a", "key:b"} {
			if i == 2 {
				time.Sleep(cancelledGrace + time.Second)
			}
			if err := a.call(t.Context(), c, caller, caller); err != nil {
				t.Error(err)
			}
		}
		if got := strings.Join(a.asked, " "); got != "key:a key:b" {
			t.Errorf("asked: %q", got)
		}
	})
}

func TestQuestionOfTask(t *testing.T) {
	var asked []string
	c := mustPlay(t, testOptions(), func(s *script) {
		s.handshakeEra()
		result := s.want("tasks/result")
		if got := s.ask(`"1"`, `{"`+mcp.MetaRelatedTask+`":{"taskId":"other"}}`); !strings.Contains(got, "no caller waits") {
			s.t.Errorf("a question of a task without a caller: %q", got)
		}
		if got := s.ask(`"2"`, `{"`+mcp.MetaRelatedTask+`":{"taskId":"one"}}`); got != "" {
			s.t.Errorf("a question of the task: %q", got)
		}
		s.result(result, `{}`)
	})
	_, err := c.Do(t.Context(), tool.Request{Method: "tasks/result", Params: json.RawMessage(`{"taskId":"one"}`), Exchange: tool.Exchange{
		Ask: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			asked = append(asked, method)
			return json.RawMessage(`{"action":"accept"}`), nil
		}}})
	if err != nil || len(asked) != 1 {
		t.Errorf("%v, asked %q", err, asked)
	}
}
