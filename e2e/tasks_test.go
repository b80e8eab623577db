package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
)

// taskServer is a server of the stateless era with the tasks extension and the
// tools that the scenarios of the conformance suite name.
type taskServer struct {
	mu    sync.Mutex
	tasks map[string]*serverTask
}

type serverTask struct {
	id        string
	created   time.Time
	status    string
	result    json.RawMessage
	failure   *mcp.Error
	questions map[string]json.RawMessage
	answers   map[string]json.RawMessage
	answered  chan struct{} // closed when all questions are answered
	stop      chan struct{}
}

const elicitName = `{"method":"elicitation/create","params":{"mode":"form","message":"name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},"confirm":{"type":"boolean"}}}}}`

func (s *taskServer) Describe(context.Context, *mcpserver.Request) (mcpserver.Description, error) {
	return mcpserver.Description{
		Info:         json.RawMessage(`{"name":"tasks","version":"1"}`),
		Capabilities: json.RawMessage(`{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`),
	}, nil
}

func (s *taskServer) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

func (s *taskServer) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	declared := rawjson.Field(r.Exchange.Capabilities, "extensions", mcp.ExtensionTasks) != nil
	switch r.Method {
	case "tools/list":
		list := `{"tools":[`
		for i, name := range []string{"greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task"} {
			if i > 0 {
				list += ","
			}
			list += `{"name":"` + name + `","inputSchema":{"type":"object"}}`
		}
		return json.RawMessage(list + `],"ttlMs":60000,"cacheScope":"public"}`), nil
	case "tools/call":
		return s.call(ctx, r, declared)
	case mcp.MethodTasksGet, mcp.MethodTasksUpdate, mcp.MethodTasksCancel:
		if !declared {
			return nil, mcp.MissingTasksExtension()
		}
		return s.task(r)
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "no method " + r.Method}
}

func text(s string) json.RawMessage {
	b, _ := json.Marshal(map[string]any{"content": []any{map[string]string{"type": "text", "text": s}}})
	return b
}

func (s *taskServer) call(ctx context.Context, r *mcpserver.Request, declared bool) (json.RawMessage, error) {
	switch name := r.Name(); name {
	case "greet":
		return text("Hello, " + rawjson.FieldString(r.Arguments(), "name") + "!"), nil
	case "slow_compute":
		seconds, _ := strconv.ParseFloat(string(rawjson.Field(r.Arguments(), "seconds")), 64)
		d := time.Duration(seconds * float64(time.Second))
		if !declared {
			time.Sleep(d)
			return text("done"), nil
		}
		return s.start(func(t *serverTask) {
			select {
			case <-time.After(d):
				s.finish(t, text("done"), nil)
			case <-t.stop:
			}
		}), nil
	case "failing_job", "protocol_error_job":
		if !declared {
			return nil, mcp.MissingTasksExtension()
		}
		return s.start(func(t *serverTask) {
			if name == "failing_job" {
				s.finish(t, rawjson.SetField(text("it failed"), json.RawMessage("true"), "isError"), nil)
				return
			}
			s.finish(t, nil, &mcp.Error{Code: mcp.CodeInternalError, Message: "broken"})
		}), nil
	case "confirm_delete", "multi_input":
		keys := []string{"first", "second"}
		if name == "confirm_delete" {
			keys = keys[:1]
		}
		return s.start(func(t *serverTask) {
			s.mu.Lock()
			for _, key := range keys {
				t.questions[key] = json.RawMessage(elicitName)
			}
			t.status = "input_required"
			s.mu.Unlock()
			select {
			case <-t.answered:
				s.finish(t, text(fmt.Sprintf("answered %d", len(keys))), nil)
			case <-t.stop:
			}
		}), nil
	case "test_tool_with_task":
		answer := rawjson.FieldString(rawjson.Field(r.Params, "inputResponses"), "user_name", "content", "name")
		if answer == "" {
			return json.RawMessage(`{"resultType":"input_required","requestState":"s","inputRequests":{"user_name":` + elicitName + `}}`), nil
		}
		return s.start(func(t *serverTask) { s.finish(t, text("Hello, "+answer), nil) }), nil
	}
	return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "no tool " + r.Name()}
}

// start starts a task and returns the result with its id.
func (s *taskServer) start(run func(*serverTask)) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &serverTask{
		id: fmt.Sprintf("task-%d-%d", len(s.tasks), time.Now().UnixNano()), created: time.Now(), status: "working",
		questions: map[string]json.RawMessage{}, answers: map[string]json.RawMessage{}, answered: make(chan struct{}), stop: make(chan struct{}),
	}
	s.tasks[t.id] = t
	go run(t)
	return rawjson.SetField(t.show(false), json.RawMessage(`"task"`), "resultType")
}

func (s *taskServer) finish(t *serverTask, result json.RawMessage, failure *mcp.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.status, t.result = "completed", result
	if failure != nil {
		t.status, t.failure = "failed", failure
	}
}

func (t *serverTask) show(whole bool) json.RawMessage {
	now := time.Now().UTC().Format(time.RFC3339Nano)
	out := map[string]any{"taskId": t.id, "status": t.status, "createdAt": t.created.UTC().Format(time.RFC3339Nano), "lastUpdatedAt": now, "ttlMs": 60000, "pollIntervalMs": 50}
	if whole {
		switch t.status {
		case "completed":
			out["result"] = t.result
		case "failed":
			out["error"] = t.failure
		case "input_required":
			out["inputRequests"] = t.questions
		}
	}
	b, _ := json.Marshal(out)
	return b
}

func (s *taskServer) task(r *mcpserver.Request) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tasks[rawjson.FieldString(r.Params, "taskId")]
	if t == nil {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "no such task"}
	}
	running := t.status == "working" || t.status == "input_required"
	switch r.Method {
	case mcp.MethodTasksCancel:
		if running {
			t.status = "cancelled"
			close(t.stop)
		}
		return json.RawMessage(`{}`), nil
	case mcp.MethodTasksUpdate:
		for key, answer := range rawjson.Members(rawjson.Field(r.Params, "inputResponses")) {
			if t.questions[key] == nil {
				continue
			}
			delete(t.questions, key)
			t.answers[key] = answer
			if len(t.questions) == 0 {
				t.status = "working"
				close(t.answered)
			}
		}
		return json.RawMessage(`{}`), nil
	}
	return t.show(true), nil
}

var taskScenarios = []string{
	"tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal", "tasks-mrtr-input",
	"tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-required-task-error", "tasks-mrtr-composition",
}

// TestConformanceTasks: the suite's scenarios of the tasks extension pass in
// the transparent view, where the tasks are the server's, and in the direct
// view, where they are the gateway's.
func TestConformanceTasks(t *testing.T) {
	t.Parallel()
	h := newHome(t, fmt.Sprintf(`{"mcpServers":{"tasks":{"url":%q}}}`, taskServerURL(t)))
	g := h.serve().ready("tasks")
	direct := httptest.NewServer(underPublicNames(t, g.url+"/mcp?mode=direct", "tasks__"))
	t.Cleanup(direct.Close)
	for name, url := range map[string]string{"transparent": g.url + "/mcp/tasks", "direct": direct.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wg sync.WaitGroup
			defer wg.Wait()
			for _, scenario := range taskScenarios {
				// A client without tasks gets the result here, because the
				// gateway waits for the task; the suite expects a refusal.
				if name == "direct" && scenario == "tasks-required-task-error" {
					continue
				}
				wg.Go(func() { runScenario(t, url, scenario) }) // mostly idle, so all run concurrently
			}
		})
	}
}

// underPublicNames forwards requests with the names that tools have in the
// direct view.
func underPublicNames(t *testing.T, url, prefix string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		if rawjson.FieldString(body, "method") == "tools/call" {
			name := prefix + rawjson.FieldString(body, "params", "name")
			body = rawjson.SetField(body, json.RawMessage(strconv.Quote(name)), "params", "name")
			if r.Header.Get("Mcp-Name") != "" {
				r.Header.Set("Mcp-Name", name)
			}
		}
		out, err := http.NewRequestWithContext(r.Context(), r.Method, url, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		out.Header = r.Header
		answer, err := http.DefaultClient.Do(out)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	})
}
