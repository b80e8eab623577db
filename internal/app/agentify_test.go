package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"junctor/internal/address/addresstest"
	"junctor/internal/auth"
	"junctor/internal/config"
	"junctor/internal/llm/llmtest"
	"junctor/internal/telemetry"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

// editor is an IDE that is connected to `junctor agentify`.
type editor struct {
	*App
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	log *lockedBuffer
	end func() error
}

// edit starts a gateway as an IDE does, with the given configuration file and
// environment.
func edit(t *testing.T, file string, env map[string]string) *editor {
	t.Helper()
	e := &editor{t: t, log: &lockedBuffer{}}
	path := filepath.Join(t.TempDir(), "junctor.json")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	o := config.Options{File: path, LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	cfg, _, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	redactor, err := telemetry.NewRedactor(cfg.Security.RedactConfig)
	if err != nil {
		t.Fatal(err)
	}
	var level slog.LevelVar
	level.Set(slog.LevelWarn)
	recent := telemetry.NewRing[telemetry.LogEntry](500)
	e.App, err = Open(t.Context(), Options{
		Config: cfg, Reload: o, Version: "test", DataDir: t.TempDir(), Environ: os.Environ(),
		Log:   telemetry.NewLogger(telemetry.LogOptions{Output: e.log, Level: &level, Redactor: redactor, Recent: recent}),
		Level: &level, Redactor: redactor, Recent: recent,
	})
	if err != nil {
		t.Fatal(err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	e.in, e.out = inW, bufio.NewReader(outR)
	core, stop := context.WithCancel(context.Background())
	ran, served := make(chan error, 1), make(chan error, 1)
	go func() { ran <- e.Run(core) }()
	go func() { served <- e.ServeAgentify(core, inR, outW); outW.Close() }()
	e.end = sync.OnceValue(func() error {
		inW.Close()
		go func() { _, _ = io.Copy(io.Discard, outR) }()
		err := <-served
		stop()
		if err := <-ran; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		return err
	})
	t.Cleanup(func() {
		if err := e.end(); err != nil {
			t.Errorf("ServeAgentify: %v", err)
		}
	})
	return e
}

// request sends a request and returns the response.
func (e *editor) request(id int, method string, params any) string {
	e.t.Helper()
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := e.in.Write(append(b, '\n')); err != nil {
		e.t.Fatal(err)
	}
	line, err := e.out.ReadString('\n')
	if err != nil {
		e.t.Fatal(err)
	}
	return line
}

func (e *editor) expect(answer string, wants ...string) {
	e.t.Helper()
	for _, want := range wants {
		if !strings.Contains(answer, want) {
			e.t.Errorf("got %s\nwithout %s\n%s", answer, want, e.log)
		}
	}
}

// backendOf returns a server as an entry of the option backends.
func backendOf(c upstream.Config) map[string]any {
	env := map[string]string{}
	for k, v := range c.Env {
		env[k] = strings.ReplaceAll(v.Reveal(), "${", "$${")
	}
	return map[string]any{"id": c.Name, "type": "stdio", "command": c.Command, "args": c.Args, "env": env}
}

func onDemand(tool, args string) llmtest.Rule {
	return llmtest.Rule{When: llmtest.When{User: tool, Tool: tool}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: tool, Args: json.RawMessage(args)}}}}
}

func TestBackendsFromInitializationOptions(t *testing.T) {
	model := llmtest.Start(t, llmtest.Script{Key: "sk-of-the-option-1234", Rules: []llmtest.Rule{
		onDemand("slow:echo", `{"text":"hi"}`), onDemand("slow:die", `{}`), onDemand("file:echo", `{"n":1}`),
	}})
	slow := upstreamtest.Stdio(t, "slow", upstreamtest.Script{StartDelayMs: 300})
	file := upstreamtest.Stdio(t, "file", upstreamtest.Script{})
	e := edit(t, fmt.Sprintf(`{"mcpServers":{"file":%s}}`, entry(t, file)), map[string]string{"OPENAI_BASE_URL": model.URL + "/v1"})
	port := addresstest.UnusedPort(t)
	options := map[string]any{
		"logLevel": "debug", "OPENAI_API_KEY": "sk-of-the-option-1234", "DEBUG_PORT": port,
		"backends": []any{backendOf(slow), map[string]any{"id": "gone", "type": "stdio", "command": "no-such-program-anywhere"}},
	}
	e.expect(e.request(1, "initialize", map[string]any{"initializationOptions": options}), `"serverInfo"`)
	if st, _ := e.upstreams.StatusOf("slow"); st.State != upstream.Connecting {
		t.Errorf("initialize waited for its backends: %s", st.State)
	}
	// The first task waits for the backend that is still starting.
	e.expect(e.request(2, "agentify/orchestrateTask", map[string]any{"query": "slow:echo"}), `\"text\":\"hi\"`)
	e.expect(e.request(3, "agentify/orchestrateTask", map[string]any{"query": "file:echo"}), `\"n\":1`)
	e.expect(e.request(4, "agentify/orchestrateTask", map[string]any{"query": "slow:die"}), `"error"`, `-32008`)
	eventually(t, "slow comes back", func() bool {
		st, _ := e.upstreams.StatusOf("slow")
		return st.Lost > 0 && st.State == upstream.Connected
	})
	e.expect(e.request(5, "agentify/orchestrateTask", map[string]any{"query": "slow:echo, again"}), `\"text\":\"hi\"`)
	e.expect(e.request(6, "agentify/orchestrateTask", map[string]any{"query": "sing"}), `-32000`, `"down":["gone"]`)

	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	session := signIn(t, base, e.opts.DataDir)
	get := func(path string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(auth.SessionHeader, session)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %d %s %v", path, res.StatusCode, b, err)
		}
		return string(b)
	}
	for path, want := range map[string]string{
		"/api/status": `"slow"`, "/api/backends": `"isReady":true`, "/api/config": "initializationOptions",
		"/api/logs": `"task planned"`, "/api/mcptrace": `"OUTGOING_FROM_GATEWAY"`, "/": "<html",
	} {
		body := get(path)
		e.expect(body, want)
		if strings.Contains(body, "sk-of-the-option-1234") {
			t.Errorf("%s shows the key", path)
		}
	}
	if strings.Contains(e.log.String(), "sk-of-the-option-1234") {
		t.Error("the log shows the key")
	}
	if log := e.log.String(); strings.Contains(log, "next start only") {
		t.Errorf("a restart was asked for: %s", log)
	}
	without := *e.config.Load()
	without.DebugPort = 0
	e.apply(t.Context(), &without)
	if _, err := http.Get(base + "/api/status"); err == nil {
		t.Error("the debug interface stays when debugPort is 0")
	}
	with := without
	with.DebugPort = port
	e.apply(t.Context(), &with)
	get("/api/status")
	moved := with
	moved.DebugPort = addresstest.UnusedPort(t)
	e.apply(t.Context(), &moved)
	base = fmt.Sprintf("http://127.0.0.1:%d", moved.DebugPort)
	get("/api/status")
	if n := len(e.gates.all); n != 1 {
		t.Errorf("%d gates for one port", n)
	}
	if err := e.end(); err != nil {
		t.Errorf("end: %v", err)
	}
	if _, err := http.Get(base + "/api/status"); err == nil {
		t.Error("the debug interface outlives the editor")
	}
	if n := len(e.gates.all); n != 0 {
		t.Errorf("%d gates outlive the editor", n)
	}
}

func TestEnvironmentKeyOverridesOptions(t *testing.T) {
	model := llmtest.Start(t, llmtest.Script{Key: "sk-of-the-environment", Rules: []llmtest.Rule{onDemand("junctor:calculate", `{"expression":"6*7"}`)}})
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	e := edit(t, `{}`, map[string]string{"OPENAI_BASE_URL": model.URL + "/v1", "OPENAI_API_KEY": "sk-of-the-environment"})
	e.expect(e.request(1, "initialize", map[string]any{"initializationOptions": map[string]any{
		"OPENAI_API_KEY": "sk-of-the-option", "DEBUG_PORT": busy.Addr().(*net.TCPAddr).Port, "builtin": true,
	}}), `"serverInfo"`)
	e.expect(e.request(2, "agentify/orchestrateTask", map[string]any{"query": "use junctor:calculate"}), `42`)
	e.expect(e.log.String(), "cannot start the debug interface") // a warning only
	if strings.Contains(e.log.String(), `"level":"INFO"`) {
		t.Error("options without a level changed it")
	}
}

func TestDebugPortOfTheEnvironment(t *testing.T) {
	port := addresstest.UnusedPort(t)
	edit(t, `{}`, map[string]string{"DEBUG_PORT": fmt.Sprint(port)})
	eventually(t, "the page is there before the editor says anything", func() bool {
		res, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/api/backends", port))
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == 200
	})
}

func TestInvalidOptionsAreAllReported(t *testing.T) {
	e := edit(t, `{}`, nil)
	e.expect(e.request(1, "initialize", map[string]any{"initializationOptions": map[string]any{
		"logLevel": "loud", "DEBUG_PORT": "many", "listen": ":1",
		"backends": []any{map[string]any{"id": "no name", "type": "stdio", "command": "x"}, map[string]any{"id": "b", "type": "stdio"}},
	}}), `-32602`, `logLevel`, `DEBUG_PORT`, `listen`, `no name`, `"violations":[`, `command`)
	e.expect(e.request(2, "initialize", map[string]any{"initializationOptions": map[string]any{"backends": []any{}}}), `-32602`, `backends`)
	e.expect(e.request(3, "initialize", map[string]any{"initializationOptions": "yes"}), `-32602`, `object`)
	e.expect(e.request(4, "agentify/orchestrateTask", map[string]any{"query": "x"}), `-32001`)
	e.expect(e.request(5, "initialize", map[string]any{}), `"serverInfo"`)
	e.expect(e.request(6, "agentify/orchestrateTask", map[string]any{"query": "x"}), `-32000`, `OPENAI_API_KEY`)
}

func TestServeMountsOrchestrate(t *testing.T) {
	model := llmtest.Start(t, llmtest.Script{Rules: []llmtest.Rule{onDemand("junctor:calculate", `{"expression":"6*7"}`)}})
	r := start(t, fmt.Sprintf(`{"llm":{"provider":"openai","model":"x","apiKey":"sk-test-key","baseUrl":%q}}`, model.URL+"/v1"), t.TempDir())
	code, body := r.ask("POST", "/api/orchestrate", `{"query":"use junctor:calculate"}`)
	if code != 200 || !strings.Contains(body, `"backendId":"junctor"`) || !strings.Contains(body, "42") {
		t.Errorf("%d %s", code, body)
	}
	if code, body := r.ask("GET", "/api/mcptrace", ""); code != 200 || !strings.Contains(body, `"backendId":"junctor"`) {
		t.Errorf("trace: %d %s", code, body)
	}
	// The trace has the calls of every API.
	r.ask("POST", "/api/call", `{"tool":"text","arguments":{"text":"seen in the trace","operation":"upper"}}`)
	if _, body := r.ask("GET", "/api/mcptrace", ""); !strings.Contains(body, "seen in the trace") {
		t.Errorf("trace: %s", body)
	}
	if code, _ := r.ask("GET", "/ws/mcptrace", ""); code != 426 {
		t.Errorf("stream without a WebSocket: %d", code)
	}
}
