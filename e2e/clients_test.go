//lint:file-ignore SA1019 sampling is deprecated and still in use: the gateway must carry it

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"junctor/internal/mcp"
)

var metaTools = []string{"execute_tool", "get_tool_details", "list_mcp_servers", "list_tools", "search_tools"}

var allVersions = []string{mcp.Version20241105, mcp.Version20250326, mcp.Version20250618, mcp.Version20251125, mcp.Version20260728}

// sdkClient is the official Go client, which answers all requests of servers.
func sdkClient(progress func(float64)) *sdk.Client {
	return sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"username": "ann", "email": "ann@example.com", "name": "ann"}}, nil
		},
		CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			return &sdk.CreateMessageResult{Model: "scripted", Role: "assistant", Content: &sdk.TextContent{Text: "sampled words"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			if progress != nil {
				progress(r.Params.Progress)
			}
		},
	})
}

func textOf(r *sdk.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// TestGoSDKClient runs the official Go client, in every version of the
// protocol, over HTTP and stdio, with upstreams of both eras: it lists,
// searches and calls tools, receives progress, and answers requests during
// calls.
func TestGoSDKClient(t *testing.T) {
	t.Parallel()
	h := newHome(t, fmt.Sprintf(`{"mcpServers":{"modern":{"command":%q},"legacy":{"url":%q}}}`, everything(t), sessions(t)))
	g := h.serve().ready("modern", "legacy")
	for _, version := range allVersions {
		for _, transport := range []string{"HTTP", "stdio"} {
			t.Run(version+" "+transport, func(t *testing.T) {
				ctx := ctxFor(t)
				var mu sync.Mutex
				var heard []float64
				client := sdkClient(func(p float64) {
					mu.Lock()
					defer mu.Unlock()
					heard = append(heard, p)
				})
				connect := func(path string, args ...string) *sdk.ClientSession {
					var tr sdk.Transport = &sdk.StreamableClientTransport{Endpoint: g.url + path}
					if transport == "stdio" {
						cmd := exec.Command(junctor(t), append([]string{"mcp", "--config", h.config}, args...)...)
						cmd.Env = h.env()
						tr = &sdk.CommandTransport{Command: cmd}
					}
					s, err := client.Connect(ctx, tr, &sdk.ClientSessionOptions{ProtocolVersion: version})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { s.Close() })
					return s
				}
				s := connect("/mcp")
				tools, err := s.ListTools(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, tool := range tools.Tools {
					names = append(names, tool.Name)
				}
				if slices.Sort(names); !slices.Equal(names, metaTools) {
					t.Errorf("tools = %v", names)
				}
				execute := func(server, tool string, token any) *sdk.CallToolResult {
					arguments := map[string]any{}
					switch tool {
					case "test_elicitation":
						arguments["message"] = "who?"
					case "test_sampling":
						arguments["prompt"] = "say something"
					}
					params := &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"server": server, "tool": tool, "arguments": arguments}}
					if token != nil {
						params.SetProgressToken(token)
					}
					r, err := s.CallTool(ctx, params)
					if err != nil {
						t.Fatalf("%s:%s: %v", server, tool, err)
					}
					return r
				}
				for _, server := range []string{"modern", "legacy"} {
					if r := execute(server, "test_image_content", nil); r.IsError || len(r.Content) != 1 {
						t.Errorf("%s: image = %+v", server, r)
					} else if _, ok := r.Content[0].(*sdk.ImageContent); !ok {
						t.Errorf("%s: image is a %T", server, r.Content[0])
					}
					execute(server, "test_tool_with_progress", "p-"+server)
				}
				// An upstream of the handshake era sends requests during the
				// call, whichever version the client uses.
				if got := textOf(execute("legacy", "test_elicitation", nil)); !strings.Contains(got, "ann") {
					t.Errorf("elicitation = %s", got)
				}
				if got := textOf(execute("legacy", "test_sampling", nil)); !strings.Contains(got, "sampled words") {
					t.Errorf("sampling = %s", got)
				}
				// An upstream of the stateless era requests input with its
				// result.
				if got := execute("modern", "test_input_required_result_elicitation", nil); got.IsError || textOf(got) == "" {
					t.Errorf("input required = %+v", textOf(got))
				}
				mu.Lock()
				if len(heard) < 4 {
					t.Errorf("progress = %v", heard)
				}
				mu.Unlock()
				direct, single := connect("/mcp?mode=direct", "--mode", "direct"), connect("/mcp/legacy", "--server", "legacy")
				if r, err := direct.CallTool(ctx, &sdk.CallToolParams{Name: "modern__test_simple_text"}); err != nil || r.IsError {
					t.Errorf("direct: %+v, %v", r, err)
				}
				if r, err := single.CallTool(ctx, &sdk.CallToolParams{Name: "test_simple_text"}); err != nil || r.IsError {
					t.Errorf("transparent: %+v, %v", r, err)
				}
				if r, err := direct.ListResources(ctx, nil); err != nil || len(r.Resources) == 0 {
					t.Errorf("resources: %+v, %v", r, err)
				}
			})
		}
	}
}

// TestSSEClient: clients that support only the SSE transport of 2024-11-05
// work.
func TestSSEClient(t *testing.T) {
	t.Parallel()
	h := newHome(t, stdioConfig(t))
	g := h.serve().ready("everything")
	for _, path := range []string{"/mcp", "/mcp?mode=direct", "/mcp/everything"} {
		ctx := ctxFor(t)
		s, err := sdkClient(nil).Connect(ctx, &sdk.SSEClientTransport{Endpoint: g.url + path}, &sdk.ClientSessionOptions{ProtocolVersion: mcp.Version20241105})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if tools, err := s.ListTools(ctx, nil); err != nil || len(tools.Tools) < 5 {
			t.Errorf("%s: tools = %+v, %v", path, tools, err)
		}
		s.Close()
	}
}

// TestTypeScriptClient runs the official TypeScript client in both eras, over
// HTTP and stdio.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	npm(t, "mcp-remote") // the packages are installed
	script, err := filepath.Abs("testdata/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	h := newHome(t, fmt.Sprintf(`{"mcpServers":{"everything":{"url":%q}}}`, sessions(t)))
	g := h.serve().ready("everything")
	stdio, _ := json.Marshal([]string{junctor(t), "mcp", "--config", h.config})
	node, _ := suiteNode(t)
	for _, target := range []string{g.url + "/mcp", string(stdio)} {
		for era, version := range map[string]string{"legacy": mcp.Version20251125, "auto": mcp.Version20260728, mcp.Version20260728: mcp.Version20260728} {
			t.Run(era, func(t *testing.T) {
				out, errs, err := h.run(nil, nil, node, script, target, era)
				if err != nil {
					t.Fatalf("%v\n%s\n%s", err, out, errs)
				}
				var got struct {
					Version, Server, Instructions, Search, Image, Elicit string
					Tools                                                []string
					Progress                                             []float64
					Failure                                              bool
				}
				if err := json.Unmarshal([]byte(out), &got); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				slices.Sort(got.Tools)
				if got.Version != version || got.Server != "junctor" || !slices.Equal(got.Tools, metaTools) || got.Image != "image" || !got.Failure ||
					!strings.Contains(got.Instructions, "everything") || !strings.Contains(got.Search, "test_image_content") || !strings.Contains(got.Elicit, "ann") || len(got.Progress) < 2 {
					t.Errorf("got %s", out)
				}
			})
		}
	}
}

// TestInspector runs the inspector's command line in both eras and every view,
// and with automatic detection of the era.
func TestInspector(t *testing.T) {
	t.Parallel()
	inspector := npm(t, "mcp-inspector")
	h := newHome(t, stdioConfig(t))
	g := h.serve().ready("everything")
	for _, era := range []string{"legacy", "modern", "auto"} {
		t.Run(era, func(t *testing.T) {
			call := func(url string, args ...string) string {
				t.Helper()
				return h.mustRun(nil, inspector, append([]string{"--cli", url, "--transport", "http", "--protocol-era", era, "--format", "json"}, args...)...)
			}
			if out := call(g.url+"/mcp", "--method", "tools/call", "--tool-name", "execute_tool", "--tool-args-json", `{"server":"everything","tool":"test_simple_text","arguments":{}}`); !strings.Contains(out, "simple text response") {
				t.Errorf("execute_tool = %s", out)
			}
			if era == "auto" { // from here on the same as one of the others
				return
			}
			if out := call(g.url+"/mcp", "--method", "tools/list"); !strings.Contains(out, "search_tools") {
				t.Errorf("tools/list = %s", out)
			}
			if out := call(g.url+"/mcp?mode=direct", "--method", "tools/list"); !strings.Contains(out, "everything__test_simple_text") {
				t.Errorf("direct tools/list = %s", out)
			}
			if out := call(g.url+"/mcp?mode=direct", "--method", "resources/read", "--uri", "test://static-text"); !strings.Contains(out, "static text resource") {
				t.Errorf("direct resources/read = %s", out)
			}
			if out := call(g.url+"/mcp/everything", "--method", "prompts/get", "--prompt-name", "test_simple_prompt"); !strings.Contains(out, "simple prompt") {
				t.Errorf("transparent prompts/get = %s", out)
			}
		})
	}
	t.Run("stdio", func(t *testing.T) {
		out := h.mustRun([]string{"JUNCTOR_CONFIG=" + h.config}, inspector, "--cli", junctor(t), "mcp", "-e", "JUNCTOR_CONFIG="+h.config, "--method", "tools/list", "--format", "json")
		if !strings.Contains(out, "get_tool_details") {
			t.Errorf("tools/list = %s", out)
		}
	})
}

// TestMCPRemote: a client that supports only stdio reaches the gateway through
// mcp-remote.
func TestMCPRemote(t *testing.T) {
	t.Parallel()
	remote := npm(t, "mcp-remote")
	h := newHome(t, stdioConfig(t))
	g := h.serve().ready("everything")
	cmd := exec.Command(remote, g.url+"/mcp", "--allow-http")
	cmd.Env, cmd.Dir = h.env(), h.dir
	ctx := ctxFor(t)
	s, err := sdkClient(nil).Connect(ctx, &sdk.CommandTransport{Command: cmd}, &sdk.ClientSessionOptions{ProtocolVersion: mcp.Version20251125})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"server": "everything", "tool": "test_simple_text", "arguments": map[string]any{}}})
	if err != nil || !strings.Contains(textOf(r), "simple text response") {
		t.Errorf("execute_tool = %+v, %v", r, err)
	}
}
