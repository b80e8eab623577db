package agentify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"junctor/internal/llm/llmtest"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

var noScript = llmtest.Script{}

const (
	hello  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"processId":1,"rootUri":null,"capabilities":{}}}`
	thanks = `{"jsonrpc":"2.0","method":"initialized","params":{}}`
)

func task(id int, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"agentify/orchestrateTask","params":%s}`, id, params)
}

func TestProtocolInBothFramings(t *testing.T) {
	for name, head := range map[string]bool{"lines": false, "headers": true} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, both(), always(calls(call("files:read_file", `{"path":"a"}`))))
			c := r.connect(head)
			c.send(task(1, `{"query":"read a"}`))
			c.expect(`"id":1`, `-32001`)
			c.send(hello)
			c.expect(`"id":0`, `"serverInfo"`, `"capabilities"`)
			c.send(thanks, task(2, `{"query":"read a","context":{"currentWorkingDirectory":"/w"}}`))
			c.expect(`"id":2`, `"content":[{"text":"read_file {\"path\":\"/w/a\"}"`, `12345678901234567`)
			c.send(task(3, `{"query":"read a","dryRun":true}`))
			c.expect(`"id":3`, `"backendId":"files"`, `"mcpMethod":"tools/call"`, `"reason"`)
			c.send(task(4, `{"query":"read a","explain":true}`))
			c.expect(`"id":4`, `"plan"`, `"content"`, `"steps":[{"step":"candidates"`, `"modelRequest"`, `"modelAnswer"`, `"relevance"`)
			c.send(task(5, `{"query":"","context":{"selectionText":1}}`))
			c.expect(`"id":5`, `-32602`, `/query: must say in plain words`, `/context/selectionText`)
			c.send(`{"jsonrpc":"2.0","id":6,"method":"textDocument/hover"}`)
			c.expect(`"id":6`, `-32601`)
			c.send(`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`)
			c.expect(`"id":7`, `-32600`)
			c.send(`{"jsonrpc":"2.0","id":8,"method":"shutdown"}`)
			c.expect(`"id":8`, `"result":null`)
			c.send(task(9, `{"query":"read a"}`))
			c.expect(`"id":9`, `-32600`)
			c.send(`{"jsonrpc":"2.0","method":"exit"}`)
			if err := c.over(); err != nil {
				t.Errorf("end: %v", err)
			}
			if head != strings.HasPrefix(c.raw.String(), "Content-Length: ") {
				t.Errorf("answered with %.40q", c.raw.String())
			}
		})
	}
}

func TestInitializationOptions(t *testing.T) {
	r := newFixture(t, both(), noScript)
	c := r.connect(true)
	r.refuse = &tool.Error{Kind: tool.InvalidArguments, Msg: "bad", Details: map[string]any{"violations": []string{"one", "two"}}}
	initialize := `{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"initializationOptions":{"backends":[]}}}`
	c.send(fmt.Sprintf(initialize, 1), task(2, `{"query":"x"}`))
	c.expect(`"id":1`, `-32602`, `"one","two"`)
	c.expect(`"id":2`, `-32001`) // it waited for initialize
	r.refuse = nil
	c.send(fmt.Sprintf(initialize, 3))
	c.expect(`"id":3`, `serverInfo`)
	if len(r.options) != 2 || string(r.options[1]) != `{"backends":[]}` {
		t.Errorf("options %s", r.options)
	}
	r.Face.opts.Configure = nil
	d := r.connect(false)
	d.send(fmt.Sprintf(initialize, 1))
	d.expect(`-32602`)
	d.send(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":null}`)
	d.expect(`"id":2`, `serverInfo`)
}

func TestDeclinedTaskIsProtocolError(t *testing.T) {
	r := newFixture(t, both(), always(calls(call("agentify:decline", `{"reason":"Which file?"}`))))
	c := r.connect(false)
	c.send(hello)
	c.next()
	c.send(task(1, `{"query":"read it"}`))
	got := c.expect(`-32000`, `Which file?`)
	var m struct {
		Error struct {
			Code int
			Data struct {
				Query, Code, Reason string
				Suggestions         []Suggestion
			}
		}
	}
	if err := json.Unmarshal([]byte(got), &m); err != nil || m.Error.Code != -32000 || m.Error.Data.Query != "read it" || m.Error.Data.Code != "NO_ACTION" || len(m.Error.Data.Suggestions) == 0 {
		t.Errorf("%s, %v", got, err)
	}
}

func TestCancellationByLSPAndMCP(t *testing.T) {
	b := both()
	r := newFixture(t, b, always(calls(call("odd:wait", `{}`))))
	c := r.connect(true)
	c.send(hello)
	c.next()
	running := func(n int) {
		t.Helper()
		for ctx := ctxFor(t); len(b["odd"].calls()) < n; {
			if ctx.Err() != nil {
				t.Fatal("the call never begins")
			}
			time.Sleep(time.Millisecond) // poll interval
		}
	}
	c.send(`{"jsonrpc":"2.0","id":"w","method":"agentify/orchestrateTask","params":{"query":"wait"}}`)
	running(1)
	c.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"w"}}`)
	c.expect(`"id":"w"`, `-32800`) // LSP-style clients expect a response
	c.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"w"}}`, `{"jsonrpc":"2.0","method":"$/cancelRequest"}`, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":{}}}`)

	c.send(task(5, `{"query":"wait"}`))
	running(2)
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`, `{"jsonrpc":"2.0","id":6,"method":"ping"}`)
	c.expect(`"id":6`) // in MCP the cancelled request gets no response
	for ctx := ctxFor(t); len(r.slots) > 0; {
		if ctx.Err() != nil {
			t.Fatal("a cancelled task goes on")
		}
		time.Sleep(time.Millisecond) // poll interval
	}
	c.send(`{"jsonrpc":"2.0","method":"exit"}`)
	if err := c.over(); !errors.Is(err, ErrNoShutdown) {
		t.Errorf("exit without shutdown: %v", err)
	}
}

func TestMalformedInput(t *testing.T) {
	r := newFixture(t, both(), noScript)
	t.Run("lines go on", func(t *testing.T) {
		r.t = t
		c := r.connect(false)
		c.write("hello?\n{\"jsonrpc\":\"2.0\",\"id\":1,\n" + `[]` + "\n" + `{"id":2,"method":"x"}` + "\n")
		c.expect(`-32700`)
		c.expect(`-32700`)
		c.expect(`-32600`)
		c.expect(`"id":2`, `-32600`)
		c.send(hello)
		c.expect(`serverInfo`)
		c.write("Content-Length: 5\r\n\r\n") // Content-Length framing
		c.expect(`-32700`)
		c.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		c.expect(`"id":3`, `"result"`)
		c.in.Close()
		if err := c.over(); err != nil {
			t.Errorf("end: %v", err)
		}
	})
	for name, tt := range map[string]struct{ in, want string }{
		"length too short": {"Content-Length: 10\r\n\r\n" + hello + "\n", `-32700`},
		"no length":        {"Content-Type: x\r\n\r\n{}", `without Content-Length`},
		"bad length":       {"Content-Length: many\r\n\r\n{}", `is not a valid length`},
		"lines":            {"Content-Length: 2\r\n\r\n{}" + hello + "\n", `-32`},
		"truncated":        {"Content-Length: 200\r\n\r\n" + hello[:30], `-32700`},
	} {
		t.Run("headers, "+name, func(t *testing.T) {
			r.t = t
			c := r.connect(true)
			go func() { _, _ = io.WriteString(c.in, tt.in); c.in.Close() }()
			c.expect(tt.want)
			for !strings.HasPrefix(c.next(), "error: ") {
			}
			if err := c.over(); err == nil {
				t.Error("the end was in order")
			}
		})
	}
	t.Run("too large", func(t *testing.T) {
		r.t = t
		c := r.connect(true)
		c.send(hello)
		c.next()
		c.send(task(7, `{"query":"`+strings.Repeat("x", 17<<20)+`"}`))
		c.expect(`"id":7`, `over the limit`)
		c.send(task(8, `{"query":"`+strings.Repeat("x", 1<<20)+`"}`))
		c.expect(`"id":8`, `-32602`)
		c.send(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
		c.expect(`"id":9`, `"result"`)
	})
}

func TestPlainMCPClients(t *testing.T) {
	b := both()
	b["notes"] = newBackend("")
	b["notes"].extras = true
	r := newFixture(t, b, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "read"}, Reply: calls(call("files:read_file", `{"path":"/a"}`))},
		{When: llmtest.When{User: "note"}, Reply: calls(call("agentify:read_resource", `{"backend":"notes","uri":"note:diary"}`))},
		{When: llmtest.When{User: "confirm"}, Reply: calls(call("odd:confirm", `{}`))},
	}, Default: &llmtest.Reply{Text: "I do not know."}})
	for _, version := range []string{mcp.Version20241105, mcp.Version20251125, mcp.Version20260728} {
		t.Run(version, func(t *testing.T) {
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			done := make(chan error, 1)
			go func() { done <- r.ServeStream(tool.WithCaller(ctxFor(t), tool.Local), inR, outW); outW.Close() }()
			c, err := mcpclient.Connect(ctxFor(t), mcpclient.OverLink(mcp.NewStream(outR, inW, mcp.StreamOptions{})), mcpclient.Options{
				Name: "test", Protocol: version, Pin: true, DiscoverTimeout: time.Hour, Capabilities: mcpclient.Capabilities{ElicitationForm: true},
			})
			if err != nil {
				t.Fatal(err)
			}
			do := func(method, params string) string {
				t.Helper()
				got, err := c.Do(ctxFor(t), tool.Request{Method: method, Params: json.RawMessage(params), Exchange: tool.Exchange{
					Capabilities: json.RawMessage(`{"elicitation":{}}`),
					Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
						return json.RawMessage(`{"action":"accept","content":{}}`), nil
					},
				}})
				if err != nil {
					t.Fatalf("%s: %v", method, err)
				}
				return string(got)
			}
			if got := do("tools/list", `{}`); strings.Count(got, `"inputSchema"`) != 1 || !strings.Contains(got, `"orchestrate_task"`) {
				t.Errorf("tools: %s", got)
			}
			for _, tt := range []struct{ arguments, want string }{
				{`{"query":"read /a"}`, `read_file {\"path\":\"/a\"}`},
				{`{"query":"read /a","dryRun":true}`, `\"backendId\":\"files\"`},
				{`{"query":"read /a","explain":true}`, `\"steps\"`},
				{`{"query":"the note"}`, `"type":"resource"`},
				{`{"query":"sing"}`, `"isError":true`},
				{`{"query":7}`, `"isError":true`},
				{`{"query":"confirm"}`, `accept`},
			} {
				if got := do("tools/call", `{"name":"orchestrate_task","arguments":`+tt.arguments+`}`); !strings.Contains(got, tt.want) {
					t.Errorf("%s: %s", tt.arguments, got)
				}
			}
			if got := do("agentify/orchestrateTask", `{"query":"read /a"}`); !strings.Contains(got, "read_file") {
				t.Errorf("our own method: %s", got)
			}
			_, err = c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"other"}`)})
			if wire, ok := errors.AsType[*mcp.Error](err); !ok || wire.Code != mcp.CodeInvalidParams {
				t.Errorf("unknown tool: %v", err)
			}
			c.Close()
			inW.Close()
			if err := <-done; err != nil {
				t.Errorf("end: %v", err)
			}
		})
	}
}

func TestEmptyResultAsToolResult(t *testing.T) {
	got := asToolResult(Outcome{Plan: &Plan{Method: "resources/read"}, Result: json.RawMessage(`{}`)})
	if !strings.Contains(string(got), "(empty)") {
		t.Errorf("%s", got)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(hello + "\n" + thanks + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"))
	f.Add([]byte("Content-Length: 40\r\n\r\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}` + "\n" + `{"jsonrpc":"2.0","method":"exit"}`))
	r := newFixture(f, nil, noScript)
	r.model = nil
	f.Fuzz(func(t *testing.T, in []byte) {
		_ = r.ServeStream(tool.WithCaller(t.Context(), tool.Local), strings.NewReader(string(in)), io.Discard)
	})
}
