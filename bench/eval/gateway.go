package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/search/searchtest"
	"junctor/internal/tool"
)

// startTimeout is how long a gateway may take to connect to all upstreams.
const startTimeout = 3 * time.Minute

// gateway is a ranker that calls search_tools of a running gateway over MCP,
// like an agent. The upstreams with the tools of the set are served by this
// program.
type gateway struct {
	client    *mcpclient.Client
	program   *exec.Cmd
	upstreams *http.Server
	folder    string
}

// buildGateway returns a function that starts a gateway from a program.
func buildGateway(program string) func(*searchtest.Set) (ranker, error) {
	return func(set *searchtest.Set) (ranker, error) {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		g := &gateway{}
		if err := g.start(ctx, program, set); err != nil {
			return nil, errors.Join(err, g.Close())
		}
		return g, nil
	}
}

func (g *gateway) start(ctx context.Context, program string, set *searchtest.Set) error {
	servers, err := g.serve(set)
	if err != nil {
		return err
	}
	if g.folder, err = os.MkdirTemp("", "junctor-eval-"); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{"mcpServers": servers, "store": map[string]string{"path": filepath.Join(g.folder, "junctor.db")}})
	if err != nil {
		return err
	}
	file := filepath.Join(g.folder, "junctor.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return err
	}
	url, err := g.run(program, "serve", "--config", file, "--listen", "127.0.0.1:0", "--log-level", "error")
	if err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for connected := 0; connected < len(servers); <-tick.C {
		if connected, err = connections(ctx, url); err != nil {
			return fmt.Errorf("wait for %d upstreams: %w", len(servers), err)
		}
	}
	g.client, err = mcpclient.Connect(ctx, mcpclient.NewHTTP(mcpclient.HTTPOptions{URL: url + "/mcp", NoStandalone: true}), mcpclient.Options{Name: "eval", Version: "1"})
	return err
}

// serve serves the tools of the set as upstreams and returns their
// configurations.
func (g *gateway) serve(set *searchtest.Set) (map[string]any, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	tools := make(map[string][]any)
	for _, d := range set.Docs {
		schema := d.InputSchema
		if schema == nil {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		tools[d.Name.Server] = append(tools[d.Name.Server], map[string]any{"name": d.Name.Tool, "description": d.Description, "inputSchema": schema})
	}
	mux := http.NewServeMux()
	servers := make(map[string]any)
	for name, list := range tools {
		result, err := json.Marshal(map[string]any{"tools": list})
		if err != nil {
			return nil, err
		}
		mux.Handle("/"+name, mcpserver.New(mcpserver.Options{}, toolServer{name, result}))
		servers[name] = map[string]string{"url": "http://" + ln.Addr().String() + "/" + name}
	}
	g.upstreams = &http.Server{Handler: mux, ReadHeaderTimeout: startTimeout}
	go func() { _ = g.upstreams.Serve(ln) }() // until Close
	return servers, nil
}

// run starts the program and returns the address that it logs.
func (g *gateway) run(program string, args ...string) (string, error) {
	g.program = exec.Command(program, args...)
	g.program.Dir = g.folder
	g.program.Env = append(os.Environ(), "HOME="+g.folder, "XDG_CONFIG_HOME="+g.folder, "XDG_DATA_HOME="+g.folder)
	stderr, err := g.program.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := g.program.Start(); err != nil {
		g.program = nil
		return "", err
	}
	var lines strings.Builder
	for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
		if _, url, ok := strings.Cut(scanner.Text(), " is at "); ok {
			go func() { _, _ = io.Copy(io.Discard, stderr) }() // until the program exits
			url, _, _ = strings.Cut(url, " ")
			return url, nil
		}
		fmt.Fprintln(&lines, scanner.Text())
	}
	return "", fmt.Errorf("it ended: %s", lines.String())
}

// connections returns the number of upstreams to which a gateway is connected.
func connections(ctx context.Context, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var health struct{ Servers []struct{ Status string } }
	if err := json.NewDecoder(answer.Body).Decode(&health); err != nil {
		return 0, err
	}
	n := 0
	for _, s := range health.Servers {
		if s.Status == "connected" {
			n++
		}
	}
	return n, nil
}

func (g *gateway) Search(text string, limit int) ([]tool.Name, error) {
	params, err := json.Marshal(map[string]any{"name": "search_tools", "arguments": map[string]any{"query": text, "limit": limit}})
	if err != nil {
		return nil, err
	}
	raw, err := g.client.Do(context.Background(), tool.Request{Method: "tools/call", Params: params})
	if err != nil {
		return nil, err
	}
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Content) == 0 {
		return nil, fmt.Errorf("not a result: %s", raw)
	}
	var answer struct {
		Results []struct{ Server, Tool string }
	}
	if err := json.Unmarshal([]byte(result.Content[0].Text), &answer); err != nil {
		return nil, fmt.Errorf("not an answer: %s", result.Content[0].Text)
	}
	names := make([]tool.Name, len(answer.Results))
	for i, r := range answer.Results {
		names[i] = tool.Name{Server: r.Server, Tool: r.Tool}
	}
	return names, nil
}

// Close stops the gateway and the upstreams.
func (g *gateway) Close() error {
	var errs []error
	if g.client != nil {
		errs = append(errs, g.client.Close())
	}
	if g.program != nil {
		errs = append(errs, g.program.Process.Kill())
		_ = g.program.Wait() // it was killed
	}
	if g.upstreams != nil {
		errs = append(errs, g.upstreams.Close())
	}
	if g.folder != "" {
		errs = append(errs, os.RemoveAll(g.folder))
	}
	return errors.Join(errs...)
}

// toolServer is an upstream that only lists tools.
type toolServer struct {
	name  string
	tools json.RawMessage
}

func (s toolServer) Describe(context.Context, *mcpserver.Request) (mcpserver.Description, error) {
	info, err := json.Marshal(map[string]string{"name": s.name, "version": "1"})
	return mcpserver.Description{Info: info, Capabilities: json.RawMessage(`{"tools":{}}`)}, err
}

func (s toolServer) Serve(_ context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	switch r.Method {
	case "tools/list":
		return s.tools, nil
	case "ping":
		return json.RawMessage(`{}`), nil
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "only tools are listed here"}
}

func (s toolServer) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}
