package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"junctor/internal/postgres/pgtest"
)

// TestNodesDatabaseUnavailable: while the database is unavailable, nodes that
// are set to closed refuse calls, and one that is set to open serves them. All
// recover within 5 s of its return, with no gap in the live log and with a
// record of every answered call.
func TestNodesDatabaseUnavailable(t *testing.T) {
	t.Parallel()
	away := 20 * time.Second // longer than every lease
	if soak() {
		away = time.Minute
	}
	c := startNodesOn(t, pgtest.New(t), 4, func(node int, s settings) {
		kept := s["store"].(settings)
		delete(kept, "timeoutMs") // the database is stopped: the default applies
		if node == 3 {
			kept["whenAway"] = "open"
		}
	}).ready("tools", "lonely")
	closed, open := c.all[:3], c.all[3]
	ctx := ctxFor(t)
	tail := c.tail(t, closed[1])
	var ids []string
	served := func(g *gateway) bool {
		id := fmt.Sprintf("away-%d", len(ids))
		status, _, _ := c.call(ctx, g.url, callEcho, "X-Request-Id", id)
		if status == 200 {
			ids = append(ids, id)
		}
		return status == 200
	}
	for i, g := range c.all { // so that each has cached the key
		if !served(g) {
			t.Fatalf("node %d does not serve", i)
		}
	}

	if err := c.db.Stop(); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	for i, g := range closed {
		c.refuses(t, i, g)
	}
	ready := func(g *gateway) int {
		status, _, _ := try(ctx, "GET", g.url+"/health/ready", rootKey, "")
		return status
	}
	for ; time.Since(stopped) < away; <-time.After(time.Second) {
		if !served(open) || ready(open) != 200 {
			t.Error("the open node does not serve without the database")
		}
		for i, g := range closed {
			if status, body, err := c.call(ctx, g.url, callEcho); status != 503 || err != nil {
				t.Errorf("node %d after %v: %d %s %v", i, time.Since(stopped), status, body, err)
			}
			if status, body, err := try(ctx, "GET", g.url+"/health/live", rootKey, ""); status != 200 || ready(g) != 503 {
				t.Errorf("node %d is not alive, or says that it is ready: %d %s %v", i, status, body, err)
			}
		}
	}

	if err := c.db.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, g := range c.all {
		eventually(t, "the calls again", func() bool { return served(g) })
	}
	eventually(t, "the records of that time", func() bool {
		last, err := c.store.LastSeq(ctx)
		return err == nil && last >= int64(len(ids))
	})
	eventually(t, "the live log", func() bool { n, _ := tail.at(); return n >= len(ids) })
	took := time.Since(began)
	t.Logf("all as before, with %d records", len(ids))
	within(t, "recovery", took, 5*time.Second)
	c.recorded(t, ids)
	if n, wrong := tail.at(); n != len(ids) || wrong != "" {
		t.Errorf("%d calls in the live log, want %d; %s", n, len(ids), wrong)
	}
	eventually(t, "the singleton again", func() bool {
		status, _, _ := c.call(ctx, c.proxy, callLonely)
		return status == 200
	})
	if n := processes(t, c.single); n != 1 {
		t.Errorf("%d processes of a singleton", n)
	}
}

// refuses waits until a node refuses calls. It must not answer any call
// successfully.
func (c *nodes) refuses(t *testing.T, i int, g *gateway) {
	eventually(t, "a refusal", func() bool {
		status, body, err := c.call(ctxFor(t), g.url, callEcho)
		if status == 200 {
			t.Errorf("node %d answered a call without a record", i)
		}
		if err != nil || status != 503 {
			t.Logf("node %d: %d %s %v", i, status, body, err)
		}
		return status == 503 && strings.Contains(body, "no call is carried out")
	})
}
