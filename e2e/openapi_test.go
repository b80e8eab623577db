package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"junctor/internal/llm/llmtest"
)

// TestOpenAPIUpstreams uses two HTTP services as upstreams: another gateway
// with the document that it publishes, and GitHub with its complete document.
func TestOpenAPIUpstreams(t *testing.T) {
	t.Parallel()
	github := githubDocument(t)
	service := newHome(t, `{"builtin":true}`).serve().ready("junctor")
	none := 0
	model := llmtest.Start(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "six times seven", Results: &none}, Reply: llmtest.Reply{Calls: []llmtest.Call{{
			Tool: "tools:search", Args: json.RawMessage(`{"query":"call a tool","server":"other"}`),
		}}}},
		{When: llmtest.When{Result: `other:callTool`}, Reply: llmtest.Reply{Calls: []llmtest.Call{{
			Tool: "tools:execute", Args: json.RawMessage(`{"tool":"other:callTool","arguments":{"server":"junctor","tool":"calculate","arguments":{"expression":"6*7"}}}`),
		}}}},
		{When: llmtest.When{Result: `"result":"42"`}, Reply: llmtest.Reply{Text: "The other gateway says: forty-two."}},
	}})
	h := newHome(t, fmt.Sprintf(`{"mcpServers":{
		"other":{"openapi":%q},
		"github":{"openapi":%q,"credentials":{"nonsense":"unused"}}},
		"llm":{"provider":"openai","model":"scripted","apiKey":"sk-test","baseUrl":%q}}`, service.url+"/openapi.json", github, model.URL+"/v1"))
	gw := h.serve().ready("other", "github")
	if out := h.mustRun(nil, junctor(t), "--config", h.config, "chat", "how much is six times seven?"); !strings.Contains(out, "The other gateway says: forty-two.") {
		t.Errorf("a session with a model that uses the other gateway: %s", out)
	}

	call := func(arguments string) string {
		t.Helper()
		resp, err := http.Post(gw.url+"/call_tool", "application/json", strings.NewReader(`{"server":"other","tool":"callTool","arguments":`+arguments+`}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if out := call(`{"server":"junctor","tool":"calculate","arguments":{"expression":"6*7"}}`); !strings.Contains(out, `"result":"42"`) {
		t.Errorf("a call through the other gateway: %s", out)
	}
	if out := call(`{"server":"junctor","tool":"nonsense","arguments":{}}`); !strings.Contains(out, "404 Not Found") || !strings.Contains(out, `"isError":true`) {
		t.Errorf("a refused call: %s", out)
	}

	// The operation is among the first three hits for common requests.
	for query, want := range map[string]string{
		"close an issue": "issues_update", "add a label": "issues_add-labels", "open a new issue": "issues_create",
		"create a pull request": "pulls_create", "merge a pull request": "pulls_merge", "list open pull requests": "pulls_list",
		"star a repository": "activity_star-repo-for-authenticated-user", "fork a repository": "repos_create-fork",
		"create a release": "repos_create-release", "list commits": "repos_list-commits",
	} {
		resp, err := http.Get(gw.url + "/tools?limit=3&query=" + url.QueryEscape(query))
		if err != nil {
			t.Fatal(err)
		}
		found, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(found), `"`+want+`"`) {
			t.Errorf("%q does not find %s: %v, %.600s", query, want, err, found)
		}
	}
	if runtime.GOOS == "linux" {
		t.Logf("resident memory with GitHub's document: %d MB, without: %d MB", gw.residentMB(), service.residentMB())
	}
}

// githubDocument returns the path of GitHub's OpenAPI document, which
// scripts/setup installs.
func githubDocument(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("node_modules", ".github-openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		unmet(t, "GitHub's OpenAPI document is missing; run make setup")
	}
	return path
}

func (g *gateway) residentMB() int {
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(g.cmd.Process.Pid)).Output()
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	return n >> 10
}
