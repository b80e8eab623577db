package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// measureMemory measures the resident memory of an idle gateway.
func (b *bench) measureMemory() error {
	var rows [][]string
	for _, size := range []struct{ servers, tools int }{{0, 0}, {20, 50}, {100, 30}} {
		upstream, err := b.role("server", "-tools", fmt.Sprint(max(size.tools, 1)))
		if err != nil {
			return err
		}
		servers := map[string]any{}
		var names []string
		for i := range size.servers {
			name := fmt.Sprintf("server%d", i)
			servers[name] = map[string]any{"url": "http://" + upstream.addr}
			names = append(names, name)
		}
		config, err := json.Marshal(map[string]any{"mcpServers": servers})
		if err != nil {
			return err
		}
		gate, err := b.gateway(b.junctor, string(config))
		if err != nil {
			return err
		}
		if err := b.awaitServers(gate, names...); err != nil {
			return err
		}
		if err := checkToolCount(gate, size.servers*size.tools); err != nil {
			return err
		}
		time.Sleep(5 * time.Second) // until memory used only during the start is released
		rows = append(rows, []string{fmt.Sprintf("%d × %d", size.servers, size.tools), fmt.Sprintf("%.1f MB", gate.memory("RssAnon")), fmt.Sprintf("%.1f MB", gate.memory("RssFile"))})
		b.stop()
	}
	table("Resident memory of an idle gateway", []string{"servers × tools", "its own", "its file's pages"}, rows)
	return nil
}

// checkToolCount checks that all tools are listed.
func checkToolCount(gate *process, want int) error {
	res, err := http.Get("http://" + gate.addr + "/api/tools?wait&limit=1")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var list struct{ Total int }
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		return err
	}
	if want > 0 && list.Total != want {
		return fmt.Errorf("%d tools are there, want %d", list.Total, want)
	}
	return nil
}

// startRuns is how often each start is timed.
const startRuns = 15

// measureStart measures the time from the start of `junctor mcp` to its first
// response, with working servers and one that hangs.
func (b *bench) measureStart() error {
	var rows [][]string
	for _, c := range []struct {
		name    string
		good    int
		hanging int
	}{{"none", 0, 0}, {"1", 1, 0}, {"20", 20, 0}, {"19 and one that hangs", 19, 1}} {
		servers := map[string]any{}
		for i := range c.good + c.hanging {
			role := "stdio"
			if i >= c.good {
				role = "hang"
			}
			servers[fmt.Sprintf("s%d", i)] = map[string]any{"command": b.self, "args": []string{"-role", role}}
		}
		config, err := json.Marshal(map[string]any{"mcpServers": servers})
		if err != nil {
			return err
		}
		var took []time.Duration
		for range startRuns {
			d, err := b.firstAnswer(string(config))
			if err != nil {
				return err
			}
			took = append(took, d)
		}
		slices.Sort(took)
		rows = append(rows, []string{c.name, millis(took[len(took)/2]), millis(took[len(took)-1])})
	}
	table("Process start to the first answered tools/list (junctor mcp)", []string{"stdio servers", "median", "slowest"}, rows)
	return nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d.Microseconds())/1000) }

// firstAnswer starts the gateway on stdio in its own home folder, and requests
// the tools like an agent.
func (b *bench) firstAnswer(config string) (time.Duration, error) {
	home, err := os.MkdirTemp(b.dir, "start")
	if err != nil {
		return 0, err
	}
	file := filepath.Join(home, "junctor.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(b.ctx, b.junctor, "--config", file, "mcp", "--standalone")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_RUNTIME_DIR=" + home}
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = in.Close()
		_ = cmd.Wait()
	}()
	const requests = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`
	if _, err := io.WriteString(in, requests); err != nil {
		return 0, err
	}
	answers := bufio.NewReader(out)
	for {
		line, err := answers.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("junctor mcp did not answer: %w", err)
		}
		if strings.Contains(line, `"id":2`) {
			return time.Since(begun), nil
		}
	}
}
