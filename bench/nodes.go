package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"junctor/internal/postgres"
	"junctor/internal/postgres/pgtest"
	"junctor/internal/sqlite"
	"junctor/internal/store"
	"junctor/internal/telemetry"
)

// measureNodes compares the two stores on one node, and one node with three
// that share a database: the calls per second, and the cost of a call's record.
// All run on this machine, including the database, so the figures show the cost
// of sharing and not the throughput of three machines. The database waits for
// its disk at every commit, as in production.
func (b *bench) measureNodes() error {
	db, err := pgtest.Start("fsync=on", "shared_buffers=128MB", "max_wal_size=1GB")
	if errors.Is(err, pgtest.ErrMissing) {
		fmt.Printf("\nStores and nodes: left out, %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer db.Close()
	server, err := b.role("server")
	if err != nil {
		return err
	}
	var deployments []*deployment
	for _, w := range []struct {
		name  string
		nodes int
		pg    bool
	}{{"SQLite, one node", 1, false}, {"PostgreSQL, one node", 1, true}, {"PostgreSQL, three nodes", 3, true}} {
		d, err := b.newDeployment(w.name, w.nodes, w.pg, db, server)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		deployments = append(deployments, d)
	}
	for _, callers := range []int{1, 16, 64} {
		var rows [][]string
		for _, w := range deployments {
			before := w.cpu()
			s, err := b.load(path{name: w.name, call: w.call}, callers)
			if err != nil {
				return fmt.Errorf("%s, %d callers: %w", w.name, callers, err)
			}
			cpu := (w.cpu() - before) / time.Duration(b.calls)
			rows = append(rows, []string{w.name, micros(s.p50), micros(s.p99), fmt.Sprintf("%.0f", s.rate), micros(cpu)})
		}
		table(fmt.Sprintf("Stores and nodes, POST /call_tool, %d callers, %d calls", callers, b.calls),
			[]string{"", "p50", "p99", "calls/s", "CPU/call"}, rows)
	}
	b.stop()
	return b.measureRecords(db)
}

// measureRecords measures only the time for writing a record, which the call
// log adds to each call.
func (b *bench) measureRecords(db *pgtest.Server) error {
	log := slog.New(slog.DiscardHandler)
	var files [2]store.Store
	for i, fsync := range []bool{false, true} {
		cfg := store.DefaultConfig()
		cfg.Path, cfg.Fsync = filepath.Join(b.dir, fmt.Sprintf("records%d.db", i)), fsync
		file, err := sqlite.Open(b.ctx, cfg, log)
		if err != nil {
			return err
		}
		defer file.Close()
		files[i] = file
	}
	var shared [2]store.Store
	for i, more := range []string{"", "&synchronous_commit=off"} {
		database, err := db.Create(b.ctx)
		if err != nil {
			return err
		}
		cfg := store.DefaultConfig()
		cfg.URL = telemetry.Secret(db.URL(database) + more)
		pg, err := postgres.Open(b.ctx, cfg, log)
		if err != nil {
			return err
		}
		defer pg.Close()
		shared[i] = pg
	}
	var rows [][]string
	for _, callers := range []int{1, 16, 64} {
		for _, s := range []struct {
			name string
			log  store.CallLog
		}{{"SQLite", files[0]}, {"SQLite, store.fsync", files[1]}, {"PostgreSQL", shared[0]}, {"PostgreSQL, synchronous_commit=off", shared[1]}} {
			got, err := b.load(path{name: s.name, call: func(ctx context.Context) error {
				return s.log.Append(ctx, store.Call{
					ID: rand.Text(), Time: time.Now(), Duration: time.Millisecond, Face: "tools", Caller: "local", Server: "http", Tool: "echo",
					Method: "tools/call", Status: store.StatusOK, Node: "bench",
					Arguments: json.RawMessage(`{"text":"` + payload + `"}`), Result: json.RawMessage(`{"content":[{"type":"text","text":"` + payload + `"}]}`),
				})
			}}, callers)
			if err != nil {
				return err
			}
			rows = append(rows, []string{s.name, fmt.Sprint(callers), micros(got.p50), micros(got.p99), fmt.Sprintf("%.0f", got.rate)})
		}
	}
	table(fmt.Sprintf("The record of a call alone, %d records", b.calls), []string{"store", "callers", "p50", "p99", "records/s"}, rows)
	return nil
}

// deployment is one or more nodes on one store.
type deployment struct {
	name  string
	nodes []*process
	next  atomic.Int64
	calls []func(context.Context) error
}

func (b *bench) newDeployment(name string, n int, pg bool, db *pgtest.Server, server *process) (*deployment, error) {
	storeConfig := ""
	if pg {
		database, err := db.Create(b.ctx)
		if err != nil {
			return nil, err
		}
		storeConfig = fmt.Sprintf(`,"store":{"url":%q}`, db.URL(database))
	}
	w := &deployment{name: name}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: 30 * time.Second}
	for range n {
		gate, err := b.gateway(b.junctor, fmt.Sprintf(`{"mcpServers":{"http":{"url":"http://%s"}}%s}`, server.addr, storeConfig))
		if err != nil {
			return nil, err
		}
		if err := b.awaitServers(gate, "http"); err != nil {
			return nil, err
		}
		w.nodes = append(w.nodes, gate)
		w.calls = append(w.calls, post(client, "http://"+gate.addr+"/call_tool", `{"server":"http","tool":"echo","arguments":{"text":"`+payload+`"}}`, nil))
	}
	return w, nil
}

// call sends a call to the nodes in turn.
func (d *deployment) call(ctx context.Context) error {
	return d.calls[int(d.next.Add(1))%len(d.calls)](ctx)
}

func (d *deployment) cpu() (sum time.Duration) {
	for _, p := range d.nodes {
		sum += p.cpu()
	}
	return sum
}
