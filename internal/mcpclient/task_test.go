package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// AwaitTask waits for the result of a task in both eras and has its questions
// answered.
func TestAwaitTask(t *testing.T) {
	ask := func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"action":"accept"}`), nil
	}
	for name, tt := range map[string]struct {
		created string
		status  []tool.TaskStatus
		server  func(*script)
	}{
		"stateless era": {`{"resultType":"task","taskId":"7","status":"working","pollIntervalMs":1}`, []tool.TaskStatus{{Status: "working"}, {Status: "input_required"}}, func(s *script) {
			s.result(s.want("server/discover"), discoverResult)
			s.result(s.want("tasks/get"), `{"resultType":"complete","taskId":"7","status":"input_required","pollIntervalMs":1,"inputRequests":{"k":{"method":"elicitation/create","params":{}}}}`)
			m := s.want("tasks/update")
			if got := string(rawjson.Field(m.Params, "inputResponses")); got != `{"k":{"action":"accept"}}` {
				s.t.Errorf("tasks/update with %s", got)
			}
			s.result(m, `{"resultType":"complete"}`)
			s.result(s.want("tasks/get"), `{"resultType":"complete","taskId":"7","status":"completed","result":{"content":[],"x":1}}`)
		}},
		"handshake era": {`{"task":{"taskId":"7","status":"working","pollInterval":1}}`, []tool.TaskStatus{{Status: "working"}, {Status: "working", Message: "half"}}, func(s *script) {
			s.handshakeEra()
			s.result(s.want("tasks/get"), `{"taskId":"7","status":"working","statusMessage":"half","pollInterval":1}`)
			s.result(s.want("tasks/get"), `{"taskId":"7","status":"working","statusMessage":"half","pollInterval":1}`)
			s.result(s.want("tasks/get"), `{"taskId":"7","status":"completed"}`)
			s.result(s.want("tasks/result"), `{"content":[],"x":1}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustPlay(t, Options{Capabilities: Capabilities{ElicitationForm: true}}, tt.server)
			var status []tool.TaskStatus
			r := tool.Request{Method: "tools/call", Exchange: tool.Exchange{Ask: ask, TaskStatus: func(s tool.TaskStatus) { status = append(status, s) }}}
			got, err := c.AwaitTask(t.Context(), r, json.RawMessage(tt.created))
			if err != nil || string(got) != `{"content":[],"x":1}` {
				t.Errorf("result %s, %v", got, err)
			}
			if !slices.Equal(status, tt.status) {
				t.Errorf("statuses %v, want %v", status, tt.status)
			}
		})
	}
}

// A task is cancelled when its call is.
func TestAwaitTaskCancels(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan struct{})
	c := mustPlay(t, Options{}, func(s *script) {
		s.result(s.want("server/discover"), discoverResult)
		m := s.want("tasks/get")
		cancel()
		s.result(m, `{"resultType":"complete","taskId":"7","status":"working","pollIntervalMs":10000}`)
		for m = s.next(); m.Method != "tasks/cancel"; m = s.next() {
		}
		s.result(m, `{"resultType":"complete"}`)
		close(cancelled)
	})
	_, err := c.AwaitTask(ctx, tool.Request{Method: "tools/call"}, json.RawMessage(`{"resultType":"task","taskId":"7","status":"working","pollIntervalMs":1}`))
	if tool.KindOf(err) != tool.Canceled {
		t.Errorf("err = %v, want cancelled", err)
	}
	<-cancelled
}

// The questions of a task are bounded, per round and in total. A task that asks
// more fails, at a cost proportional to what the server sent.
func TestTaskQuestionsAreBounded(t *testing.T) {
	const created = `{"resultType":"task","taskId":"7","status":"working","pollIntervalMs":1}`
	asks := func(first, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":{"method":"roots/list"}`, first+i)
		}
		return `{"resultType":"complete","taskId":"7","status":"input_required","pollIntervalMs":1,"inputRequests":{` + b.String()[1:] + `}}`
	}
	for name, tt := range map[string]struct {
		rounds []string // the last one is too much
		want   string
	}{
		"at once": {[]string{asks(0, 4000)}, "questions at once"},
		"in all": {func() (rounds []string) {
			for i := range maxRounds + 1 {
				rounds = append(rounds, asks(i*maxInputs, maxInputs))
			}
			return rounds
		}(), "questions for one task"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := mustPlay(t, testOptions(), func(s *script) {
					s.result(s.want("server/discover"), discoverResult)
					for i, questions := range tt.rounds {
						s.result(s.want("tasks/get"), questions)
						if i < len(tt.rounds)-1 {
							s.result(s.want("tasks/update"), `{"resultType":"complete"}`)
						}
					}
					m := s.want("tasks/cancel")
					s.result(m, `{"resultType":"complete"}`)
					if m.Method != "tasks/cancel" {
						s.link.Close()
					}
				})
				var asked atomic.Int32
				ask := func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
					asked.Add(1)
					return json.RawMessage(`{"roots":[]}`), nil
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := c.AwaitTask(t.Context(), tool.Request{Method: "tools/call", Exchange: tool.Exchange{Ask: ask}}, json.RawMessage(created))
				runtime.ReadMemStats(&after)
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("err = %v, want %s", err, tt.want)
				}
				if got, want := int(asked.Load()), (len(tt.rounds)-1)*maxInputs; got != want {
					t.Errorf("asked %d questions, want %d", got, want)
				}
				if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
					t.Errorf("allocated %d MiB", n>>20)
				}
			})
		})
	}
}
