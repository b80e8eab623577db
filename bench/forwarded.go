package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"junctor/internal/postgres/pgtest"
)

// measureForwarded compares calls of a singleton on the node that runs it with
// calls that another node forwards to it, on three nodes. The CPU time is that
// of all three nodes and of the sessions of the database.
func (b *bench) measureForwarded() error {
	db, err := pgtest.Start("fsync=on", "shared_buffers=128MB", "max_wal_size=1GB")
	if errors.Is(err, pgtest.ErrMissing) {
		fmt.Printf("\nForwarded calls: left out, %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer db.Close()
	defer b.stop()
	server, err := b.role("server")
	if err != nil {
		return err
	}
	database, err := db.Create(b.ctx)
	if err != nil {
		return err
	}
	config := fmt.Sprintf(`{"mcpServers":{"http":{"url":"http://%s","singleton":true}},"store":{"url":%q}}`, server.addr, db.URL(database))
	var nodes []*process
	for range 3 {
		node, err := b.gateway(b.junctor, config)
		if err != nil {
			return err
		}
		if err := b.awaitServers(node, "http"); err != nil {
			return err
		}
		nodes = append(nodes, node)
	}
	cpu := func() time.Duration {
		sum := databaseCPU(database)
		for _, n := range nodes {
			sum += n.cpu()
		}
		return sum
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: 30 * time.Second}
	var paths [2]path
	for _, n := range nodes {
		here, err := runsServer(client, n.addr, "http")
		if err != nil {
			return err
		}
		call := post(client, "http://"+n.addr+"/call_tool", `{"server":"http","tool":"echo","arguments":{"text":"`+payload+`"}}`, nil)
		if here {
			paths[0] = path{name: "on the node that runs the server", call: call}
		} else {
			paths[1] = path{name: "on another node, forwarded", call: call}
		}
	}
	if paths[0].call == nil || paths[1].call == nil {
		return errors.New("no node runs the singleton, or all do")
	}
	for _, callers := range []int{1, 16} {
		var rows [][]string
		for _, p := range paths {
			before := cpu()
			s, err := b.load(p, callers)
			if err != nil {
				return fmt.Errorf("%s, %d callers: %w", p.name, callers, err)
			}
			rows = append(rows, []string{p.name, micros(s.p50), micros(s.p99), fmt.Sprintf("%.0f", s.rate), micros((cpu() - before) / time.Duration(b.calls))})
		}
		table(fmt.Sprintf("Forwarded calls, three nodes, %d callers, %d calls", callers, b.calls),
			[]string{"", "p50", "p99", "calls/s", "CPU/call"}, rows)
	}
	return nil
}

// runsServer reports whether a node runs a singleton itself.
func runsServer(client *http.Client, addr, server string) (bool, error) {
	resp, err := client.Get("http://" + addr + "/api/servers")
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	var status struct {
		Servers []struct{ Name, Node string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		return false, err
	}
	for _, s := range status.Servers {
		if s.Name == server {
			return s.Node == "", nil
		}
	}
	return false, fmt.Errorf("%s does not know the server %s", addr, server)
}

// databaseCPU returns the CPU time of the server processes of a database.
func databaseCPU(name string) (sum time.Duration) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file) // fails if the process has just ended
		if strings.HasPrefix(string(line), "postgres: ") && strings.Contains(string(line), " "+name+" ") {
			sum += cpuOf(filepath.Dir(file))
		}
	}
	return sum
}
