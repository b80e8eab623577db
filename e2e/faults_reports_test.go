package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"junctor/internal/llm/llmtest"
)

// reportsConfig returns the configuration of TestFaultReports with more
// appended.
func reportsConfig(t *testing.T, web, twin *remoteServer, model *llmtest.Server, more string) string {
	return fmt.Sprintf(`{"mcpServers":{"good":%[1]s,"plain":%[2]s,"web":{"url":%[3]q},"twin":{"url":%[4]q},"broken":{"command":"/nonexistent/server"}},
		"llm":{"provider":"openai","model":"scripted","baseUrl":%[5]q,"apiKey":"sk-not-checked"},"chat":{"maxSteps":3,"maxIdenticalCalls":2}%[6]s}`,
		faultServer(t, ""), faultServer(t, `,"env":{"LOG_LEVEL":"debug","API_TOKEN":"correct-horse-battery","ACCOUNT":"${FAULT_ACCOUNT:-none}"}`), web.URL, twin.URL, model.URL+"/v1", more)
}

// TestFaultReports checks, on one gateway, that it reports correctly what it
// did: to callers and servers, in records, metrics and the log.
func TestFaultReports(t *testing.T) {
	t.Parallel()
	web, twin := newRemoteServer(t, "web"), newRemoteServer(t, "twin")
	model := llmtest.Start(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "again", Tool: "good:echo"}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "good:echo", Args: json.RawMessage(`{"text":"same"}`)}}}},
		{When: llmtest.When{User: "steps", Tool: "good:echo"}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "good:echo", Args: json.RawMessage(`{"text":"{{result}}x"}`)}}}},
	}, Default: &llmtest.Reply{Text: "That is all."}})
	h := newHome(t, reportsConfig(t, web, twin, model, ""))
	g := &faultFixture{gateway: h.serve()}
	g.ready("good", "plain", "web", "twin")
	g.awaitServer(t, "good")
	before := g.usage(t)
	stop := g.bystander()
	edit := func(more string) { h.write("junctor.json", reportsConfig(t, web, twin, model, more)) }

	t.Run("rows", func(t *testing.T) {
		row := func(name string, f func(t *testing.T)) { t.Run(name, f) }
		row("400 that mentions a session", func(t *testing.T) {
			if o := g.call("web", "refuse", "", 0); o.ok() || !strings.Contains(o.body, "the session of your bank has ended") {
				t.Errorf("a refused call: %s", o)
			}
			if n := len(web.sent("refuse")); n != 1 {
				t.Errorf("the call was sent %d times", n)
			}
			if o := g.call("web", "lose", "", 0); !o.ok() || !strings.Contains(o.body, "found") || len(web.sent("lose")) != 2 {
				t.Errorf("a call whose session was lost: %s", o)
			}
		})
		row("request id and trace", func(t *testing.T) {
			const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
			headers := append(g.session20250618(t, "/mcp"), "X-Request-Id", "my-request-1", "Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
			if o := g.post("/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_tool","arguments":{"server":"web","tool":"show","arguments":{}}}}`, headers...); !o.ok() {
				t.Fatalf("a call: %s", o)
			}
			if o := g.get("/api/calls/my-request-1"); !o.ok() || !strings.Contains(o.body, `"tool":"show"`) {
				t.Errorf("the record of a request id: %s", o)
			}
			sent := web.sent("show")
			if len(sent) != 1 {
				t.Fatalf("the call was sent %d times", len(sent))
			}
			meta, _ := sent[0].meta["traceparent"].(string)
			if header := sent[0].header.Get("Traceparent"); !strings.Contains(header, trace) || header != meta {
				t.Errorf("the caller's trace reaches the server as %q and %q", header, meta)
			}
			if agent := sent[0].header.Get("User-Agent"); !strings.HasPrefix(agent, "junctor/") {
				t.Errorf("User-Agent: %s", agent)
			}
		})
		row("ordinary values of variables", func(t *testing.T) {
			if o := g.post("/call_tool", `{"server":"plain","tool":"echo","arguments":{"text":"debug correct-horse-battery"}}`); !o.ok() {
				t.Fatalf("a call: %s", o)
			}
			if o := g.get("/logs?limit=1&server=plain"); !strings.Contains(o.body, "debug") || strings.Contains(o.body, "correct-horse-battery") {
				t.Errorf("the record: %s", o)
			}
		})
		row("failed results and sessions are counted", func(t *testing.T) {
			if o := g.call("web", "fails", "", 0); !strings.Contains(o.body, `"isError":true`) {
				t.Errorf("a result that is an error: %s", o)
			}
			if o := g.get("/api/stats?server=web&tool=fails"); !strings.Contains(o.body, `"calls":1,"errors":1`) {
				t.Errorf("statistics: %s", o)
			}
			sessions := func(kind string, n int) bool {
				return strings.Contains(g.get("/metrics").body, fmt.Sprintf("junctor_sessions{kind=%q} %d\n", kind, n))
			}
			if !sessions("mcp", 1) { // the session of the previous row
				t.Error("MCP sessions are not counted")
			}
			for range 50 {
				c, _, err := websocket.Dial(ctxFor(t), g.url+"/ws", nil)
				if err != nil {
					t.Fatal(err)
				}
				_ = c.CloseNow()
			}
			g.eventually(t, "no more chat sessions", func() bool { return sessions("chat", 0) })
		})
		row("interfaces with one name", func(t *testing.T) {
			headers := g.session20250618(t, "/mcp?mode=direct")
			list := g.post("/mcp?mode=direct", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, headers...)
			for _, server := range []string{"web", "twin"} {
				var uri string
				if m := regexp.MustCompile(`"` + server + `__show".*?"resourceUri":"([^"]+)"`).FindStringSubmatch(list.body); m != nil {
					uri = m[1]
				}
				o := g.post("/mcp?mode=direct", fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":%q}}`, uri), headers...)
				if !strings.Contains(o.body, "the interface of "+server) {
					t.Errorf("the interface %q of %s: %s", uri, server, o)
				}
			}
		})
		row("order of content", func(t *testing.T) {
			o := g.post("/execute", `{"provider":"anthropic","call":{"type":"tool_use","id":"1","name":"web__pictures","input":{}}}`)
			if !regexp.MustCompile(`first.*"image".*second.*"image"`).MatchString(o.body) {
				t.Errorf("labels and pictures: %s", o)
			}
			o = g.post("/execute", `{"provider":"gemini","call":{"name":"web__both","args":{}}}`)
			if strings.Count(o.body, "4711") != 1 {
				t.Errorf("structured content: %s", o)
			}
		})
		row("unknown paths", func(t *testing.T) {
			for _, path := range []string{"/healthz", "/tool/gemini", "/index.php"} {
				if o := g.get(path); o.status != http.StatusNotFound || !json.Valid([]byte(o.body)) {
					t.Errorf("GET %s: %s", path, o)
				}
			}
			if o := g.get("/"); !o.ok() || !strings.Contains(o.body, "<html") {
				t.Errorf("the page: %s", o)
			}
		})
		row("servers that are down", func(t *testing.T) {
			if o := g.get("/tools/openai"); !o.ok() || !strings.Contains(o.body, "broken is disconnected") {
				t.Errorf("all tools: %d %s", o.status, o.body[max(0, len(o.body)-300):])
			}
			if o := g.get("/tools/openai?server=broken"); o.ok() || !strings.Contains(o.body, "does not exist") {
				t.Errorf("the tools of a server that is down: %s", o)
			}
		})
		row("other values of variables", func(t *testing.T) {
			open := func(env ...string) string {
				out, errs, err := h.run(nil, env, junctor(t), "open", "--print", "--config", h.config)
				return fmt.Sprint(out, errs, err)
			}
			if got := open(); !strings.Contains(got, g.url) {
				t.Errorf("with the same values: %s", got)
			}
			if got := open("FAULT_ACCOUNT=mine"); strings.Contains(got, g.url) {
				t.Errorf("with another value the gateway is used: %s", got)
			}
		})
		row("why a reply stopped", func(t *testing.T) {
			for text, stop := range map[string]string{"again": "repetition", "steps": "max_steps"} {
				if got := g.chat(t, text); !strings.Contains(got, `"stop":"`+stop+`"`) {
					t.Errorf("a reply to %q ended with %s", text, got)
				}
			}
		})
		row("changed settings", func(t *testing.T) {
			edit(`,"toolRules":[{"pattern":"plain:echo","tags":["zymurgy"]}],"limits":{"maxBodyBytes":5000},"security":{"redact":["tango[0-9]+"]},"log":{"level":"trace","format":"text"},"store":{"timeoutMs":2345}`)
			g.eventually(t, "the smaller body", func() bool {
				return g.post("/call_tool", `{"server":"good","tool":"echo","arguments":{"text":"`+strings.Repeat("x", 5000)+`"}}`).status == http.StatusRequestEntityTooLarge
			})
			g.eventually(t, "what needs a restart", func() bool {
				return regexp.MustCompile(`next start only.*log\.format.*store\.timeoutMs`).MatchString(g.log.String())
			})
			g.eventually(t, "the new tag", func() bool { return strings.Contains(g.get("/tools?query=zymurgy").body, "plain") })
			if o := g.post("/call_tool", `{"server":"plain","tool":"stderr","arguments":{"text":"tango12345","count":1}}`); !o.ok() {
				t.Errorf("a call: %s", o)
			}
			if o := g.get("/logs?limit=1&server=plain&tool=stderr"); strings.Contains(o.body, "tango12345") {
				t.Errorf("the record: %s", o)
			}
			// The line of the call is written after those of its messages.
			g.eventually(t, "steps, messages, stderr and the call in the log", func() bool {
				log := g.log.String()
				return called(g.gateway, "stderr") > 0 && strings.Contains(log, `"msg":"call step"`) && strings.Contains(log, `"msg":"message sent"`) && strings.Contains(log, "line 0 eee")
			})
			if strings.Contains(g.log.String(), "tango12345") {
				t.Error("the log has what is redacted")
			}
			edit(`,"toolRules":[{"pattern":"plain:echo","tags":["other"]},{"pattern":"plain:guarded","approval":"ask"}]`)
			g.eventually(t, "the end of the old tag", func() bool { return !strings.Contains(g.get("/tools?query=zymurgy").body, "plain") })
		})
	})
	g.check(t, before, stop)

	if rest := g.endWhileAsking(t); !strings.Contains(rest, "the gateway is stopping") {
		t.Errorf("a call that waited for a person was answered with %s", rest)
	}
}

// endWhileAsking stops the gateway while a call waits for an approval, and
// returns the response that the caller gets.
func (g *faultFixture) endWhileAsking(t *testing.T) string {
	t.Helper()
	request := func(body string, header ...string) *http.Response {
		req, err := http.NewRequestWithContext(ctxFor(t), http.MethodPost, g.url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := faultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	session := request(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"faults","version":"1"}}}`)
	call := request(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_tool","arguments":{"server":"plain","tool":"guarded","arguments":{}}}}`,
		"Mcp-Session-Id", session.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-06-18")
	stream := bufio.NewReader(call.Body)
	for line := ""; !strings.Contains(line, "elicitation/create"); {
		var err error
		if line, err = stream.ReadString('\n'); err != nil {
			t.Fatalf("before the question: %q, %v", line, err)
		}
	}
	g.end()
	rest, err := io.ReadAll(stream)
	if err != nil {
		t.Errorf("after the question: %v", err)
	}
	return string(rest)
}

// chat sends one message and returns the last message of the reply.
func (g *faultFixture) chat(t *testing.T, text string) string {
	t.Helper()
	ctx := ctxFor(t)
	c, _, err := websocket.Dial(ctx, g.url+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	c.SetReadLimit(1 << 20)
	message, _ := json.Marshal(map[string]any{"type": "message", "payload": map[string]string{"text": text}})
	if err := c.Write(ctx, websocket.MessageText, message); err != nil {
		t.Fatal(err)
	}
	for {
		_, b, err := c.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), `"stop":`) {
			return string(b)
		}
	}
}
