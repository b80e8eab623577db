package agentify

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"junctor/internal/httperr"
	"junctor/internal/httpserver"
	"junctor/internal/llm/llmtest"
	"junctor/internal/mcptrace"
	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

func muxOf(r *fixture) *http.ServeMux {
	mux := http.NewServeMux()
	r.Routes(mux)
	(&Debug{Trace: r.trace, Logs: r.log, Tools: r.opts.Tools}).Routes(mux)
	return mux
}

func withCaller(c tool.Caller, next http.Handler) http.Handler {
	return httperr.WithRequestID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpserver.LimitBody(func() int64 { return 4 << 20 }, next).ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), c)))
	}))
}

func fetch(t *testing.T, method, url, accept, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctxFor(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestOrchestrateOverHTTP(t *testing.T) {
	r := newFixture(t, both(), llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "read"}, Reply: calls(call("files:read_file", `{"path":"a"}`))},
		{When: llmtest.When{User: "fail"}, Reply: calls(call("odd:fail", `{}`))},
		{When: llmtest.When{User: "refuse"}, Reply: calls(call("odd:refuse", `{}`))},
	}, Default: &llmtest.Reply{Text: "Which file?"}})
	url := r.site(tool.Local).URL + "/api/orchestrate"
	for name, tt := range map[string]struct {
		body string
		code int
		want []string
	}{
		"a task":    {`{"query":"read a","context":{"currentWorkingDirectory":"/w"}}`, 200, []string{`"plan":{"backendId":"files"`, `"content":[{"text":"read_file {\"path\":\"/w/a\"}"`, `"requestId"`}},
		"dry run":   {`{"query":"read a","dryRun":true}`, 200, []string{`"mcpMethod":"tools/call"`}},
		"explained": {`{"query":"read a","explain":true}`, 200, []string{`"steps":[`}},
		"an error":  {`{"query":"fail"}`, 200, []string{`"isError":true`}},
		"no action": {`{"query":"it"}`, 422, []string{`"code":"NO_ACTION"`, `"suggestions"`, `Which file?`}},
		"a backend": {`{"query":"refuse"}`, 502, []string{`the disk is full`}},
		"invalid":   {`{"query":7,"dryRun":1}`, 400, []string{`/query`, `/dryRun`, `INVALID_ARGUMENTS`}},
		"no JSON":   {`{"query"`, 400, []string{`PARSE_ERROR`}},
		"not UTF-8": {"{\"query\":\"\xff\"}", 400, []string{`PARSE_ERROR`}},
		"nothing":   {``, 400, []string{`query`}},
		"too large": {`{"query":"` + strings.Repeat("x", 5<<20) + `"}`, 413, []string{`TOO_LARGE`}},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := fetch(t, "POST", url, "", tt.body)
			if code != tt.code {
				t.Errorf("%d %s", code, body)
			}
			for _, want := range tt.want {
				if !strings.Contains(body, want) {
					t.Errorf("nothing of %s in %s", want, body)
				}
			}
		})
	}
	r.model = nil
	if code, body := fetch(t, "POST", url, "", `{"query":"read a"}`); code != 503 || !strings.Contains(body, "OPENAI_API_KEY") {
		t.Errorf("no model: %d %s", code, body)
	}
}

func TestOrchestrateStreamsSteps(t *testing.T) {
	r := newFixture(t, both(), llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "read"}, Reply: calls(call("files:read_file", `{"path":"a"}`))},
	}, Default: &llmtest.Reply{Text: "Which file?"}})
	url := r.site(tool.Local).URL + "/api/orchestrate"
	_, body := fetch(t, "POST", url, "application/x-ndjson", `{"query":"read a"}`)
	var types []string
	for s := bufio.NewScanner(strings.NewReader(body)); s.Scan(); {
		types = append(types, rawjson.FieldString(json.RawMessage(s.Text()), "type")+" "+rawjson.FieldString(json.RawMessage(s.Text()), "step", "step"))
	}
	if got := strings.Join(types, ","); got != "step candidates,step modelRequest,step modelAnswer,step plan,step call,result " {
		t.Errorf("pieces %s\n%s", got, body)
	}
	if _, body := fetch(t, "POST", url, "text/event-stream", `{"query":"it"}`); !strings.Contains(body, `"type":"error"`) || !strings.Contains(body, "NO_ACTION") {
		t.Errorf("refusal %s", body)
	}
	r.model = nil
	if code, _ := fetch(t, "POST", url, "application/x-ndjson", `{"query":"read a"}`); code != 503 {
		t.Errorf("a failure before the first piece: %d", code)
	}
}

func TestTraceFormatAndRedaction(t *testing.T) {
	r := newFixture(t, both(), llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "read"}, Reply: calls(call("files:read_file", `{"path":"/a","token":"hunter2-and-more","apiKey":"s3cr3t-value"}`))},
		{When: llmtest.When{User: "big"}, Reply: calls(call("files:write_file", `{"path":"/a","content":"${context.selectionText}"}`))},
		{When: llmtest.When{User: "refuse"}, Reply: calls(call("odd:refuse", `{}`))},
	}})
	r.redact.Add("hunter2-and-more")
	for _, task := range []Task{{Query: "read"}, {Query: "big", Context: Context{SelectionText: strings.Repeat("z", 50_000)}}} {
		if _, err := r.do(task); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.do(Task{Query: "refuse"}); err == nil {
		t.Fatal("it did not refuse")
	}
	own := tool.Caller{ID: "key:bob", Name: "bob", Chat: true}
	if _, err := r.Do(ctxFor(t), Task{Query: "read"}, Request{Caller: own}); err != nil {
		t.Fatal(err)
	}
	site := r.site(tool.Local).URL
	code, body := fetch(t, "GET", site+"/api/mcptrace?limit=1000", "", "")
	if code != 200 || strings.Contains(body, "hunter2") || strings.Contains(body, "s3cr3t") {
		t.Fatalf("%d %s", code, body)
	}
	var entries []mcptrace.Entry
	if err := json.Unmarshal([]byte(body), &entries); err != nil {
		t.Fatal(err)
	}
	byMethod := map[string][]mcptrace.Entry{}
	for _, e := range entries {
		if e.Timestamp == 0 || e.Direction != "INCOMING_TO_GATEWAY" && e.Direction != "OUTGOING_FROM_GATEWAY" {
			t.Errorf("%+v", e)
		}
		byMethod[e.Method] = append(byMethod[e.Method], e)
	}
	wire := byMethod["tools/call"]
	if len(wire) != 8 || wire[0].Direction != "OUTGOING_FROM_GATEWAY" || wire[0].BackendID != "files" || wire[0].ID == 0 || wire[1].ID != wire[0].ID ||
		!strings.Contains(string(wire[0].Payload), `"name":"read_file"`) || !strings.Contains(string(wire[1].Payload), `"content"`) {
		t.Errorf("traffic %s", rawjson.MarshalOrNull(wire))
	}
	if !strings.Contains(string(wire[2].Payload), "bytes in all") || len(wire[2].Payload) > 8<<10+200 {
		t.Errorf("a large message: %d bytes", len(wire[2].Payload))
	}
	if !strings.Contains(string(wire[5].Error), "the disk is full") || !strings.Contains(string(wire[5].Error), "-32099") {
		t.Errorf("an error: %s", rawjson.MarshalOrNull(wire[5]))
	}
	for _, m := range []string{"agentify/orchestrateTask", "agentify/candidates", "agentify/modelRequest", "agentify/modelAnswer", "agentify/plan", "agentify/call"} {
		if len(byMethod[m]) == 0 {
			t.Errorf("nothing of %s", m)
		}
	}
	if _, body := fetch(t, "GET", site+"/api/mcptrace?backend=odd&limit=1", "", ""); strings.Count(body, `"timestamp"`) != 1 || !strings.Contains(body, `"backendId":"odd"`) {
		t.Errorf("of one backend: %s", body)
	}

	// A caller sees neither the traffic of others nor the log.
	bob := r.site(own).URL
	if _, body := fetch(t, "GET", bob+"/api/mcptrace?limit=1000", "", ""); strings.Contains(body, "disk is full") || !strings.Contains(body, "read_file") {
		t.Errorf("bob sees %s", body)
	}
	if code, _ := fetch(t, "GET", bob+"/api/logs", "", ""); code != 403 {
		t.Errorf("bob reads the log: %d", code)
	}
	if code, body := fetch(t, "GET", bob+"/api/backends", "", ""); code != 200 || !strings.Contains(body, `"isReady":true`) {
		t.Errorf("backends: %d %s", code, body)
	}
	none := r.site(tool.Caller{ID: "key:no", Servers: []string{}}).URL
	if _, body := fetch(t, "GET", none+"/api/backends", "", ""); strings.TrimSpace(body) != "[]" {
		t.Errorf("backends of nobody: %s", body)
	}
	for _, path := range []string{"/api/mcptrace?limit=x", "/api/logs?limit=-1", "/api/logs?level=loud", "/ws/logs?limit=x", "/ws/mcptrace?limit=x"} {
		if code, _ := fetch(t, "GET", site+path, "", ""); code != 400 {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// listsOnly is a profile that allows only one tool.
type listsOnly struct{ tool.UnknownProfile }

func (listsOnly) Allows(n tool.Name) bool {
	return n == tool.Name{Server: "files", Tool: "list_directory"}
}
func (listsOnly) Shows(string) bool { return true }

func TestTraceWithProfileShowsOnlyItsTools(t *testing.T) {
	r := newFixture(t, both(), llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "read"}, Reply: calls(call("files:read_file", `{"path":"/private"}`))},
		{When: llmtest.When{User: "confirm"}, Reply: calls(call("odd:confirm", `{}`))},
		{When: llmtest.When{User: "list"}, Reply: calls(call("files:list_directory", `{"path":"/public"}`))},
	}})
	person := tool.Caller{ID: "user:ann", Name: "ann", Chat: true}
	ex := tool.Exchange{
		Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"action":"accept","content":{}}`), nil
		},
		Capabilities: json.RawMessage(`{"elicitation":{}}`),
	}
	for _, query := range []string{"read it", "confirm it", "list it"} {
		if _, err := r.Do(ctxFor(t), Task{Query: query}, Request{Caller: person, Exchange: ex}); err != nil {
			t.Fatal(err)
		}
	}
	program := person
	program.Profiles = tool.Profiles{listsOnly{"lists"}}
	of := func(c tool.Caller) string {
		t.Helper()
		code, body := fetch(t, "GET", r.site(c).URL+"/api/mcptrace?limit=1000", "", "")
		if code != 200 {
			t.Fatalf("%d %s", code, body)
		}
		return body
	}
	private := []string{"read it", "/private", "read_file", "agentify/", "confirm", "elicitation/create"}
	all, shown := of(person), of(program)
	for _, secret := range private {
		if !strings.Contains(all, secret) {
			t.Errorf("the person does not see %q in %s", secret, all)
		}
		if strings.Contains(shown, secret) {
			t.Errorf("with the profile the trace shows %q: %s", secret, shown)
		}
	}
	if strings.Count(shown, `"method":"tools/call"`) != 2 || !strings.Contains(shown, "/public") {
		t.Errorf("with the profile the trace shows %s, want the call of list_directory and its result", shown)
	}
}

func TestLogsAreFiltered(t *testing.T) {
	r := newFixture(t, both(), always(calls(call("files:read_file", `{"path":"/a"}`))))
	if _, err := r.do(Task{Query: "read"}); err != nil {
		t.Fatal(err)
	}
	site := r.site(tool.Local).URL
	_, body := fetch(t, "GET", site+"/api/logs?level=info&limit=50", "", "")
	var lines []telemetry.LogEntry
	if err := json.Unmarshal([]byte(body), &lines); err != nil || !strings.Contains(body, `"task planned"`) || strings.Contains(body, `"DEBUG"`) {
		t.Errorf("%s, %v", body, err)
	}
	empty := &Debug{Trace: r.trace, Tools: r.opts.Tools}
	mux := http.NewServeMux()
	empty.Routes(mux)
	site = serveHandler(t, withCaller(tool.Local, mux))
	if _, body := fetch(t, "GET", site+"/api/logs", "", ""); strings.TrimSpace(body) != "[]" {
		t.Errorf("without a log: %s", body)
	}
}

func TestLogAndTraceStreams(t *testing.T) {
	r := newFixture(t, both(), always(calls(call("files:read_file", `{"path":"/a"}`))))
	if _, err := r.do(Task{Query: "the first task reads"}); err != nil {
		t.Fatal(err)
	}
	site := r.site(tool.Local)
	read := func(path, before, after string) {
		t.Helper()
		ctx, cancel := context.WithCancel(ctxFor(t))
		defer cancel()
		conn, _, err := websocket.Dial(ctx, site.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.CloseNow()
		seek := func(want string) {
			t.Helper()
			for {
				_, data, err := conn.Read(ctx)
				if err != nil {
					t.Fatalf("%s: %v before %q", path, err, want)
				}
				if !json.Valid(data) {
					t.Fatalf("%s", data)
				}
				if strings.Contains(string(data), want) {
					return
				}
			}
		}
		seek(before)
		if _, err := r.do(Task{Query: "the second task reads"}); err != nil {
			t.Fatal(err)
		}
		seek(after)
		_ = conn.Close(websocket.StatusNormalClosure, "")
	}
	read("/ws/mcptrace", "the first task", "the second task")
	read("/ws/logs", "task planned", "call done")
	read("/ws/mcptrace?limit=1&backend=files", `"method":"tools/call"`, `"direction":"OUTGOING_FROM_GATEWAY"`)

	// A connection that is too slow is told how many entries it missed.
	debug := &Debug{Trace: r.trace, Logs: telemetry.NewRing[telemetry.LogEntry](10), Tools: r.opts.Tools}
	mux := http.NewServeMux()
	debug.Routes(mux)
	url := serveHandler(t, withCaller(tool.Local, mux))
	ctx := ctxFor(t)
	conn, _, err := websocket.Dial(ctx, url+"/ws/logs", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	stop := make(chan struct{})
	go func() {
		line := strings.Repeat("x", 10_000)
		for {
			select {
			case <-stop:
				return
			default:
				debug.Logs.Add(telemetry.LogEntry{Timestamp: 1, Level: "INFO", Message: line})
			}
		}
	}()
	defer close(stop)
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "were dropped") {
			break
		}
	}
	debug.watchers.Add(maxWatchers)
	if code, _ := fetch(t, "GET", url+"/ws/logs", "", ""); code != 429 {
		t.Errorf("one too many: %d", code)
	}
	debug.watchers.Add(-maxWatchers)
	if code, _ := fetch(t, "GET", url+"/ws/logs", "", ""); code != 426 {
		t.Errorf("no WebSocket: %d", code)
	}
}

func serveHandler(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}
