package chat

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/chat/wire"
	"junctor/internal/executor"
	"junctor/internal/listing"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// npmServer returns the configuration of an official MCP server from npm.
func npmServer(t testing.TB, name, pkg string, args ...string) upstream.Config {
	t.Helper()
	if testing.Short() {
		t.Skip("needs npm packages; not in make test-fast")
	}
	modules, err := filepath.Abs(filepath.Join("..", "..", "e2e", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(modules, "@modelcontextprotocol", pkg, "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is missing; run npm ci in e2e", pkg)
		}
		t.Skipf("%s is missing; run npm ci in e2e", pkg)
	}
	cfg := upstream.DefaultConfig()
	cfg.Name, cfg.Transport, cfg.Command, cfg.StartTimeoutMs = name, upstream.Stdio, filepath.Join(modules, ".bin", "node"), 60_000
	cfg.Args = append([]string{script}, args...)
	return cfg
}

// toolSink adds the tools of real servers to the fixture's catalogue.
type toolSink struct{ catalog *catalog.Catalog }

func (o toolSink) ToolsChanged(of upstream.ToolSet) {
	o.catalog.Put(catalog.Server{Name: of.Config.Name, Guidance: of.Guidance}, of.Tools)
}
func (o toolSink) Removed(server string)                            { o.catalog.Remove(server) }
func (o toolSink) StatusChanged(upstream.Status)                    {}
func (o toolSink) Notified(string, string, string, json.RawMessage) {}

func TestRealServers(t *testing.T) {
	folder := t.TempDir()
	if folder, _ = filepath.EvalSymlinks(folder); true {
		if err := os.WriteFile(filepath.Join(folder, "note.txt"), []byte("the answer is forty-two"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configs := []upstream.Config{npmServer(t, "everything", "server-everything"), npmServer(t, "files", "server-filesystem", folder)}
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	script := llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "read the note", Results: llmtest.N(0)}, Reply: llmtest.Reply{Text: "Reading. ", Calls: []llmtest.Call{
			{Tool: "files:read_text_file", Args: json.RawMessage(`{"path":` + quote(filepath.Join(folder, "note.txt")) + `}`)},
			{Tool: "everything:echo", Args: json.RawMessage(`{"message":"hello"}`)}}}},
		{When: llmtest.When{User: "read the note", Results: llmtest.N(2)}, Reply: llmtest.Reply{Text: "{{results}}"}},
		{When: llmtest.When{User: "a picture", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: calls("everything:get-tiny-image")}},
		{When: llmtest.When{User: "a picture", Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "Nice."}},
		{When: llmtest.When{User: "missing", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{
			{Tool: "files:read_text_file", Args: json.RawMessage(`{"path":` + quote(filepath.Join(folder, "nope.txt")) + `}`)},
			{Tool: "files:read_text_file", Args: json.RawMessage(`{"path":"/etc/passwd"}`)},
			{Tool: "files:read_text_file", Args: json.RawMessage(`{}`)}}}},
		{When: llmtest.When{User: "missing", Results: llmtest.N(3)}, Reply: llmtest.Reply{Text: "{{results}}"}},
		{When: llmtest.When{User: "long work", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{
			{Tool: "everything:trigger-long-running-operation", Args: json.RawMessage(`{"duration":0.2,"steps":2}`)}}}},
		{When: llmtest.When{User: "long work", Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: "{{result}}"}},
		{When: llmtest.When{User: "endless work", Results: llmtest.N(0)}, Reply: llmtest.Reply{Calls: []llmtest.Call{
			{Tool: "everything:trigger-long-running-operation", Args: json.RawMessage(`{"duration":600,"steps":600}`)}}}},
	}}
	served := catalog.New(nil, nil)
	ups := upstream.NewSupervisor(configs, upstream.Options{Sink: toolSink{served}, Log: slog.New(slog.DiscardHandler), Environ: os.Environ(), Name: "junctor", Version: "test"})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = ups.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	if pending := ups.Await(ctx); len(pending) > 0 {
		t.Fatalf("not started: %v", pending)
	}
	for name, cfg := range providers() {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, script, withModels(cfg), func(o *Options, _ *[]llm.Config) {
				o.Tools = listing.New(listing.Options{Catalog: served, Upstreams: ups})
				o.Executor = executor.New(executor.Options{Catalog: served, Upstreams: ups, Calls: o.Store.(executor.CallLog), Log: o.Log, Config: executor.DefaultConfig()})
			})
			c := r.connect("")
			for _, tt := range []struct {
				say  string
				want []string
			}{
				{"read the note", []string{"Reading. ", "the answer is forty-two", "Echo: hello"}},
				{"a picture", []string{"Nice."}},
				{"missing", []string{"ENOENT", "Access denied", "INVALID_ARGUMENTS"}},
				{"long work", []string{"completed"}},
			} {
				c.sendText(tt.say)
				text, stop := c.reply()
				for _, want := range tt.want {
					if !strings.Contains(text, want) || stop != stopEnd {
						t.Errorf("%s: %q, %s; want %q", tt.say, text, stop, want)
					}
				}
				if tt.say == "a picture" {
					pictures := r.model.Last().Results()[0].Images
					if takes := name != "openai"; (pictures > 0) != takes {
						t.Errorf("%d pictures reached the model", pictures)
					}
				}
			}
			progress := 0
			for _, m := range c.all {
				if len(m.Payload.Data.Progress) > 0 {
					progress++
				}
			}
			if progress == 0 {
				t.Error("no progress reached the person")
			}
			c.sendText("endless work") // an abort reaches the server
			c.readUntil(func(m message) bool { return m.Type == wire.TypeStatus && m.Payload.Tool != "" })
			c.send("abort", nil)
			if _, stop := c.reply(); stop != stopAborted {
				t.Errorf("stop %s", stop)
			}
			c.sendText("thanks")
			if text, _ := c.reply(); text != "You said: thanks" {
				t.Errorf("in the end: %q", text)
			}
		})
	}
}

var _ Executor = (*executor.Executor)(nil)

// starting is a server that is still starting and may list different tools for
// each caller.
type starting struct {
	states
	awaited chan string // receives the caller id of each Await
}

func (s starting) Connecting() []string { return []string{"slow"} }

func (s starting) Await(ctx context.Context, _ ...string) []string {
	s.awaited <- tool.CallerFrom(ctx).ID
	return nil
}

// A reply waits for servers on behalf of its caller, and then uses that
// caller's lists.
func TestReplyWaitsForServersAsItsCaller(t *testing.T) {
	awaited := make(chan string, 10)
	r := newFixture(t, llmtest.Script{}, func(o *Options, _ *[]llm.Config) {
		o.Tools = listing.New(listing.Options{Catalog: catalog.New(nil, nil), Upstreams: starting{awaited: awaited}})
	})
	c := r.connect("as=ada")
	c.sendText("hello")
	c.reply()
	if got := <-awaited; got != "ada" {
		t.Errorf("the servers were waited for on behalf of %q", got)
	}
}
