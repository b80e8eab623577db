package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/address/addresstest"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// npmServer returns the command line of a server that npm installed.
func npmServer(t *testing.T, name string) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs npm packages; not in make test-fast")
	}
	path, err := filepath.Abs("../../e2e/node_modules/@modelcontextprotocol/" + name + "/dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	_, nodeErr := exec.LookPath("node")
	if _, err := os.Stat(path); err != nil || nodeErr != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing; run npm ci in e2e", name)
		}
		t.Skipf("%s is missing; run npm ci in e2e", name)
	}
	return []string{"node", path}
}

// spawn starts a server on stdio and connects to it.
func spawn(t *testing.T, o Options, argv ...string) *Client {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "MEMORY_FILE_PATH="+filepath.Join(t.TempDir(), "memory.json"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o.DiscoverTimeout = time.Minute
	c, err := Connect(t.Context(), OverLink(mcp.NewStream(out, in, mcp.StreamOptions{})), o)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() {
		c.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return c
}

func callTool(t *testing.T, c *Client, name, arguments string, ex tool.Exchange) string {
	t.Helper()
	params := fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"progressToken":"tok"}}`, name, arguments)
	result, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Params: json.RawMessage(params), Exchange: ex})
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return string(result)
}

// everything exercises server-everything on any transport.
func everything(t *testing.T, c *Client) {
	t.Helper()
	if info := c.Info(); info.Name == "" || info.Protocol != mcp.Version20251125 || rawjson.Field(info.Capabilities, "tools") == nil {
		t.Errorf("Info = %+v", info)
	}
	if got := callTool(t, c, "echo", `{"message":"hällo"}`, tool.Exchange{}); !strings.Contains(got, "hällo") {
		t.Errorf("echo = %s", got)
	}
	var progress []string
	got := callTool(t, c, "trigger-long-running-operation", `{"duration":0.05,"steps":5}`, tool.Exchange{Notify: func(method string, params json.RawMessage) {
		if method == "notifications/progress" { // the server may log something meanwhile
			progress = append(progress, rawjson.FieldString(params, "progressToken")+string(rawjson.Field(params, "progress")))
		}
	}})
	if want := "tok1 tok2 tok3 tok4 tok5"; strings.Join(progress, " ") != want || !strings.Contains(got, "completed") {
		t.Errorf("long operation = %s with %q, want %s", got, progress, want)
	}
	var asked atomic.Bool
	got = callTool(t, c, "trigger-sampling-request", `{"prompt":"hi","maxTokens":10}`, tool.Exchange{Ask: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
		if method == "roots/list" { // asked once, some time after the handshake
			return json.RawMessage(`{"roots":[]}`), nil
		}
		asked.Store(method == "sampling/createMessage")
		return json.RawMessage(`{"role":"assistant","content":{"type":"text","text":"sampled words"},"model":"m"}`), nil
	}})
	if !asked.Load() || !strings.Contains(got, "sampled words") {
		t.Errorf("sampling asked: %t, and gave %s", asked.Load(), got)
	}
	result, err := c.Do(t.Context(), tool.Request{Method: "resources/list"})
	if err != nil || rawjson.Field(result, "resources") == nil {
		t.Errorf("resources/list = %.200s, %v", result, err)
	}
	result, err = c.Do(t.Context(), tool.Request{Method: "prompts/list"})
	if err != nil || rawjson.Field(result, "prompts") == nil {
		t.Errorf("prompts/list = %.200s, %v", result, err)
	}
}

func TestServerEverythingStdio(t *testing.T) {
	everything(t, spawn(t, testOptions(), append(npmServer(t, "server-everything"), "stdio")...))
}

func TestServerEverythingHTTP(t *testing.T) {
	for mode, path := range map[string]string{"streamableHttp": "/mcp", "sse": "/sse"} {
		t.Run(mode, func(t *testing.T) {
			argv := append(npmServer(t, "server-everything"), mode)
			port := addresstest.UnusedPort(t)
			cmd := exec.CommandContext(context.WithoutCancel(t.Context()), argv[0], argv[1:]...)
			cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			url := fmt.Sprintf("http://127.0.0.1:%d%s", port, path)
			c := connectWhenUp(t, NewHTTP(HTTPOptions{URL: url}), testOptions())
			everything(t, c)
			c.Close()
			if mode == "sse" {
				c := connectWhenUp(t, NewSSE(HTTPOptions{URL: url}), testOptions())
				everything(t, c)
				c.Close()
			}
		})
	}
}

// connectWhenUp connects to a server that is still starting.
func connectWhenUp(t *testing.T, transport Transport, o Options) *Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		c, err := Connect(ctx, transport, o)
		if err == nil {
			return c
		}
		if !strings.Contains(err.Error(), "refused") || sleep(ctx, 50*time.Millisecond) != nil {
			t.Fatalf("Connect: %v", err)
		}
	}
}

func TestServerFilesystem(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("twenty digits: 12345678901234567890"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := spawn(t, testOptions(), append(npmServer(t, "server-filesystem"), dir)...)
	if got := callTool(t, c, "read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "a.txt")), tool.Exchange{}); !strings.Contains(got, "12345678901234567890") {
		t.Errorf("read = %s", got)
	}
}

func TestServerMemory(t *testing.T) {
	c := spawn(t, testOptions(), npmServer(t, "server-memory")...)
	callTool(t, c, "create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["counts"]}]}`, tool.Exchange{})
	if got := callTool(t, c, "read_graph", `{}`, tool.Exchange{}); !strings.Contains(got, "Ada") {
		t.Errorf("graph = %s", got)
	}
}
