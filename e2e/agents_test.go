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

// The agents themselves say whether they can reach the gateway, over HTTP and
// as a program of their own. (Gemini's sends no version header.)
func TestAgentsListServers(t *testing.T) {
	t.Parallel()
	claude, gemini := npm(t, "claude"), npm(t, "gemini")
	h := newHome(t, stdioConfig(t))
	g := h.serve().ready("everything")
	t.Run("claude", func(t *testing.T) {
		h.mustRun(nil, claude, "mcp", "add", "--transport", "http", "remote", g.url+"/mcp")
		h.mustRun(nil, claude, "mcp", "add", "local", "--", junctor(t), "mcp", "--config", h.config)
		out := h.mustRun(nil, claude, "mcp", "list")
		if strings.Count(out, "Connected") != 2 {
			t.Errorf("claude mcp list:\n%s", out)
		}
	})
	t.Run("gemini", func(t *testing.T) {
		h.write(".gemini/settings.json", fmt.Sprintf(`{"security":{"folderTrust":{"enabled":false}},"mcpServers":{"remote":{"httpUrl":%q},"local":{"command":%q,"args":["mcp","--config",%q]}}}`, g.url+"/mcp", junctor(t), h.config))
		out := h.mustRun(nil, gemini, "mcp", "list")
		if strings.Count(out, "Connected") != 2 {
			t.Errorf("gemini mcp list:\n%s", out)
		}
	})
}

// agentScript is a model that finds a tool, reads about it, runs it and
// answers with what it said.
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

// Whole agents with a scripted model: they search, read the details, execute,
// and answer with what came back.
func TestAgentLoop(t *testing.T) {
	t.Parallel()
	const prompt = "Use the junctor tools to get the simple text, and tell me what it says."
	for name, run := range map[string]func(t *testing.T, h *homeFolder, g *gateway, model string) string{
		"claude": func(t *testing.T, h *homeFolder, g *gateway, model string) string {
			config := h.write("mcp.json", fmt.Sprintf(`{"mcpServers":{"junctor":{"type":"http","url":%q}}}`, g.url+"/mcp"))
			env := []string{"ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=sk-test", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false"}
			return h.mustRun(env, npm(t, "claude"), "-p", prompt, "--mcp-config", config, "--strict-mcp-config", "--allowedTools", "mcp__junctor", "--model", "claude-sonnet-4-5", "--max-turns", "10")
		},
		"gemini": func(t *testing.T, h *homeFolder, g *gateway, model string) string {
			h.write(".gemini/settings.json", fmt.Sprintf(`{"security":{"folderTrust":{"enabled":false},"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"disableAutoUpdate":true},"mcpServers":{"junctor":{"httpUrl":%q,"trust":true}}}`, g.url+"/mcp"))
			env := []string{"GOOGLE_GEMINI_BASE_URL=" + model, "GEMINI_API_KEY=test", "GEMINI_CLI_NO_RELAUNCH=true"}
			return h.mustRun(env, npm(t, "gemini"), "-p", prompt, "--approval-mode", "yolo", "-m", "gemini-test")
		},
		"codex": func(t *testing.T, h *homeFolder, g *gateway, model string) string {
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
args = ["mcp", "--config", %q]
`, model, junctor(t), h.config))
			env := []string{"SCRIPTED_KEY=test", "CODEX_HOME=" + filepath.Join(h.dir, ".codex")}
			return h.mustRun(env, npm(t, "codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt)
		},
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, agentScript())
			h := newHome(t, stdioConfig(t))
			g := h.serve().ready("everything")
			out := run(t, h, g, model.URL)
			if !strings.Contains(out, "ALL DONE") || !strings.Contains(out, "simple text response") {
				t.Errorf("the agent said:\n%s", out)
				for i, r := range model.Requests() {
					t.Logf("request %d: %s %.1500s", i, r.Path, r.Body)
				}
			}
			var calls int
			for line := range strings.Lines(g.log.String()) {
				if strings.Contains(line, `"tool":"test_simple_text"`) && strings.Contains(line, "call done") {
					calls++
				}
			}
			if calls != 1 {
				t.Errorf("%d calls of the tool", calls)
			}
		})
	}
}
