package agentify

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/schema"
	"junctor/internal/tool"
)

func calls(list ...llmtest.Call) llmtest.Reply { return llmtest.Reply{Calls: list} }

func call(name, args string) llmtest.Call {
	return llmtest.Call{Tool: name, Args: json.RawMessage(args)}
}

// always returns a script with one reply.
func always(reply llmtest.Reply) llmtest.Script { return llmtest.Script{Default: &reply} }

// then returns a script that sends second once the model was informed of an
// error in first.
func then(first, second llmtest.Reply) llmtest.Script {
	return llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{Result: "cannot be used"}, Reply: second},
		{When: llmtest.When{User: "not usable"}, Reply: second},
	}, Default: &first}
}

var cwd = Context{CurrentWorkingDirectory: "/home/ada/app"}

func both() map[string]*backend { return map[string]*backend{"files": files(), "odd": odd()} }

func TestEveryProviderPlansOneCall(t *testing.T) {
	r := newFixture(t, both(), always(calls(call("files:read_file", `{"path":"README.md"}`))))
	for name, v := range map[string]struct {
		cfg  llm.Config
		path string
	}{
		"openai":     {llm.Config{Provider: llm.OpenAI, Model: "gpt-test"}, "/v1"},
		"responses":  {llm.Config{Provider: llm.OpenAI, Model: "o9-test", API: llm.ResponsesAPI}, "/v1"},
		"gemini":     {llm.Config{Provider: llm.Gemini, Model: "gemini-3-test"}, ""},
		"anthropic":  {llm.Config{Provider: llm.Anthropic, Model: "claude-test"}, ""},
		"xai":        {llm.Config{Provider: llm.XAI, Model: "grok-test"}, "/v1"},
		"ollama":     {llm.Config{Provider: llm.Ollama, Model: "llama-test"}, "/v1"},
		"compatible": {llm.Config{Provider: llm.OpenAICompatible, Model: "x"}, "/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			r.model = r.modelOf(v.cfg, v.path)
			out, err := r.do(Task{Query: "show me the readme", Context: cwd})
			if err != nil {
				t.Fatal(err)
			}
			want := `{"backendId":"files","mcpMethod":"tools/call","mcpParams":{"arguments":{"path":"/home/ada/app/README.md"},"name":"read_file"}`
			if got := string(rawjson.MarshalOrNull(out.Plan)); !strings.HasPrefix(got, want) {
				t.Errorf("plan %s\nwant %s", got, want)
			}
			if want := `"content":[{"text":"read_file {\"path\":\"/home/ada/app/README.md\"}","type":"text"}],"odd":12345678901234567}`; !strings.HasSuffix(string(out.Result), want) {
				t.Errorf("result %s", out.Result)
			}
			req := r.llm.Last()
			if req.Choice != "required" || req.Parallel && v.cfg.Provider != llm.Gemini {
				t.Errorf("choice %s, parallel %v", req.Choice, req.Parallel)
			}
			got, ok := req.Lookup("files:read_file")
			if !ok || !strings.Contains(string(got.Schema), `"path"`) {
				t.Errorf("read_file is declared as %+v", got)
			}
			if !strings.Contains(req.System, "allowed directories") || !strings.Contains(req.System, "agentify__decline") {
				t.Errorf("system prompt: %s", req.System)
			}
			if !strings.Contains(req.LastUser(), "show me the readme") || !strings.Contains(req.LastUser(), "/home/ada/app") {
				t.Errorf("user message: %s", req.LastUser())
			}
		})
	}
}

func TestWrongChoiceIsRepairedOnce(t *testing.T) {
	good := calls(call("files:read_file", `{"path":"/a"}`))
	for name, wrong := range map[string]struct {
		reply llmtest.Reply
		say   string // the error sent to the model
	}{
		"two calls":      {calls(call("files:read_file", `{"path":"/a"}`), call("files:list_directory", `{"path":"/"}`)), "exactly one"},
		"missing":        {calls(call("files:write_file", `{"path":"/a"}`)), "content"},
		"wrong type":     {calls(call("files:read_file", `{"path":"/a","head":"many"}`)), "/head"},
		"not JSON":       {calls(llmtest.Call{Tool: "files:read_file", Raw: `{"path":`}), "JSON object"},
		"invented":       {calls(call("files__format_disk", `{}`)), "no tool"},
		"cut off":        {llmtest.Reply{Text: "I shall", Stop: "length"}, "cut off"},
		"no resource":    {calls(call("agentify:read_resource", `{"backend":"notes","uri":"note:nothing"}`)), "no resource"},
		"no prompt":      {calls(call("agentify:get_prompt", `{"backend":"notes","name":"nothing"}`)), "no prompt"},
		"prompt lacks":   {calls(call("agentify:get_prompt", `{"backend":"notes","name":"review","arguments":{"tone":"x"}}`)), `needs the argument \"code\"`},
		"prompt numbers": {calls(call("agentify:get_prompt", `{"backend":"notes","name":"review","arguments":["code"]}`)), "strings"},
	} {
		t.Run(name, func(t *testing.T) {
			backends := both()
			backends["notes"] = newBackend("")
			backends["notes"].extras = true
			r := newFixture(t, backends, then(wrong.reply, good))
			out, err := r.do(Task{Query: "read the file /a", Explain: true})
			if err != nil {
				t.Fatal(err)
			}
			if out.Plan.name.Tool != "read_file" {
				t.Errorf("plan %s", rawjson.MarshalOrNull(out.Plan))
			}
			if steps := string(rawjson.MarshalOrNull(out.Steps)); !strings.Contains(steps, wrong.say) {
				t.Errorf("the model was not told %q: %s", wrong.say, steps)
			}
			if n := len(r.llm.Requests()); n != 2 {
				t.Errorf("%d requests", n)
			}

			r.llm.Replace(always(wrong.reply))
			refusal := r.refused(Task{Query: "read the file /a"})
			if len(refusal.Problems) == 0 || len(refusal.Suggestions) == 0 || refusal.Suggestions[0].Tool != "files:read_file" {
				t.Errorf("%+v", refusal)
			}
			if n := len(r.llm.Requests()); n != 4 {
				t.Errorf("%d requests; one repair is enough", n)
			}
			if c := backends["files"].calls(); len(c) != 1 {
				t.Errorf("called %v", c)
			}
		})
	}
}

func TestDuplicateCallIsMadeOnce(t *testing.T) {
	r := newFixture(t, both(), always(calls(call("files:read_file", `{"path":"/a"}`), call("files:read_file", `{"path":"/a"}`))))
	if _, err := r.do(Task{Query: "read /a"}); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsCalledWhenTheModelDeclines(t *testing.T) {
	for name, tt := range map[string]struct {
		reply llmtest.Reply
		want  string
	}{
		"declines":       {calls(call("agentify:decline", `{"reason":"Which file?"}`)), "Which file"},
		"without reason": {calls(call("agentify:decline", `{}`)), "without a reason"},
		"in words":       {llmtest.Reply{Text: "Which of the files do you mean?"}, "Which of the files"},
		"refuses":        {llmtest.Reply{Text: "No.", Stop: "filter"}, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			b := both()
			r := newFixture(t, b, always(tt.reply))
			_, err := r.do(Task{Query: "delete it"})
			e := tool.AsError(err)
			if e.Kind != tool.NoAction || !strings.Contains(e.Msg, tt.want) {
				t.Fatalf("%v", err)
			}
			if d := e.Details.(Refusal); d.Query != "delete it" || len(d.Suggestions) == 0 {
				t.Errorf("%+v", d)
			}
			if len(b["files"].calls())+len(b["odd"].calls()) != 0 {
				t.Error("something was called")
			}
		})
	}
}

func TestModelErrorsExplainWhatToDo(t *testing.T) {
	for name, tt := range map[string]struct {
		reply llmtest.Reply
		want  string
		kind  tool.Kind
	}{
		"key":     {llmtest.Reply{Error: &llmtest.Failure{Status: 401}}, "API key", tool.UpstreamFailed},
		"model":   {llmtest.Reply{Error: &llmtest.Failure{Status: 404}}, "no model", tool.UpstreamFailed},
		"busy":    {llmtest.Reply{Error: &llmtest.Failure{Status: 429, RetryAfter: "7"}}, "busy", tool.RateLimited},
		"quota":   {llmtest.Reply{Error: &llmtest.Failure{Status: 429, Code: "insufficient_quota"}}, "quota", tool.UpstreamFailed},
		"broken":  {llmtest.Reply{Error: &llmtest.Failure{Status: 500}}, "failed", tool.UpstreamFailed},
		"refused": {llmtest.Reply{Error: &llmtest.Failure{Status: 400, Message: "odd schema"}}, "refused the request", tool.UpstreamFailed},
		"cut":     {llmtest.Reply{Text: strings.Repeat("word ", 40), CutAfter: 3}, "was interrupted", tool.UpstreamFailed},
		"silent":  {llmtest.Reply{StallAfter: -1}, "sent nothing", tool.Timeout},
		"long":    {llmtest.Reply{Error: &llmtest.Failure{Status: 400, Code: "context_length_exceeded"}}, "too long", tool.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, both(), always(tt.reply))
			cfg := llm.Config{Provider: llm.OpenAI, Model: "gpt-test"}
			if name == "silent" {
				cfg.TimeoutMs = 300
			}
			r.model = r.modelOf(cfg, "/v1")
			_, err := r.do(Task{Query: "read /a"})
			if e := tool.AsError(err); e.Kind != tt.kind || !strings.Contains(e.Msg, tt.want) || strings.Contains(e.Error(), "sk-secret") {
				t.Fatalf("%s: %v", e.Kind, err)
			}
			wire, ok := rpcError(err).(*mcp.Error)
			if !ok || wire.Code != -32000 || !strings.Contains(string(wire.Data), string(tt.kind)) {
				t.Errorf("on the wire: %+v", wire)
			}
		})
	}
}

func TestToolChoiceIsDroppedWhenUnsupported(t *testing.T) {
	r := newFixture(t, both(), llmtest.Script{})
	good := calls(call("files:read_file", `{"path":"/a"}`))
	r.llm.Replace(llmtest.Script{
		Rules:   []llmtest.Rule{{When: llmtest.When{User: "read"}, Times: 1, Reply: llmtest.Reply{Error: &llmtest.Failure{Status: 400, Message: "tool_choice 'required' is not supported in thinking mode"}}}},
		Default: &good,
	})
	if _, err := r.do(Task{Query: "read /a"}); err != nil {
		t.Fatal(err)
	}
	if got := r.llm.Last().Choice; got != "auto" {
		t.Errorf("choice %s", got)
	}
}

func TestWithoutModelErrorExplainsSetup(t *testing.T) {
	r := newFixture(t, both(), llmtest.Script{})
	r.model = nil
	_, err := r.do(Task{Query: "read /a"})
	wire, ok := rpcError(err).(*mcp.Error)
	if !ok || wire.Code != -32000 || !strings.Contains(wire.Message, "OPENAI_API_KEY") {
		t.Errorf("%v", err)
	}
}

func TestNoBackendAvailable(t *testing.T) {
	r := newFixture(t, map[string]*backend{"gone": nil}, llmtest.Script{})
	if got := r.refused(Task{Query: "read /a"}); !strings.Contains(got.Reason, "no backend") || len(got.Down) != 1 || len(r.llm.Requests()) != 0 {
		t.Errorf("%+v", got)
	}
	limited := tool.Caller{ID: "key:x", Servers: []string{}, Chat: true}
	r = newFixture(t, both(), llmtest.Script{})
	_, err := r.Do(ctxFor(t), Task{Query: "read /a"}, Request{Caller: limited})
	if tool.KindOf(err) != tool.NoAction || strings.Contains(err.Error(), "read_file") {
		t.Errorf("%v", err)
	}
}

func TestDryRunCallsNothing(t *testing.T) {
	b := both()
	r := newFixture(t, b, always(llmtest.Reply{Text: "It reads the file.", Calls: []llmtest.Call{call("files:read_file", `{"path":"/a"}`)}}),
		catalog.ToolRule{Pattern: []string{"files:*"}, Approval: catalog.AskApproval})
	out, err := r.do(Task{Query: "read /a", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if out.Plan.Approval != "ask" || out.Plan.Reason != "It reads the file." || out.Result != nil || len(b["files"].calls()) != 0 {
		t.Errorf("%s, called %v", rawjson.MarshalOrNull(out), b["files"].calls())
	}

	if _, err := r.do(Task{Query: "read /a"}); tool.KindOf(err) != tool.Denied || !strings.Contains(err.Error(), "approval") {
		t.Errorf("without approval: %v", err)
	}
	asked := 0
	ask := tool.Exchange{Capabilities: json.RawMessage(`{"elicitation":{}}`), Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		asked++
		return json.RawMessage(`{"action":"accept"}`), nil
	}}
	out, err = r.Do(ctxFor(t), Task{Query: "read /a"}, Request{Caller: tool.Local, Exchange: ask})
	if err != nil || asked != 1 || len(b["files"].calls()) != 1 {
		t.Errorf("%v, asked %d, %s", err, asked, rawjson.MarshalOrNull(out))
	}
}

func TestResourcesAndPrompts(t *testing.T) {
	for name, tt := range map[string]struct {
		call llmtest.Call
		ctx  Context
		want string // part of the plan
		tool string // part of the tool result
	}{
		"resource": {call("agentify:read_resource", `{"backend":"notes","uri":"note:diary"}`), Context{},
			`"mcpMethod":"resources/read","mcpParams":{"uri":"note:diary"}`, `"text":"milk"`},
		"template": {call("agentify:read_resource", `{"backend":"notes","uri":"day:2026-11-15/notes"}`), Context{},
			`"mcpParams":{"uri":"day:2026-11-15/notes"}`, `milk`},
		"open document": {call("agentify:read_resource", `{"backend":"notes","uri":"${context.activeDocumentURI}"}`), Context{ActiveDocumentURI: "note:shopping"},
			`"mcpParams":{"uri":"note:shopping"}`, `milk`},
		"prompt": {call("agentify:get_prompt", `{"backend":"notes","name":"review","arguments":{"code":"${context.selectionText}"}}`), Context{SelectionText: "x := 1"},
			`"mcpMethod":"prompts/get","mcpParams":{"arguments":{"code":"x := 1"},"name":"review"}`, `user: please review`},
	} {
		t.Run(name, func(t *testing.T) {
			b := both()
			b["notes"] = newBackend("")
			b["notes"].extras = true
			r := newFixture(t, b, always(calls(tt.call)))
			out, err := r.do(Task{Query: "what is on my list?", Context: tt.ctx})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(rawjson.MarshalOrNull(out.Plan)); !strings.Contains(got, tt.want) || out.Plan.BackendID != "notes" {
				t.Errorf("plan %s", got)
			}
			if got := string(asToolResult(out)); !strings.Contains(got, tt.tool) || !json.Valid([]byte(got)) {
				t.Errorf("as a tool's result: %s", got)
			}
			// Changed lists are requested again.
			r.Face.Notified("notes", "", "notifications/resources/list_changed", nil)
			if len(r.lists) != 0 {
				t.Error("the old lists are kept")
			}
		})
	}
}

func TestBackendErrorsReachClient(t *testing.T) {
	for name, tt := range map[string]struct {
		kind tool.Kind
		want string
	}{
		"refuse": {tool.UpstreamFailed, "the disk is full"},
		"fail":   {"", "it failed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, both(), always(calls(call("odd:"+name, `{}`))))
			out, err := r.do(Task{Query: name, Explain: true})
			if tool.KindOf(err) != tt.kind {
				t.Fatalf("%v", err)
			}
			if err == nil && !(out.IsError && strings.Contains(string(out.Result), tt.want)) || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %v", rawjson.MarshalOrNull(out), err)
			}
			if err != nil {
				if got := rpcError(err); got != err {
					t.Errorf("the backend's own error became %v", got)
				}
			}
		})
	}
}

func TestTasksAreBoundedAndCanBeCancelled(t *testing.T) {
	r := newFixture(t, both(), always(calls(call("odd:wait", `{}`))))
	ctx, cancel := context.WithCancel(ctxFor(t))
	done := make(chan error, maxTasks)
	for range maxTasks {
		go func() {
			_, err := r.Do(ctx, Task{Query: "wait"}, Request{Caller: tool.Local, ID: "one"})
			done <- err
		}()
	}
	for len(r.slots) < maxTasks {
		select {
		case <-ctx.Done():
			t.Fatal("they never begin")
		case err := <-done:
			t.Fatalf("one ended: %v", err)
		default:
		}
	}
	if _, err := r.do(Task{Query: "one more"}); tool.KindOf(err) != tool.RateLimited {
		t.Errorf("one more: %v", err)
	}
	cancel()
	for range maxTasks {
		if err := <-done; tool.KindOf(err) != tool.Canceled {
			t.Errorf("cancelled: %v", err)
		}
	}
}

// mute fails requests for all lists except tools/list.
type mute struct{ *backend }

func (m mute) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	if strings.HasSuffix(r.Method, "/list") && r.Method != "tools/list" {
		return nil, &mcp.Error{Code: mcp.CodeInternalError, Message: "no"}
	}
	return m.backend.Serve(ctx, r)
}

func TestMalformedGeminiCallIsRetried(t *testing.T) {
	r := newFixture(t, both(), then(calls(llmtest.Call{Tool: "files:read_file", Raw: `{"path":`}), calls(call("files:read_file", `{"path":"/a"}`))))
	r.model = r.modelOf(llm.Config{Provider: llm.Gemini, Model: "gemini-3-test"}, "")
	if out, err := r.do(Task{Query: "read the file"}); err != nil || out.Plan.name.Tool != "read_file" {
		t.Errorf("%s, %v", rawjson.MarshalOrNull(out), err)
	}
}

func TestSchemaViolationsAreSummarized(t *testing.T) {
	var many []schema.Violation
	for i := range 30 {
		many = append(many, schema.Violation{Path: fmt.Sprint("/", i), Message: "is wrong"})
	}
	got := texts(many)
	if len(got) != 11 || got[10] != "and 20 more" || got[0] != "at /0: is wrong" {
		t.Errorf("%q", got)
	}
	if got := texts([]schema.Violation{{Message: "no"}}); got[0] != "no" {
		t.Errorf("%q", got)
	}
}

// TestBackendNamedAgentify checks that the tools of such a backend can be
// called, except those with the names of the face's own tools.
func TestBackendNamedAgentify(t *testing.T) {
	greet := `{"name":"greet","description":"Greet somebody","inputSchema":{"type":"object"}}`
	decline := `{"name":"decline","description":"Decline an invitation","inputSchema":{"type":"object"}}`
	r := newFixture(t, map[string]*backend{"agentify": newBackend("", greet, decline)}, always(calls(call("agentify:greet", `{}`))))
	out, err := r.do(Task{Query: "greet somebody"})
	if err != nil || out.Plan.BackendID != "agentify" {
		t.Fatalf("%+v, %v", out.Plan, err)
	}
	if d, ok := r.llm.Last().Lookup("agentify:decline"); !ok || !strings.Contains(string(d.Schema), "reason") {
		t.Errorf("decline is declared as %+v", d)
	}
}

// TestTasksRequireChatRight checks that tasks require the chat right, because
// they use a model, and count against the caller's rate limit.
func TestTasksRequireChatRight(t *testing.T) {
	r := newFixture(t, both(), always(calls(call("files:read_file", `{"path":"/a"}`))))
	task := Task{Query: "read /a", DryRun: true}
	if _, err := r.Do(ctxFor(t), task, Request{Caller: tool.Caller{ID: "key:no"}}); tool.KindOf(err) != tool.Denied {
		t.Errorf("without the right: %v", err)
	}
	if n := len(r.llm.Requests()); n != 0 {
		t.Errorf("the model got %d requests", n)
	}
	rated := Request{Caller: tool.Caller{ID: "key:rated", Chat: true, Rate: tool.Rate{Calls: 1, Per: 1000 * time.Hour}}}
	if _, err := r.Do(ctxFor(t), task, rated); err != nil {
		t.Error(err)
	}
	if _, err := r.Do(ctxFor(t), task, rated); tool.KindOf(err) != tool.RateLimited {
		t.Errorf("over the rate: %v", err)
	}
}
