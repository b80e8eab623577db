package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"junctor/internal/address/addresstest"
	"junctor/internal/llm/llmtest"
)

// chooses returns a rule by which the model makes a call if it receives the
// query and the tool.
func chooses(query, tool, args string) llmtest.Rule {
	return llmtest.Rule{
		When:  llmtest.When{User: "Query: " + query + "\n", Tool: tool},
		Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: tool, Args: json.RawMessage(args)}}},
	}
}

func declines(query, reason string) llmtest.Rule {
	return chooses(query, "agentify:decline", fmt.Sprintf(`{"reason":%q}`, reason))
}

// runIn is run with a working folder other than the home folder.
func (h *homeFolder) runIn(dir string, stdin io.Reader, env []string, name string, args ...string) (stdout, stderr string, err error) {
	h.t.Helper()
	cmd := exec.CommandContext(ctxFor(h.t), name, args...)
	cmd.Env, cmd.Dir, cmd.Stdin = h.env(env...), dir, stdin
	cmd.WaitDelay = time.Minute
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// nodeModule returns the path of a file in an npm package.
func nodeModule(t testing.TB, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"node_modules"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		unmet(t, filepath.Join(parts...)+" is missing; run npm ci in e2e")
	}
	return path
}

// TestAgentifyEditor runs the whole protocol with an editor's own JSON-RPC
// library and the options of the specification's example: the reference file
// system server on two folders. (The example's second backend needs an account.
// Here its program does not exist, which must have no other effect.)
func TestAgentifyEditor(t *testing.T) {
	t.Parallel()
	node, _ := suiteNode(t)
	nodeModule(t, "vscode-jsonrpc", "package.json")
	const key = "sk-PASSED_VIA_INIT_OPTIONS_IF_NOT_IN_ENV_OR_OVERRIDE"
	for name, tt := range map[string]struct {
		env     string   // OPENAI_API_KEY of the environment
		expect  string   // the key that the model must receive
		command []string // of the file system server
	}{
		"key of the options":     {"", key, []string{"npx", "-y", "@modelcontextprotocol/server-filesystem"}},
		"key of the environment": {"sk-from-the-environment", "sk-from-the-environment", []string{node, nodeModule(t, "@modelcontextprotocol", "server-filesystem", "dist", "index.js")}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, `{}`)
			one, two := filepath.Join(h.dir, "TestPoCDir1"), filepath.Join(h.dir, "TestPoCDir2")
			h.write("TestPoCDir1/notes.txt", "remember the milk\n")
			if err := os.Mkdir(two, 0o700); err != nil {
				t.Fatal(err)
			}
			selection := "first line \"quoted\"\n\tsecond ümlaut 😀\n" + strings.Repeat("and so on. ", 2000)
			slow := declines("take your time", "done at last")
			slow.Reply.StallAfter = -1
			model := llmtest.Start(t, llmtest.Script{Key: tt.expect, Rules: []llmtest.Rule{
				chooses("read notes.txt", "filesystem:read_text_file", `{"path":"notes.txt"}`),
				chooses("save the selection to the other folder", "filesystem:write_file", fmt.Sprintf(`{"path":%q,"content":"${context.selectionText}"}`, filepath.Join(two, "saved.txt"))),
				chooses("read the password file", "filesystem:read_text_file", `{"path":"/etc/passwd"}`),
				declines("delete it", "It is not clear what should be deleted."),
				slow,
			}})
			port := addresstest.UnusedPort(t)
			setup, err := json.Marshal(map[string]any{
				"command": junctor(t), "args": []string{"agentify"}, "folders": []string{one, two}, "selection": selection,
				"options": map[string]any{
					"logLevel":       "debug",
					"OPENAI_API_KEY": key,
					"DEBUG_PORT":     port,
					"backends": []any{
						map[string]any{"id": "filesystem", "type": "stdio", "command": tt.command[0], "args": append(slices.Clone(tt.command[1:]), one, two)},
						map[string]any{"id": "mcpBrowserbase", "type": "stdio", "command": "no-npx-here", "args": []string{"-y", "@smithery/cli@latest", "run", "@browserbasehq/mcp-browserbase", "--key", "bb_api_YOUR_KEY_FROM_USER_CONFIG"}},
					},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			env := []string{"OPENAI_BASE_URL=" + model.URL + "/v1", "npm_config_offline=true"}
			if tt.env != "" {
				env = append(env, "OPENAI_API_KEY="+tt.env)
			}
			// In e2e npx finds the server that npm installed.
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			stdout, stderr, err := h.runIn(here, nil, env, node, "testdata/agentify.mjs", string(setup))
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
			}
			var got map[string]json.RawMessage
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatalf("%v: %s", err, stdout)
			}
			saved, err := os.ReadFile(filepath.Join(two, "saved.txt"))
			if err != nil || string(saved) != selection {
				t.Errorf("saved %.60q, %v", saved, err)
			}
			for what, wants := range map[string][]string{
				"early":      {`-32001`},
				"badOptions": {`-32602`, `logLevel`, `DEBUG_PORT`, `backends`, `a b`, `command`},
				"stillEarly": {`-32001`},
				"initialize": {`"serverInfo":{`, `"capabilities":{`},
				"read":       {`remember the milk`},
				"plan":       {`"backendId":"filesystem"`, `"mcpMethod":"tools/call"`, `"mcpParams":{`, `"name":"write_file"`, `"reason":`},
				"write":      {`Successfully wrote`},
				"ambiguous":  {`-32000`, `not clear what should be deleted`, `"query":"delete it"`, `"suggestions":[{"tool":"filesystem:`},
				"denied":     {`"isError":true`, `ccess denied`},
				"invalid":    {`-32602`, `/query`, `/context/activeDocumentURI`},
				"large":      {`-32602`, `/query`},
				"cancelled":  {`-32800`},
				"parallel":   {`4`},
				"shutdown":   {`null`},
				"late":       {`-32600`},
				"exit":       {`0`},
				"foreign":    {`403`},
				"problems":   {`[]`},
				"debug": {
					`"/api/status":"200`, `"/api/backends":"200`, `\"id\":\"filesystem\"`, `\"isReady\":true`, `\"isReady\":false`,
					`"/api/config":"200`, `[redacted]`, `"/api/logs":"200`, `task planned`, `"/api/mcptrace":"200`,
					`\"direction\":\"OUTGOING_FROM_GATEWAY\"`, `\"backendId\":\"filesystem\"`, `agentify/candidates`, `agentify/modelAnswer`, `"/":"200`,
					`"/ws/logs":[{"timestamp":`, `"/ws/mcptrace":[{"timestamp":`,
				},
			} {
				for _, want := range wants {
					if !strings.Contains(string(got[what]), want) {
						t.Errorf("%s: nothing of %s in %.2000s", what, want, got[what])
					}
				}
			}
			for where, text := range map[string]string{"the log": stderr, "the answers": stdout} {
				for _, secret := range []string{key, "sk-from-the-environment", "bb_api_YOUR_KEY"} {
					if strings.Contains(text, secret) {
						t.Errorf("%s shows %s", where, secret)
					}
				}
			}
		})
	}
}

// TestAgentifyPlainMCPClient: the same program is a correct MCP server, too.
func TestAgentifyPlainMCPClient(t *testing.T) {
	t.Parallel()
	node, _ := suiteNode(t)
	nodeModule(t, "@modelcontextprotocol", "client", "package.json")
	model := llmtest.Start(t, llmtest.Script{Rules: []llmtest.Rule{
		chooses("how much is six times seven?", "junctor:calculate", `{"expression":"6*7"}`),
		declines("bake a cake", "Nothing here bakes."),
	}})
	h := newHome(t, fmt.Sprintf(`{"llm":{"provider":"openai","model":"scripted","apiKey":"sk-test","baseUrl":%q}}`, model.URL+"/v1"))
	program, err := json.Marshal([]string{junctor(t), "agentify", "--config", h.config})
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, era := range []string{"legacy", "auto", "2026-07-28"} {
		t.Run(era, func(t *testing.T) {
			stdout, stderr, err := h.runIn(here, nil, nil, node, "testdata/agentify-mcp.mjs", string(program), era)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			for _, want := range []string{`"tools":["orchestrate_task"]`, `"text":"42"`, `\"backendId\":\"junctor\"`, `Nothing here bakes`, `"isError":true`} {
				if !strings.Contains(stdout, want) {
					t.Errorf("nothing of %s in %s", want, stdout)
				}
			}
		})
	}
}
