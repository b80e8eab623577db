package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// scenario is one measurement of the CPU cost of a call.
type scenario struct {
	title   string
	callers int
	calls   int
	tool    string
	text    string
	paths   []measuredPath
}

// measuredPath is a path to the tool through a process whose CPU time is measured.
type measuredPath struct {
	name string
	via  *process
	path string
}

const (
	chattyCount = 20
	chattyLines = 500
)

// measurePrice compares the CPU time of a call with that of the reverse proxy,
// in rounds that alternate between the two, so that other work on the machine
// affects both.
func (b *bench) measurePrice() error {
	server, err := b.role("server")
	if err != nil {
		return err
	}
	proxy, err := b.role("proxy", "-target", server.addr)
	if err != nil {
		return err
	}
	servers := fmt.Sprintf(`"http":{"url":"http://%s"},"stdio":{"command":%q,"args":["-role","stdio"]}`, server.addr, b.self)
	gate, err := b.gateway(b.junctor, `{"mcpServers":{`+servers+`}}`)
	if err != nil {
		return err
	}
	if err := b.awaitServers(gate, "http", "stdio"); err != nil {
		return err
	}
	paths := []measuredPath{{"reverse proxy", proxy, "/"}, {"HTTP server", gate, "/mcp/http"}, {"stdio server", gate, "/mcp/stdio"}}
	if b.before != "" {
		earlier, err := b.gateway(b.before, `{"mcpServers":{`+servers+`}}`)
		if err != nil {
			return err
		}
		if err := b.awaitServers(earlier, "http", "stdio"); err != nil {
			return err
		}
		paths = append(paths, measuredPath{"HTTP server, before", earlier, "/mcp/http"}, measuredPath{"stdio server, before", earlier, "/mcp/stdio"})
	}
	if err := b.measureScenarios(
		scenario{"One caller", 1, b.calls / 3, "echo", payload, paths},
		scenario{"16 callers", 16, b.calls, "echo", payload, paths},
		scenario{"64 callers", 64, b.calls, "echo", payload, paths},
		scenario{"Results of 256 KB, 4 callers", 4, b.calls / 8, "large", "", paths},
	); err != nil || !b.wanted(chattyTitle) {
		return err
	}
	busyGateway := func(role string) (*process, error) {
		all := servers
		for i := range chattyCount {
			all += fmt.Sprintf(`,"beside%d":{"command":%q,"args":["-role",%q]}`, i, b.self, role)
		}
		gate, err := b.gateway(b.junctor, `{"mcpServers":{`+all+`}}`)
		if err != nil {
			return nil, err
		}
		return gate, b.awaitServers(gate, "http", "stdio")
	}
	silent, err := busyGateway("stdio")
	if err != nil {
		return err
	}
	chatty, err := busyGateway("chatty")
	if err != nil {
		return err
	}
	return b.measureScenarios(
		scenario{chattyTitle + ", a call, 16 callers", 16, b.calls / 2, "echo", payload,
			[]measuredPath{{"20 silent servers", silent, "/mcp/http"}, {"20 chatty servers", chatty, "/mcp/http"}}},
		scenario{chattyTitle + ", search_tools, 16 callers", 16, b.calls / 8, "search_tools", "update record",
			[]measuredPath{{"20 silent servers", silent, "/mcp"}, {"20 chatty servers", chatty, "/mcp"}}},
	)
}

const chattyTitle = "Beside 20 servers with 500 lines on stderr each"

// wanted reports whether the flag -scenario selects a title.
func (b *bench) wanted(title string) bool { return strings.Contains(title, b.match) }

func (b *bench) measureScenarios(scenarios ...scenario) error {
	for _, s := range scenarios {
		if !b.wanted(s.title) {
			continue
		}
		if err := b.measureScenario(s); err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
	}
	return nil
}

// measureScenario measures the paths of a scenario in alternation and prints
// the medians. The ratios are medians of the ratios to the first path in each
// round, because other work on the machine changes from round to round.
func (b *bench) measureScenario(s scenario) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	samples := make([][]sample, len(s.paths))
	for round := range b.rounds + 1 {
		for i, p := range s.paths {
			got, err := b.loadN(path{via: p.via, call: modernCall(client, "http://"+p.via.addr+p.path, s.tool, s.text)}, s.callers, max(s.calls/2, s.callers))
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			if round > 0 { // the first round is a warm-up
				samples[i] = append(samples[i], got)
			}
		}
	}
	var rows [][]string
	for i, p := range s.paths {
		cpu, rate := make([]float64, b.rounds), make([]float64, b.rounds)
		for round, got := range samples[i] {
			first := samples[0][round]
			cpu[round], rate[round] = float64(got.cpu)/float64(first.cpu), got.rate/first.rate
		}
		slices.Sort(cpu)
		slices.Sort(rate)
		got := median(samples[i])
		rows = append(rows, []string{
			p.name, micros(got.cpu), fmt.Sprintf("%.2f", cpu[b.rounds/2]), fmt.Sprintf("%.0f", got.rate), fmt.Sprintf("%.2f", rate[b.rounds/2]),
			micros(got.p50), fmt.Sprintf("%.0f MB", p.via.memory("RssAnon")),
		})
	}
	if b.profile != "" {
		if err := b.profilePaths(client, s); err != nil {
			return err
		}
	}
	table(s.title, []string{"path", "CPU/call", "ratio", "calls/s", "ratio", "p50", "memory"}, rows)
	return nil
}

// profilePaths takes a CPU profile of each path through the gateway, with more
// calls than the measurement, and prints the names of the files.
func (b *bench) profilePaths(client *http.Client, s scenario) error {
	for _, p := range s.paths {
		if p.via.cmd.Path != b.junctor {
			continue
		}
		if err := p.via.beginProfile(); err != nil {
			return err
		}
		_, err := b.loadN(path{via: p.via, call: modernCall(client, "http://"+p.via.addr+p.path, s.tool, s.text)}, s.callers, 8*s.calls)
		file, ended := p.via.endProfile(b.profile)
		if err := errors.Join(err, ended); err != nil {
			return err
		}
		fmt.Printf("profile of %s, %s: %s\n", s.title, p.name, file)
	}
	return nil
}

// median returns the median of each figure.
func median(all []sample) sample {
	middle := func(less func(a, b sample) int) sample {
		sorted := slices.SortedFunc(slices.Values(all), less)
		return sorted[len(sorted)/2]
	}
	return sample{
		cpu:  middle(func(a, b sample) int { return int(a.cpu - b.cpu) }).cpu,
		p50:  middle(func(a, b sample) int { return int(a.p50 - b.p50) }).p50,
		rate: middle(func(a, b sample) int { return int(a.rate - b.rate) }).rate,
	}
}

// modernCall returns a call of a tool in the protocol without sessions.
func modernCall(client *http.Client, url, tool, text string) func(context.Context) error {
	argument := "text"
	if tool == "search_tools" {
		argument = "query"
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{"` + argument + `":"` + text + `"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}`
	header := http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool},
	}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header = header.Clone()
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK || !bytes.Contains(answer[:min(len(answer), 200)], []byte(`"result"`)) {
			return fmt.Errorf("%s answered %s: %.300s", url, res.Status, answer)
		}
		return nil
	}
}
