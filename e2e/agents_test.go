package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/llm/llmtest"
)

// write puts a file into the home folder.
func (h *homeFolder) write(path, text string) string {
	h.t.Helper()
	path = filepath.Join(h.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// TestAgentsListServers: the agents' own lists report that the gateway is
// connected, over HTTP and over stdio. (Gemini sends no version header.)
func TestAgentsListServers(t *testing.T) {
	t.Parallel()
	claude, gemini := npm(t, "claude"), npm(t, "gemini")
	h := newHome(t, stdioConfig(t))
	g := h.serve().ready("everything")
	t.Run("claude", func(t *testing.T) {
		h.mustRun(nil, claude, "mcp", "add", "--transport", "http", "remote", g.url+"/mcp")
		h.mustRun(nil, claude, "mcp", "add", "local", "--", junctor(t), "mcp", "--config", h.config)
		listsConnected(t, h, claude)
	})
	t.Run("gemini", func(t *testing.T) {
		h.write(".gemini/settings.json", fmt.Sprintf(`{"security":{"folderTrust":{"enabled":false}},"mcpServers":{"remote":{"httpUrl":%q},"local":{"command":%q,"args":["mcp","--config",%q]}}}`, g.url+"/mcp", junctor(t), h.config))
		listsConnected(t, h, gemini)
	})
}

// listsConnected waits until an agent lists both servers as connected. It lists
// them repeatedly, because an agent may wait only seconds for a server.
func listsConnected(t *testing.T, h *homeFolder, agent string) {
	t.Helper()
	out := ""
	defer func() {
		if t.Failed() {
			t.Logf("%s mcp list:\n%s", agent, out)
		}
	}()
	eventually(t, "two connected servers", func() bool {
		out = h.mustRun([]string{startTimeout}, agent, "mcp", "list")
		return strings.Count(out, "Connected") == 2
	})
}

// startTimeout is how long Claude Code waits for a server, in milliseconds.
const startTimeout = "MCP_TIMEOUT=120000"

// agentScript is a model that finds a tool, reads its details, runs it and
// answers with the result.
func agentScript() llmtest.Script {
	results := func(n int) *int { return &n }
	call := func(tool, args string) llmtest.Reply {
		return llmtest.Reply{Calls: []llmtest.Call{{Tool: tool, Args: json.RawMessage(args)}}}
	}
	const task = "simple text"
	return llmtest.Script{
		Rules: []llmtest.Rule{
			{When: llmtest.When{History: task, Tool: "search_tools", Results: results(0)}, Reply: call("search_tools", `{"query":"simple text response"}`)},
			{When: llmtest.When{Result: "test_simple_text", Tool: "get_tool_details", Results: results(1)}, Reply: call("get_tool_details", `{"server":"everything","tool":"test_simple_text"}`)},
			{When: llmtest.When{Result: "inputSchema", Tool: "execute_tool", Results: results(2)}, Reply: call("execute_tool", `{"server":"everything","tool":"test_simple_text","arguments":{}}`)},
			{When: llmtest.When{Result: "simple text response", Results: results(3)}, Reply: llmtest.Reply{Text: "The tool said: {{result}}. ALL DONE"}},
		},
		Default: &llmtest.Reply{Text: "nothing to do"},
	}
}

// agentTask is a task for an agent. The agent connects to the gateway at url if
// that is set and the agent supports it, otherwise with junctor mcp and args.
type agentTask struct {
	prompt, model string
	url           string
	args          []string
}

// entry returns the gateway's entry in the configuration of an agent.
func (a agentTask) entry(t *testing.T, h *homeFolder, http map[string]any) string {
	entry := http
	if a.url == "" {
		entry = map[string]any{"command": junctor(t), "args": append([]string{"mcp", "--config", h.config}, a.args...)}
	}
	entry["trust"] = true // for Gemini CLI
	text, err := json.Marshal(map[string]any{"junctor": entry})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// agents maps the name of an agent to a function that runs it and returns its
// answer.
var agents = map[string]func(t *testing.T, h *homeFolder, a agentTask) string{
	"claude": func(t *testing.T, h *homeFolder, a agentTask) string {
		config := h.write("mcp.json", fmt.Sprintf(`{"mcpServers":%s}`, a.entry(t, h, map[string]any{"type": "http", "url": a.url})))
		env := []string{"ANTHROPIC_BASE_URL=" + a.model, "ANTHROPIC_API_KEY=sk-test", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false", startTimeout}
		return h.mustRun(env, npm(t, "claude"), "-p", a.prompt, "--mcp-config", config, "--strict-mcp-config", "--allowedTools", "mcp__junctor", "--model", "claude-sonnet-4-5", "--max-turns", "10")
	},
	"gemini": func(t *testing.T, h *homeFolder, a agentTask) string {
		h.write(".gemini/settings.json", fmt.Sprintf(`{"security":{"folderTrust":{"enabled":false},"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"disableAutoUpdate":true},"mcpServers":%s}`, a.entry(t, h, map[string]any{"httpUrl": a.url})))
		env := []string{"GOOGLE_GEMINI_BASE_URL=" + a.model, "GEMINI_API_KEY=test"}
		return h.mustRun(env, npm(t, "gemini"), "-p", a.prompt, "--approval-mode", "yolo", "-m", "gemini-test")
	},
	"codex": func(t *testing.T, h *homeFolder, a agentTask) string {
		args, err := json.Marshal(append([]string{"mcp", "--config", h.config}, a.args...))
		if err != nil {
			t.Fatal(err)
		}
		h.write(".codex/config.toml", fmt.Sprintf(`
model = "gpt-test"
model_provider = "scripted"
approval_policy = "never"
[model_providers.scripted]
name = "scripted"
base_url = "%s/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
[mcp_servers.junctor]
command = %q
args = %s
startup_timeout_sec = 120
`, a.model, junctor(t), args))
		env := []string{"SCRIPTED_KEY=test", "CODEX_HOME=" + filepath.Join(h.dir, ".codex")}
		return h.mustRun(env, npm(t, "codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", a.prompt)
	},
}

// answered checks the answer of an agent.
func answered(t *testing.T, out string, model *llmtest.Server, want ...string) {
	t.Helper()
	for _, text := range want {
		if strings.Contains(out, text) {
			continue
		}
		t.Errorf("the agent did not say %q:\n%s", text, out)
		for i, r := range model.Requests() {
			t.Logf("request %d: %s %.1500s", i, r.Path, r.Body)
		}
		return
	}
}

// called returns how many calls of a tool the gateway has logged.
func called(g *gateway, tool string) int {
	n := 0
	for line := range strings.Lines(g.log.String()) {
		if strings.Contains(line, `"tool":"`+tool+`"`) && strings.Contains(line, "call done") {
			n++
		}
	}
	return n
}

// TestAgentLoop runs whole agents with a scripted model: they search, read the
// details, execute, and answer with the result.
func TestAgentLoop(t *testing.T) {
	t.Parallel()
	for name, run := range agents {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, agentScript())
			h := newHome(t, stdioConfig(t))
			g := h.serve().ready("everything")
			out := run(t, h, agentTask{prompt: "Use the junctor tools to get the simple text, and tell me what it says.", model: model.URL, url: g.url + "/mcp"})
			answered(t, out, model, "ALL DONE", "simple text response")
			eventually(t, "the call in the log", func() bool { return called(g, "test_simple_text") > 0 })
			if n := called(g, "test_simple_text"); n != 1 {
				t.Errorf("%d calls of the tool", n)
			}
		})
	}
}

// TestAgentsInCodeMode: in code mode the agents make thirty calls to three
// servers with one run_code.
func TestAgentsInCodeMode(t *testing.T) {
	t.Parallel()
	const engine = "../internal/script/engine/dist/quickjs.wasm.gz"
	if _, err := os.Stat(engine); err != nil {
		unmet(t, "the script engine is not built; run make engine")
	}
	code, err := json.Marshal(map[string]string{"code": `const servers: string[] = ["one", "two", "three"]
const texts = await Promise.all(Array.from({ length: 30 }, (_, i) => tools.call(servers[i % 3] + ":test_simple_text", {})))
return texts.length + " calls, " + new Set(texts).size + " text: " + texts[29]`})
	if err != nil {
		t.Fatal(err)
	}
	none := 0
	model := llmtest.Start(t, llmtest.Script{
		Rules: []llmtest.Rule{
			{When: llmtest.When{History: "thirty times", Tool: "run_code", Results: &none}, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "run_code", Args: code}}}},
			{When: llmtest.When{Result: "30 calls"}, Reply: llmtest.Reply{Text: "The script said: {{result}}. ALL DONE"}},
		},
		Default: &llmtest.Reply{Text: "nothing to do"},
	})
	h := newHome(t, fmt.Sprintf(`{"mcpServers":{"one":{"command":%[1]q},"two":{"command":%[1]q},"three":{"command":%[1]q}}}`, everything(t)))
	g := h.serve().ready("one", "two", "three")
	for name, run := range agents {
		t.Run(name, func(t *testing.T) {
			calls, scripts := called(g, "test_simple_text"), called(g, "run_code")
			out := run(t, h, agentTask{prompt: "Get the simple text thirty times, and tell me what it says.", model: model.URL, args: []string{"--mode", "code"}})
			answered(t, out, model, "ALL DONE", "30 calls, 1 text: This is a simple text response")
			// The log line of the script is written last.
			eventually(t, "the script in the log", func() bool { return called(g, "run_code") > scripts })
			calls, scripts = called(g, "test_simple_text")-calls, called(g, "run_code")-scripts
			if calls != 30 || scripts != 1 {
				t.Errorf("%d calls in %d scripts", calls, scripts)
			}
		})
	}
}
