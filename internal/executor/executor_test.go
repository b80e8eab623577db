package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// fixture is an executor with a scripted upstream and a call log in memory.
type fixture struct {
	*Executor
	catalog    *catalog.Catalog
	do         func(ctx context.Context, server string, req tool.Request) (json.RawMessage, error)
	connecting []string
	await      func(servers ...string) []string
	out        bytes.Buffer // the program's log

	mu      sync.Mutex
	calls   int
	records []store.Call
	broken  error // returned by the call log
}

func newFixture(t testing.TB, edit ...func(*Options)) *fixture {
	t.Helper()
	r := &fixture{catalog: catalog.New(nil, nil)}
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[]}`), nil
	}
	o := Options{
		Catalog: r.catalog, Upstreams: r, Calls: r, Node: "n1", Config: DefaultConfig(),
		Log: slog.New(slog.NewTextHandler(&r.out, nil)),
	}
	for _, e := range edit {
		e(&o)
	}
	r.Executor = New(o)
	r.offer(t, "fs",
		`{"name":"read","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"}},"required":["path"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}`,
		`{"name":"write","inputSchema":{"type":"object"}}`,
		`{"name":"odd","inputSchema":{"type":7}}`)
	return r
}

func (r *fixture) offer(t testing.TB, server string, raws ...string) {
	t.Helper()
	var defs []tool.Definition
	for _, raw := range raws {
		d, err := tool.ParseDefinition(server, json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		defs = append(defs, d)
	}
	r.catalog.Put(catalog.Server{Name: server}, defs)
}

func (r *fixture) Do(ctx context.Context, server string, req tool.Request) (json.RawMessage, error) {
	r.mu.Lock()
	r.calls++
	r.mu.Unlock()
	return r.do(ctx, server, req)
}

func (r *fixture) Await(_ context.Context, servers ...string) []string {
	if r.await != nil {
		return r.await(servers...)
	}
	return nil
}

func (r *fixture) Connecting() []string { return slices.Clone(r.connecting) }

func (r *fixture) Timeouts(string) (time.Duration, time.Duration) {
	return 30 * time.Second, 10 * time.Minute
}

func (r *fixture) Append(_ context.Context, c store.Call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return r.broken
	}
	r.records = append(r.records, c)
	return nil
}

// only returns the record of the only call, and fails the test if there is not
// exactly one.
func (r *fixture) only(t *testing.T) store.Call {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.records) != 1 {
		t.Fatalf("%d records, want exactly 1", len(r.records))
	}
	return r.records[0]
}

func call(name, arguments string) tool.Call {
	return tool.Call{Face: "test", Caller: tool.Local, Tool: name, Arguments: json.RawMessage(arguments)}
}

// TestCostlySchemaFailsOnlyItsCalls: a schema of two references on each of 30
// levels fails its own calls, and no others.
func TestCostlySchemaFailsOnlyItsCalls(t *testing.T) {
	for _, keyword := range []string{"anyOf", "allOf"} {
		t.Run(keyword, func(t *testing.T) {
			var b strings.Builder
			b.WriteString(`{"name":"bomb","inputSchema":{"type":"object","$ref":"#/$defs/l0","$defs":{`)
			for i := range 30 {
				fmt.Fprintf(&b, `"l%d":{%q:[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]},`, i, keyword, i+1, i+1)
			}
			b.WriteString(`"l30":{"not":{"required":["a"]},"minProperties":` + map[string]string{"anyOf": "1", "allOf": "0"}[keyword] + `}}}}`)
			r := newFixture(t)
			r.offer(t, "evil", b.String())
			_, err := r.Call(t.Context(), call("evil:bomb", `{}`))
			if tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "too many steps") || r.calls != 0 {
				t.Errorf("error = %v after %d calls", err, r.calls)
			}
			e := r.catalog.Snapshot().Lookup(tool.Name{Server: "evil", Tool: "bomb"})
			if w := strings.Join(e.Warnings(), " "); !strings.Contains(w, "too many steps") {
				t.Errorf("the tool is marked %q", w)
			}
			if _, err := r.Call(t.Context(), call("fs:read", `{"path":"a"}`)); err != nil {
				t.Errorf("another tool: %v", err)
			}
		})
	}
}

func TestUncheckedArgumentsAreNoted(t *testing.T) {
	r := newFixture(t)
	if _, err := r.Call(t.Context(), call("fs:odd", `{}`)); err != nil {
		t.Fatal(err)
	}
	if stages := r.only(t).Stages.String(); !strings.Contains(stages, "unchecked") {
		t.Errorf("stages = %s", stages)
	}
	if w := r.catalog.Snapshot().Lookup(tool.Name{Server: "fs", Tool: "odd"}).Warnings(); len(w) != 1 {
		t.Errorf("warnings = %q", w)
	}
}

// TestArgumentsAreChecked covers APIs that pass on arguments without an MCP
// message.
func TestArgumentsAreChecked(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for name, tt := range map[string]struct {
		arguments, want string
	}{
		"not UTF-8":      {"{\"a\":\"\xff\"}", "not valid UTF-8"},
		"5,000 deep":     {nested(5000), "deeper than 254"},
		"255 deep":       {nested(255), "deeper than 254"},
		"just the limit": {nested(254), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			_, err := r.Call(t.Context(), call("fs:write", tt.arguments))
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if tool.KindOf(err) != tool.InvalidArguments || !strings.Contains(err.Error(), tt.want) || r.calls != 0 {
				t.Errorf("error = %v after %d calls, want one that says %q", err, r.calls, tt.want)
			}
			if rec := r.only(t); !utf8.Valid(rec.Arguments) {
				t.Errorf("recorded arguments %q are not UTF-8", rec.Arguments)
			}
		})
	}
}

func TestRecordMarksRepairedResult(t *testing.T) {
	r := newFixture(t)
	r.do = func(_ context.Context, _ string, req tool.Request) (json.RawMessage, error) {
		req.Exchange.Repaired()
		return json.RawMessage(`{"content":[]}`), nil
	}
	if _, err := r.Call(t.Context(), call("fs:write", `{}`)); err != nil {
		t.Fatal(err)
	}
	if stages := r.only(t).Stages.String(); !strings.Contains(stages, "repaired") {
		t.Errorf("stages = %s", stages)
	}
}

func TestCallPassesThrough(t *testing.T) {
	r := newFixture(t)
	const answer = `{"content":[{"type":"new-kind","n":12345678901234567890}],"x":1}`
	var sent tool.Request
	r.do = func(_ context.Context, server string, req tool.Request) (json.RawMessage, error) {
		sent = req
		return json.RawMessage(answer), nil
	}
	c := call("read", `{"path":"a","n":12345678901234567890}`)
	c.Meta = json.RawMessage(`{"progressToken":7}`)
	c.Session = "s1"
	res, err := r.Call(t.Context(), c)
	if err != nil || string(res.Raw) != answer || res.IsError {
		t.Fatalf("Call = %s, %v", res.Raw, err)
	}
	if want := `{"name":"read","arguments":{"path":"a","n":12345678901234567890},"_meta":{"progressToken":7}}`; string(sent.Params) != want {
		t.Errorf("sent %s, want %s", sent.Params, want)
	}
	if sent.Method != "tools/call" || sent.Caller != "local" {
		t.Errorf("sent %+v", sent)
	}
	if r.InFlight() != 0 {
		t.Errorf("%d calls are in flight", r.InFlight())
	}
	rec := r.only(t)
	if rec.ID == "" || rec.Server != "fs" || rec.Tool != "read" || rec.Status != store.StatusOK || rec.Session != "s1" ||
		rec.Node != "n1" || rec.Method != "tools/call" || rec.ResultBytes != len(answer) || len(rec.Stages) == 0 {
		t.Errorf("record = %+v", rec)
	}
	if n := strings.Count(r.out.String(), "\n"); n != 1 || !strings.Contains(r.out.String(), "tool=read") {
		t.Errorf("%d lines in the log, want one with the tool: %s", n, r.out.String())
	}
}

func TestParamsAreForwardedUnchanged(t *testing.T) {
	r := newFixture(t)
	var sent string
	r.do = func(_ context.Context, _ string, req tool.Request) (json.RawMessage, error) {
		sent = string(req.Params)
		return json.RawMessage(`{}`), nil
	}
	c := call("write", "")
	c.Params = json.RawMessage(`{ "name":"write", "task":{"ttl":1} }`)
	if _, err := r.Call(t.Context(), c); err != nil || sent != string(c.Params) {
		t.Errorf("sent %s, %v", sent, err)
	}
	// The arguments that the gateway checked are sent, not those of the params.
	c = call("fs:write", `{"a":1}`)
	c.Meta = json.RawMessage(`{"progressToken":2}`)
	c.Params = json.RawMessage(`{"name":"alias","arguments":{"a":2},"task":{},"_meta":{}}`)
	if _, err := r.Call(t.Context(), c); err != nil || sent != `{"name":"write","arguments":{"a":1},"task":{},"_meta":{"progressToken":2}}` {
		t.Errorf("sent %s, %v", sent, err)
	}
	c.Arguments, c.Meta = nil, nil
	if _, err := r.Call(t.Context(), c); err != nil || sent != `{"name":"write","task":{}}` {
		t.Errorf("sent %s, %v", sent, err)
	}
	c = call("write", "")
	if _, err := r.Call(t.Context(), c); err != nil || sent != `{"name":"write","arguments":{}}` {
		t.Errorf("without arguments sent %s, %v", sent, err)
	}
}

func TestRefusedCalls(t *testing.T) {
	off := false
	for name, tt := range map[string]struct {
		call tool.Call
		kind tool.Kind
		says string
	}{
		"unknown tool":       {call("reed", `{}`), tool.ToolNotFound, "fs:read"},
		"disabled":           {call("write", `{}`), tool.ToolDisabled, "toolRules"},
		"missing argument":   {call("read", `{}`), tool.InvalidArguments, "path"},
		"no object":          {call("read", `[1]`), tool.InvalidArguments, "JSON object"},
		"not JSON":           {call("read", `{"path"`), tool.InvalidArguments, "JSON"},
		"every violation":    {call("read", `{"n":"x","y":1}`), tool.InvalidArguments, "at /n"},
		"hidden by its key":  {tool.Call{Caller: tool.Caller{ID: "k", Servers: []string{"other"}}, Server: "fs", Tool: "read"}, tool.ServerNotFound, "no server"},
		"ambiguous is final": {call("twice", `{}`), tool.InvalidArguments, "ambiguous"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.offer(t, "a", `{"name":"twice","inputSchema":{}}`)
			r.offer(t, "b", `{"name":"twice","inputSchema":{}}`)
			r.catalog.Configure(catalog.Settings{Rules: []catalog.ToolRule{{Pattern: []string{"fs:write"}, Enabled: &off}}}, nil)
			_, err := r.Call(t.Context(), tt.call)
			if tool.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error = %v of kind %s, want %s that says %q", err, tool.KindOf(err), tt.kind, tt.says)
			}
			rec := r.only(t)
			if rec.Status != store.StatusFailed || rec.Kind != string(tt.kind) || rec.Error == "" {
				t.Errorf("record = %+v", rec)
			}
			if r.calls != 0 {
				t.Error("the upstream was called all the same")
			}
		})
	}
}

func TestInvalidArgumentsCarryTheSchema(t *testing.T) {
	r := newFixture(t)
	_, err := r.Call(t.Context(), call("read", `{"n":"x","y":1}`))
	d, ok := tool.AsError(err).Details.(InvalidArguments)
	if !ok || len(d.Violations) != 3 || !strings.Contains(string(d.Schema), `"path"`) {
		t.Errorf("details = %+v", tool.AsError(err).Details)
	}
	many := call("read", `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"n":"x","path":3}`)
	if _, err := r.Call(t.Context(), many); err == nil {
		t.Error("accepted")
	}
}

func TestInvalidSchemaSkipsValidation(t *testing.T) {
	r := newFixture(t)
	if _, err := r.Call(t.Context(), call("odd", `{"any":1}`)); err != nil {
		t.Errorf("Call = %v", err)
	}
}

func TestWaitsForAnUpstreamThatStarts(t *testing.T) {
	r := newFixture(t)
	r.await = func(servers ...string) []string {
		if fmt.Sprint(servers) != "[late]" {
			t.Errorf("awaited %v", servers)
		}
		r.offer(t, "late", `{"name":"tool","inputSchema":{}}`)
		return nil
	}
	c := call("tool", `{}`)
	c.Server = "late"
	if _, err := r.Call(t.Context(), c); err != nil {
		t.Errorf("Call = %v", err)
	}

	r.connecting = []string{"p1", "p2", "p3", "p4", "p5", "p6"}
	r.await = func(servers ...string) []string { return servers }
	_, err := r.Call(t.Context(), call("nowhere", `{}`))
	if tool.KindOf(err) != tool.ToolNotFound || !strings.Contains(err.Error(), "p1") || !strings.Contains(err.Error(), "1 more") {
		t.Errorf("a pending upstream is not named: %v", err)
	}
	hidden := call("tool", `{}`)
	hidden.Server, hidden.Caller = "secret", tool.Caller{ID: "k", Servers: []string{"fs"}}
	r.await = func(...string) []string { t.Error("awaited a server that the caller may not see"); return nil }
	if _, err := r.Call(t.Context(), hidden); tool.KindOf(err) != tool.ServerNotFound {
		t.Errorf("error = %v", err)
	}
	// A name without a server does not wait for hidden servers or disclose
	// them.
	for _, caller := range []tool.Caller{{ID: "k", Servers: []string{"fs"}}, {ID: "k", Tools: []string{"fs:*"}}} {
		hidden = call("nowhere", `{}`)
		hidden.Caller = caller
		if _, err := r.Call(t.Context(), hidden); tool.KindOf(err) != tool.ToolNotFound || strings.Contains(err.Error(), "p1") {
			t.Errorf("error = %v", err)
		}
	}
}

func TestFailuresOfUpstreams(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		kind tool.Kind
	}{
		"cut connection":       {io.ErrUnexpectedEOF, tool.UpstreamFailed},
		"its own JSON-RPC":     {&mcp.Error{Code: -32000, Message: "quota", Data: json.RawMessage(`{"a":1}`)}, tool.UpstreamFailed},
		"blames the arguments": {fmt.Errorf("x: %w", &mcp.Error{Code: mcp.CodeInvalidParams, Message: "bad"}), tool.InvalidArguments},
		"knows no such method": {&mcp.Error{Code: mcp.CodeMethodNotFound, Message: "no"}, tool.MethodNotFound},
		"down":                 {&tool.Error{Kind: tool.UpstreamFailed, Msg: "fs is down"}, tool.UpstreamFailed},
		"consent":              {&tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "log in"}, tool.UpstreamAuthRequired},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) { return nil, tt.err }
			_, err := r.Call(t.Context(), call("write", `{}`))
			if tool.KindOf(err) != tt.kind || !errors.Is(err, tt.err) {
				t.Errorf("error = %v of kind %s, want %s", err, tool.KindOf(err), tt.kind)
			}
			r.only(t)
		})
	}
}

func TestToolErrorIsAResult(t *testing.T) {
	r := newFixture(t)
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"no such file"}],"isError":true}`), nil
	}
	for range 10 {
		res, err := r.Call(t.Context(), call("write", `{}`))
		if err != nil || !res.IsError {
			t.Fatalf("Call = %+v, %v", res, err)
		}
	}
	if s := r.Stats(tool.Name{Server: "fs", Tool: "write"}); s.Circuit != Closed || s.Calls != 10 || s.Successes != 0 || s.Failures != 10 {
		t.Errorf("tool errors moved the circuit, or count as successes: %+v", s)
	}
	if r.records[0].Status != store.StatusError {
		t.Errorf("recorded as %s", r.records[0].Status)
	}
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"\"isError\":true"}]}`), nil
	}
	if res, _ := r.Call(t.Context(), call("write", `{}`)); res.IsError {
		t.Error("a text about errors was taken for one")
	}
}

func TestPanicIsRecordedOnce(t *testing.T) {
	r := newFixture(t)
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) { panic("boom") }
	_, err := r.Call(t.Context(), call("write", `{}`))
	if tool.KindOf(err) != tool.Internal || strings.Contains(tool.AsError(err).Msg, "boom") {
		t.Errorf("error = %v", err)
	}
	if rec := r.only(t); rec.Kind != "INTERNAL" || !strings.Contains(rec.Error, "boom") {
		t.Errorf("record = %+v", rec)
	}
	r.records = nil
	f := tool.Forward{Face: "test", Caller: tool.Local, Server: "fs", Method: "resources/list"}
	if _, err := r.Forward(t.Context(), f); tool.KindOf(err) != tool.Internal {
		t.Errorf("Forward error = %v", err)
	}
	r.only(t)
}

func TestUnwrittenRecordIsLogged(t *testing.T) {
	r := newFixture(t)
	r.broken = errors.New("disk full")
	if _, err := r.Call(t.Context(), call("write", `{}`)); err != nil {
		t.Errorf("Call = %v", err)
	}
	if !strings.Contains(r.out.String(), "disk full") {
		t.Errorf("the log does not say that the record is missing: %s", r.out.String())
	}
}

func TestRedactionAndExcerpts(t *testing.T) {
	r := newFixture(t, func(o *Options) {
		o.Redact = func(b json.RawMessage) json.RawMessage {
			return bytes.ReplaceAll(b, []byte("s3cret"), []byte("[redacted]"))
		}
		o.Config.Limits.MaxRecordBytes = 64
	})
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("s3cret ", 100) + `"}]}`), nil
	}
	if _, err := r.Call(t.Context(), call("write", `{"k":"s3cret"}`)); err != nil {
		t.Fatal(err)
	}
	rec := r.only(t)
	if strings.Contains(string(rec.Arguments)+string(rec.Result), "s3cret") {
		t.Errorf("a secret is in the record: %s %s", rec.Arguments, rec.Result)
	}
	if !json.Valid(rec.Result) || len(rec.Result) > 140 || !strings.Contains(string(rec.Result), "bytes in all") {
		t.Errorf("excerpt = %s", rec.Result)
	}
	if got := r.excerpt(json.RawMessage(`not json`), 0); string(got) != `"not json"` {
		t.Errorf("excerpt of no JSON = %s", got)
	}
}

func TestForward(t *testing.T) {
	r := newFixture(t)
	var sent tool.Request
	r.do = func(_ context.Context, server string, req tool.Request) (json.RawMessage, error) {
		sent = req
		return json.RawMessage(`{"x-unknown": 1}`), nil
	}
	c := tool.Forward{Face: "broker", Caller: tool.Local, Server: "fs", Method: "x/unknown", Params: json.RawMessage(`{"a" : 1}`)}
	raw, err := r.Forward(t.Context(), c)
	if err != nil || string(raw) != `{"x-unknown": 1}` || string(sent.Params) != `{"a" : 1}` || sent.Method != "x/unknown" {
		t.Errorf("Forward = %s, %v; sent %+v", raw, err, sent)
	}
	if rec := r.only(t); rec.Method != "x/unknown" || rec.Tool != "" || string(rec.Arguments) != `{"a" : 1}` {
		t.Errorf("record = %+v", rec)
	}
	if _, err := r.Forward(t.Context(), tool.Forward{Caller: tool.Local, Server: "fs", Method: "tools/call"}); tool.KindOf(err) != tool.InvalidRequest {
		t.Errorf("a tool call was forwarded: %v", err)
	}
	c.Caller = tool.Caller{ID: "k", Servers: []string{"none"}}
	if _, err := r.Forward(t.Context(), c); tool.KindOf(err) != tool.ServerNotFound {
		t.Errorf("a hidden server was reached: %v", err)
	}
	c.Caller = tool.Caller{ID: "k2", Rate: tool.Rate{Calls: 1, Per: time.Hour}}
	if _, err := r.Forward(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Forward(t.Context(), c); tool.KindOf(err) != tool.RateLimited {
		t.Errorf("the key's rate does not hold: %v", err)
	}
}

// TestForwardOfALimitedKey: the right to use some tools of a server does not
// include its resources or unknown methods.
func TestForwardOfALimitedKey(t *testing.T) {
	r := newFixture(t)
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return json.RawMessage(`{}`), nil
	}
	for name, tt := range map[string]struct {
		tools  []string
		method string
		denied bool
	}{
		"no limit":           {nil, "resources/read", false},
		"other tools":        {[]string{"fs:read_*"}, "resources/read", true},
		"unknown method":     {[]string{"fs:read_*"}, "x/unknown", true},
		"named":              {[]string{"fs:read_*", "fs:resources/*"}, "resources/read", false},
		"all of the server":  {[]string{"fs:*"}, "prompts/get", false},
		"all of another":     {[]string{"git:*"}, "prompts/get", true},
		"list of tools":      {[]string{"fs:read_*"}, "tools/list", false},
		"ping":               {[]string{"fs:read_*"}, "ping", false},
		"a call in disguise": {[]string{"fs:read_*"}, "tools/call ", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Forward(t.Context(), tool.Forward{Face: "broker", Caller: tool.Caller{ID: "key:k", Tools: tt.tools}, Server: "fs", Method: tt.method})
			kind := tool.KindOf(err)
			if name == "all of another" && kind != tool.ServerNotFound {
				t.Errorf("Forward to a hidden server: %v", err)
			}
			if denied := kind == tool.Denied || kind == tool.ServerNotFound; denied != tt.denied || err != nil && !denied {
				t.Errorf("Forward: %v, want it denied: %t", err, tt.denied)
			}
		})
	}
}

func TestCallerTraceIDIsUsed(t *testing.T) {
	r := newFixture(t)
	var seen string
	r.do = func(ctx context.Context, _ string, _ tool.Request) (json.RawMessage, error) {
		seen = telemetry.TraceID(ctx)
		return json.RawMessage(`{}`), nil
	}
	parent := telemetry.ParseTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")
	if _, err := r.Call(telemetry.WithTrace(t.Context(), parent), call("write", `{}`)); err != nil {
		t.Fatal(err)
	}
	const want = "0af7651916cd43dd8448eb211c80319c"
	if rec := r.only(t); rec.TraceID != want || seen != want {
		t.Errorf("the record has trace %q, the upstream saw %q", rec.TraceID, seen)
	}
}

type meter struct {
	seen     []string
	circuits []string
	open     int
}

func (m *meter) Circuit(server, name string, state int) {
	m.circuits = append(m.circuits, fmt.Sprintf("%s:%s %d", server, name, state))
}
func (m *meter) Begin() func() { m.open++; return func() { m.open-- } }
func (m *meter) Call(face, server, name, status, kind string, _ time.Duration) {
	m.seen = append(m.seen, fmt.Sprintf("%s %s %s %s %s", face, server, name, status, kind))
}

func TestMeterCountsCalls(t *testing.T) {
	m := &meter{}
	r := newFixture(t, func(o *Options) { o.Meter = m })
	r.Call(t.Context(), call("write", `{}`))
	r.Call(t.Context(), call("nope", `{}`))
	if got := fmt.Sprintf("%q", m.seen); got != `["test fs write ok " "test   failed TOOL_NOT_FOUND"]` || m.open != 0 {
		t.Errorf("counted %s", got)
	}
}

func TestOnlyIdempotentCallsAreRetried(t *testing.T) {
	for name, tt := range map[string]struct {
		tool, args string
		err        error
		want       int
	}{
		"read-only, connection cut":   {"read", `{"path":"a"}`, io.EOF, 2},
		"not marked, connection cut":  {"write", `{}`, io.EOF, 1},
		"read-only, upstream's error": {"read", `{"path":"a"}`, &mcp.Error{Code: -32000, Message: "no"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFixture(t)
				r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
					if r.calls == 1 {
						return nil, tt.err
					}
					return json.RawMessage(`{}`), nil
				}
				_, err := r.Call(t.Context(), call(tt.tool, tt.args))
				if r.calls != tt.want || (err == nil) != (tt.want == 2) {
					t.Errorf("%d attempts, error %v; want %d attempts", r.calls, err, tt.want)
				}
				r.only(t)
			})
		})
	}
}

func TestTimeouts(t *testing.T) {
	hang := func(ctx context.Context, _ string, _ tool.Request) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	t.Run("silence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = hang
			begun := time.Now()
			_, err := r.Call(t.Context(), call("write", `{}`))
			if tool.KindOf(err) != tool.Timeout || time.Since(begun) != 30*time.Second || !strings.Contains(err.Error(), "within 30s (the server's timeoutMs)") {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
		})
	})
	t.Run("the call's own", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = hang
			begun := time.Now()
			c := call("write", `{}`)
			c.Timeout = time.Second
			if _, err := r.Call(t.Context(), c); tool.KindOf(err) != tool.Timeout || time.Since(begun) != time.Second {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
		})
	})
	t.Run("progress extends, up to the maximum", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			received := 0
			r.do = func(ctx context.Context, _ string, req tool.Request) (json.RawMessage, error) {
				for {
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(20 * time.Second):
						req.Exchange.Notify("notifications/progress", json.RawMessage(`{"progressToken":1}`))
					}
				}
			}
			c := call("write", `{}`)
			c.Exchange.Notify = func(string, json.RawMessage) { received++ }
			begun := time.Now()
			_, err := r.Call(t.Context(), c)
			if tool.KindOf(err) != tool.Timeout || time.Since(begun) != 10*time.Minute || received < 29 || !strings.Contains(err.Error(), "within 10m0s (the server's maxTimeoutMs)") {
				t.Errorf("after %s and %d notifications: %v", time.Since(begun), received, err)
			}
		})
	})
	t.Run("progress that the caller did not ask for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = func(ctx context.Context, _ string, req tool.Request) (json.RawMessage, error) {
				for range 10 {
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(20 * time.Second):
						req.Exchange.Notify("notifications/progress", json.RawMessage(`{"progress":1}`))
					}
				}
				return json.RawMessage(`{}`), nil
			}
			c := call("write", `{}`)
			c.Exchange.Notify = func(string, json.RawMessage) { t.Error("it reached the caller") }
			if _, err := r.Call(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("waiting for its turn is not silence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = func(ctx context.Context, _ string, req tool.Request) (json.RawMessage, error) {
				req.Exchange.Queued(true)
				time.Sleep(time.Hour)
				req.Exchange.Queued(false)
				return hang(ctx, "", req)
			}
			begun := time.Now()
			_, err := r.Call(t.Context(), call("write", `{}`))
			if tool.KindOf(err) != tool.Timeout || time.Since(begun) != time.Hour+30*time.Second {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
		})
	})
	t.Run("two questions, and the second is slow to be answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = func(ctx context.Context, _ string, req tool.Request) (json.RawMessage, error) {
				var both sync.WaitGroup
				for _, method := range []string{"quick", "slow"} {
					both.Go(func() { _, _ = req.Exchange.Ask(ctx, method, nil) })
				}
				both.Wait()
				return json.RawMessage(`{}`), ctx.Err()
			}
			c := call("write", `{}`)
			c.Exchange.Ask = func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
				if method == "slow" {
					time.Sleep(5 * time.Minute)
				}
				return json.RawMessage(`{}`), nil
			}
			if _, err := r.Call(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("a question stops the clock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = func(ctx context.Context, _ string, req tool.Request) (json.RawMessage, error) {
				return req.Exchange.Ask(ctx, "elicitation/create", nil)
			}
			c := call("write", `{}`)
			c.Exchange.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
				time.Sleep(5 * time.Minute)
				return json.RawMessage(`{"action":"accept"}`), nil
			}
			if res, err := r.Call(t.Context(), c); err != nil || string(res.Raw) != `{"action":"accept"}` {
				t.Errorf("Call = %s, %v", res.Raw, err)
			}
		})
	})
	t.Run("a caller that goes away", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = hang
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := r.Call(ctx, call("write", `{}`))
			if tool.KindOf(err) != tool.Canceled {
				t.Errorf("error = %v", err)
			}
			if rec := r.only(t); rec.Kind != "CANCELED" {
				t.Errorf("record = %+v", rec)
			}
			if s := r.Stats(tool.Name{Server: "fs", Tool: "write"}); s.Failures != 0 {
				t.Errorf("a cancelled call counts as the tool's failure: %+v", s)
			}
		})
	})
	t.Run("no retry for a caller that is gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			ctx, cancel := context.WithCancel(t.Context())
			r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
				time.AfterFunc(10*time.Millisecond, cancel)
				return nil, io.EOF
			}
			r.Call(ctx, call("read", `{"path":"a"}`))
			if r.calls != 1 {
				t.Errorf("%d attempts", r.calls)
			}
		})
	})
}

func TestApproval(t *testing.T) {
	ctx := context.Background()
	answer := func(text string, err error) func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			if method != "elicitation/create" || !strings.Contains(string(params), "fs:write") || len(params) > 3000 {
				t.Errorf("asked %s with %d bytes", method, len(params))
			}
			return json.RawMessage(text), err
		}
	}
	forms := json.RawMessage(`{"elicitation":{}}`)
	for name, tt := range map[string]struct {
		exchange tool.Exchange
		kind     tool.Kind
		says     string
	}{
		"nobody to ask":        {tool.Exchange{}, tool.Denied, "toolRules"},
		"cannot elicit":        {tool.Exchange{Ask: answer(`{}`, nil), Capabilities: json.RawMessage(`{"sampling":{}}`)}, tool.Denied, "cannot be asked"},
		"only by URL":          {tool.Exchange{Ask: answer(`{}`, nil), Capabilities: json.RawMessage(`{"elicitation":{"url":{}}}`)}, tool.Denied, "cannot be asked"},
		"accepted":             {tool.Exchange{Ask: answer(`{"action":"accept","content":{}}`, nil), Capabilities: forms}, "", ""},
		"declined":             {tool.Exchange{Ask: answer(`{"action":"decline"}`, nil), Capabilities: forms}, tool.Denied, "not approved"},
		"no answer":            {tool.Exchange{Ask: answer(``, io.EOF), Capabilities: forms}, tool.Denied, "no answer"},
		"garbage":              {tool.Exchange{Ask: answer(`[`, nil), Capabilities: forms}, tool.Denied, "no answer"},
		"by the face itself":   {tool.Exchange{Approve: func(context.Context, tool.Name, json.RawMessage) (bool, error) { return true, nil }}, "", ""},
		"refused by the face":  {tool.Exchange{Approve: func(context.Context, tool.Name, json.RawMessage) (bool, error) { return false, nil }}, tool.Denied, "not approved"},
		"face comes before it": {tool.Exchange{Approve: func(context.Context, tool.Name, json.RawMessage) (bool, error) { return true, nil }, Ask: answer(`{"action":"decline"}`, nil), Capabilities: forms}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.catalog.Configure(catalog.Settings{Rules: []catalog.ToolRule{{Pattern: []string{"fs:write"}, Approval: catalog.AskApproval}}}, nil)
			c := call("write", `{"text":"`+strings.Repeat("x", 5000)+`"}`)
			c.Exchange = tt.exchange
			_, err := r.Call(ctx, c)
			if tool.KindOf(err) != tt.kind || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error = %v, want kind %q that says %q", err, tt.kind, tt.says)
			}
			if (r.calls == 1) != (tt.kind == "") {
				t.Errorf("%d calls reached the upstream", r.calls)
			}
		})
	}
}

// TestCallWithoutCallerHasNoRights: a call without a caller ID is anonymous,
// whatever the other fields of the caller are.
func TestCallWithoutCallerHasNoRights(t *testing.T) {
	r := newFixture(t)
	r.do = succeed
	for _, caller := range []tool.Caller{{}, {Admin: true}, {Servers: []string{"fs"}}} {
		c := call("fs:write", `{}`)
		c.Caller = caller
		if _, err := r.Call(t.Context(), c); tool.KindOf(err) != tool.ToolNotFound && tool.KindOf(err) != tool.ServerNotFound {
			t.Errorf("Call by %+v: %v", caller, err)
		}
		if _, err := r.Forward(t.Context(), tool.Forward{Caller: caller, Server: "fs", Method: "resources/list"}); tool.KindOf(err) != tool.ServerNotFound {
			t.Errorf("Forward by %+v: %v", caller, err)
		}
		if _, err := r.Group(t.Context(), c, func(_ context.Context, work *tool.Call) (tool.Result, error) {
			if work.Caller.ID != tool.AnonymousID || work.Caller.Admin {
				t.Errorf("the work of %+v runs for %+v", caller, work.Caller)
			}
			return tool.Result{}, nil
		}); err != nil {
			t.Errorf("Group by %+v: %v", caller, err)
		}
	}
	if r.calls > 0 {
		t.Errorf("%d requests were sent", r.calls)
	}
	for _, rec := range r.records {
		if rec.Caller != tool.AnonymousID {
			t.Errorf("recorded as a call by %q", rec.Caller)
		}
	}
}

// TestListsAreFilteredByCallerRights: a server's own list is filtered by the
// rights of the caller.
func TestListsAreFilteredByCallerRights(t *testing.T) {
	r := newFixture(t)
	const list = `{"tools":[{"name":"read" , "x":1},{"name":"write"},{"name":"new"}],"ttlMs" : 5}`
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return json.RawMessage(list), nil
	}
	for name, tt := range map[string]struct {
		caller tool.Caller
		want   string
	}{
		"all":     {tool.Local, list},
		"one":     {tool.Caller{ID: "key:k", Tools: []string{"fs:read"}}, `{"tools":[{"name":"read" , "x":1}],"ttlMs" : 5}`},
		"nothing": {tool.Caller{ID: "key:k", Tools: []string{"fs:else"}}, `{"tools":[],"ttlMs" : 5}`},
	} {
		got, err := r.Forward(t.Context(), tool.Forward{Caller: tt.caller, Server: "fs", Method: "tools/list"})
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestDuplicateNamesInParamsAreRefused: params that two parsers could read
// differently are refused.
func TestDuplicateNamesInParamsAreRefused(t *testing.T) {
	r := newFixture(t)
	r.do = succeed
	for params, ok := range map[string]bool{
		`{"name":"read","arguments":{"path":"a"}}`:                            true,
		`{"name":"read","arguments":{"path":"a"},"_meta":{"Name":"x"}}`:       true,
		`{"name":"write","name":"read","arguments":{"path":"a"}}`:             false,
		`{"Name":"write","name":"read","arguments":{"path":"a"}}`:             false,
		`{"name":"read","NAME":"write","arguments":{"path":"a"}}`:             false,
		`{"name":"read","arguments":{"path":"b"},"arguments":{"path":"a"}}`:   false,
		`{"name":"read","n\u0061me":"write","arguments":{"path":"a"}}`:        false,
		`{"name":"read","arguments":{"path":"a"},"\u0041rguments":{"a":"b"}}`: false,
	} {
		c := call("read", `{"path":"a"}`)
		c.Params = json.RawMessage(params)
		if _, err := r.Call(t.Context(), c); (err == nil) != ok || err != nil && tool.KindOf(err) != tool.InvalidArguments {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// TestRecordSharesNoLentMemory: a record outlives its call, but the pooled
// memory of the result does not.
func TestRecordSharesNoLentMemory(t *testing.T) {
	r := newFixture(t, func(o *Options) { o.Config.Limits.MaxRecordBytes = 1 << 20 })
	result := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 100_000) + `"}]}`
	r.do = func(_ context.Context, _ string, req tool.Request) (json.RawMessage, error) {
		return append(req.Exchange.Memory.Get(len(result)), result...), nil
	}
	c := call("fs:write", `{}`)
	c.Exchange.Memory = new(tool.ResultMemory)
	got, err := r.Call(t.Context(), c)
	if err != nil || !c.Exchange.Memory.Lent() {
		t.Fatalf("lent %v, %v", c.Exchange.Memory.Lent(), err)
	}
	clear(got.Raw)
	if rec := r.only(t); string(rec.Result) != result {
		t.Errorf("the record has %.80q…", rec.Result)
	}
}
