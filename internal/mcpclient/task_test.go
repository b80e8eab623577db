package mcpclient

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// The result of a call that a server made a task of is awaited in both eras,
// with the questions that the task has.
func TestAwaitTask(t *testing.T) {
	ask := func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"action":"accept"}`), nil
	}
	for name, tt := range map[string]struct {
		created string
		status  []tool.TaskStatus
		server  func(*script)
	}{
		"new era": {`{"resultType":"task","taskId":"7","status":"working","pollIntervalMs":1}`, []tool.TaskStatus{{Status: "working"}, {Status: "input_required"}}, func(s *script) {
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
			s.oldEra()
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

// A task that nobody waits for any more is cancelled.
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
