package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

// path is one way from a client to the tool.
type path struct {
	name  string
	via   *process // whose CPU time is measured; nil for none
	call  func(ctx context.Context) error
	close func()
}

// sample is the cost of a path with some number of callers.
type sample struct {
	p50, p99 time.Duration
	cpu      time.Duration // CPU time per call of the process via
	rate     float64       // calls per second
}

const payload = "The quick brown fox jumps over the lazy dog, and the dog does not mind at all."

func (b *bench) measureCalls() error {
	server, err := b.role("server")
	if err != nil {
		return err
	}
	proxy, err := b.role("proxy", "-target", server.addr)
	if err != nil {
		return err
	}
	gate, err := b.gateway(b.junctor, fmt.Sprintf(`{"mcpServers":{"http":{"url":"http://%s","proxy":true},"stdio":{"command":%q,"args":["-role","stdio"],"proxy":true}}}`, server.addr, b.self))
	if err != nil {
		return err
	}
	if err := b.awaitServers(gate, "http", "stdio"); err != nil {
		return err
	}
	stdio, err := b.directStdio()
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: 30 * time.Second}
	modern := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + payload + `"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}`
	raw := func(addr, route, name string) func(context.Context) error {
		body := strings.Replace(modern, `"name":"echo"`, `"name":"`+name+`"`, 1)
		return post(client, "http://"+addr+route, body, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name})
	}
	meta := func(server string) func(context.Context) error {
		body := strings.Replace(modern, `"name":"echo","arguments":{"text":"`+payload+`"}`,
			`"name":"execute_tool","arguments":{"server":"`+server+`","tool":"echo","arguments":{"text":"`+payload+`"}}`, 1)
		return post(client, "http://"+gate.addr+"/mcp", body, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "execute_tool"})
	}
	broker := func(server string) func(context.Context) error {
		return post(client, "http://"+gate.addr+"/api/mcp/"+server+"/proxy", `{"method":"tools/call","id":1,"params":{"name":"echo","arguments":{"text":"`+payload+`"}}}`, nil)
	}
	rest := func(server string) func(context.Context) error {
		return post(client, "http://"+gate.addr+"/call_tool", `{"server":"`+server+`","tool":"echo","arguments":{"text":"`+payload+`"}}`, nil)
	}
	groups := []struct {
		title string
		paths []path
	}{
		{"HTTP upstream", []path{
			{"direct", nil, raw(server.addr, "/", "echo"), nil},
			{"reverse proxy", proxy, raw(proxy.addr, "/", "echo"), nil},
			{"transparent /mcp/http", gate, raw(gate.addr, "/mcp/http", "echo"), nil},
			{"direct view", gate, raw(gate.addr, "/mcp?mode=direct", "http__echo"), nil},
			{"execute_tool", gate, meta("http"), nil},
			{"broker", gate, broker("http"), nil},
			{"POST /call_tool", gate, rest("http"), nil},
		}},
		{"stdio upstream", []path{
			{"direct", nil, stdio.call, stdio.close},
			{"transparent /mcp/stdio", gate, raw(gate.addr, "/mcp/stdio", "echo"), nil},
			{"execute_tool", gate, meta("stdio"), nil},
			{"broker", gate, broker("stdio"), nil},
		}},
	}
	for _, g := range groups {
		if err := b.compare(g.title, g.paths); err != nil {
			return err
		}
	}
	stdio.close()
	return nil
}

// compare measures all paths with each number of callers, one directly after
// the other, so that other work on the machine affects all of them.
func (b *bench) compare(title string, paths []path) error {
	for _, callers := range []int{1, 16, 64} {
		var rows [][]string
		var direct, proxy sample
		for _, p := range paths {
			if err := p.call(b.ctx); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			s, err := b.load(p, callers)
			if err != nil {
				return fmt.Errorf("%s, %d callers: %w", p.name, callers, err)
			}
			switch p.name {
			case "direct":
				direct = s
			case "reverse proxy":
				proxy = s
			}
			row := []string{p.name, micros(s.p50), micros(s.p99), fmt.Sprintf("%.0f", s.rate), micros(s.p50 - direct.p50), ratio(s.p50, direct.p50)}
			if p.via != nil {
				row = append(row, micros(s.cpu), ratio(s.cpu, proxy.cpu))
			}
			rows = append(rows, row)
		}
		table(fmt.Sprintf("%s, %d callers, %d calls", title, callers, b.calls),
			[]string{"path", "p50", "p99", "calls/s", "added p50", "× direct", "CPU/call", "× proxy"}, rows)
	}
	return nil
}

// load makes the calls with a number of concurrent callers and measures them.
func (b *bench) load(p path, callers int) (sample, error) { return b.loadN(p, callers, b.calls) }

func (b *bench) loadN(p path, callers, calls int) (sample, error) {
	for range callers { // connect before measuring
		if err := p.call(b.ctx); err != nil {
			return sample{}, err
		}
	}
	took := make([]time.Duration, calls)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	var cpu time.Duration
	if p.via != nil {
		cpu = p.via.cpu()
	}
	begun := time.Now()
	for range callers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < calls; i = int(next.Add(1)) - 1 {
				start := time.Now()
				if err := p.call(b.ctx); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
				took[i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	all := time.Since(begun)
	if err := failed.Load(); err != nil {
		return sample{}, *err
	}
	slices.Sort(took)
	s := sample{p50: took[len(took)/2], p99: took[len(took)*99/100], rate: float64(calls) / all.Seconds()}
	if p.via != nil {
		s.cpu = (p.via.cpu() - cpu) / time.Duration(calls)
	}
	return s, nil
}

// post returns a call that posts a body and expects the payload in the
// response.
func post(client *http.Client, url, body string, headers map[string]string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if headers == nil {
			req.Header.Set("Accept", "application/json")
		}
		for k, v := range headers {
			req.Header.Set(k, v)
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(payload)) {
			return fmt.Errorf("%s answered %s: %.300s", url, res.Status, answer)
		}
		return nil
	}
}

// directStdio is a path that uses a server's pipes directly.
func (b *bench) directStdio() (path, error) {
	cmd := exec.CommandContext(b.ctx, b.self, "-role", "stdio")
	in, err := cmd.StdinPipe()
	if err != nil {
		return path{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return path{}, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return path{}, err
	}
	c, err := mcpclient.Connect(b.ctx, mcpclient.OverLink(mcp.NewStream(out, in, mcp.StreamOptions{})), mcpclient.Options{})
	if err != nil {
		return path{}, err
	}
	params := json.RawMessage(`{"name":"echo","arguments":{"text":"` + payload + `"}}`)
	return path{
		call: func(ctx context.Context) error {
			_, err := c.Do(ctx, tool.Request{Method: "tools/call", Params: params})
			return err
		},
		close: sync.OnceFunc(func() { _ = c.Close(); _ = cmd.Wait() }),
	}, nil
}

// awaitServers waits until the gateway has connected to its servers.
func (b *bench) awaitServers(gate *process, servers ...string) error {
	for _, s := range servers {
		body := `{"server":"` + s + `","tool":"echo","arguments":{"text":"` + payload + `"}}`
		if err := post(http.DefaultClient, "http://"+gate.addr+"/api/call", body, nil)(b.ctx); err != nil {
			return err
		}
	}
	return nil
}

func micros(d time.Duration) string {
	return fmt.Sprintf("%.1f µs", float64(d.Nanoseconds())/1000)
}

func ratio(a, b time.Duration) string {
	if b <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}
