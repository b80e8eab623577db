package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"junctor/internal/store"
)

// load makes calls through the proxy until it is stopped, and remembers the
// ids of those that were answered.
type load struct {
	stop     func() // and wait
	answered func() []string
	failed   func() []string
}

func (c *nodes) load(t *testing.T, callers int) *load {
	ctx, cancel := context.WithCancel(ctxFor(t))
	var mu sync.Mutex
	var good, bad []string
	var n atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				id := fmt.Sprintf("load-%s-%d", t.Name()[strings.LastIndexByte(t.Name(), '/')+1:], n.Add(1))
				status, body, err := c.call(ctx, c.proxy, callEcho, "X-Request-Id", id)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				if err == nil && status == 200 {
					good = append(good, id)
				} else {
					bad = append(bad, fmt.Sprintf("%d %s %v", status, body, err))
				}
				mu.Unlock()
			}
		})
	}
	get := func(list *[]string) func() []string {
		return func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(*list)
		}
	}
	return &load{stop: func() { cancel(); wg.Wait() }, answered: get(&good), failed: get(&bad)}
}

// recorded fails the test when an answered call has no record.
func (c *nodes) recorded(t *testing.T, ids []string) {
	t.Helper()
	ctx := ctxFor(t)
	lost := 0
	for _, id := range ids {
		if _, err := c.store.Call(ctx, id); errors.Is(err, store.ErrNotFound) {
			lost++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d answered calls have no record", lost, len(ids))
	}
}

// connectionsCut: the database's connections are cut one by one, and nobody
// notices.
func (c *nodes) connectionsCut(t *testing.T) {
	tail := c.tail(t, c.all[0])
	l := c.load(t, 4)
	name := c.dbURL[strings.LastIndex(c.dbURL, "@/")+2 : strings.Index(c.dbURL, "?")]
	for range 20 {
		before := len(l.answered())
		if err := c.db.Exec(ctxFor(t), "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND application_name = 'junctor' ORDER BY random() LIMIT 1`, name); err != nil {
			t.Fatal(err)
		}
		until(t, "calls after a cut", func() bool { return len(l.answered()) > before+3 })
	}
	l.stop()
	if bad := l.failed(); len(bad) > 0 {
		t.Errorf("%d calls failed; the first: %s", len(bad), bad[0])
	}
	ids := l.answered()
	c.recorded(t, ids)
	until(t, "all of them in the live log", func() bool { n, _ := tail.at(); return n >= len(ids) })
	if _, wrong := tail.at(); wrong != "" {
		t.Error(wrong)
	}
}

// databaseAway: without the database calls are refused with 503, and served
// again within seconds when it is back; the live log has no gap.
func (c *nodes) databaseAway(t *testing.T) {
	away := 10 * time.Second
	if s := os.Getenv("JUNCTOR_AWAY"); s != "" { // the long one
		var err error
		if away, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	ctx := ctxFor(t)
	tail := c.tail(t, c.all[1])
	for _, g := range c.all { // each knows the key
		if status, body, err := c.call(ctx, g.url, callEcho); status != 200 {
			t.Fatalf("%d %s %v", status, body, err)
		}
	}
	if err := c.db.Stop(); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	for i, g := range c.all {
		until(t, "a refusal", func() bool {
			status, body, err := c.call(ctx, g.url, callEcho)
			if status == 200 {
				t.Errorf("node %d answered a call without a record", i)
			}
			if err != nil || status != 503 {
				t.Logf("node %d: %d %s %v", i, status, body, err)
			}
			return status == 503 && strings.Contains(body, "no call is carried out")
		})
		if status, body, err := try(ctx, "GET", g.url+"/health/live", rootKey, ""); status != 200 {
			t.Errorf("node %d is not alive: %d %s %v", i, status, body, err)
		}
	}
	<-time.After(max(0, away-time.Since(stopped)))
	if err := c.db.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var ids []string
	for i, g := range c.all {
		id := fmt.Sprintf("back-%d", i)
		until(t, "the calls again", func() bool {
			status, _, _ := c.call(ctx, g.url, callEcho, "X-Request-Id", id)
			return status == 200
		})
		ids = append(ids, id)
	}
	t.Logf("all nodes served again %v after the start", time.Since(began).Round(time.Millisecond))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("recovery took %v", took)
	}
	c.recorded(t, ids)
	until(t, "the live log", func() bool { n, _ := tail.at(); return n >= 6 })
	if _, wrong := tail.at(); wrong != "" {
		t.Error(wrong)
	}
	until(t, "the singleton again", func() bool {
		status, _, _ := c.call(ctx, c.proxy, callLonely)
		return status == 200
	})
	if n := processes(t, c.single); n != 1 {
		t.Errorf("%d processes of a singleton", n)
	}
}

// talk is one chat connection.
type talk struct {
	t    *testing.T
	conn *websocket.Conn
	id   string
	seq  int64
}

type spoken struct {
	Type    string `json:"type"`
	Seq     int64  `json:"seq"`
	Payload struct {
		SessionID string `json:"sessionId"`
		Content   string `json:"content"`
		State     string `json:"state"`
		Code      string `json:"code"`
		Message   string `json:"message"`
		Tool      string `json:"tool"`
		Messages  []struct {
			Notice string `json:"notice"`
		} `json:"messages"`
	} `json:"payload"`
}

func (g *gateway) talk(t *testing.T, query string) *talk {
	t.Helper()
	conn, _, err := websocket.Dial(ctxFor(t), strings.Replace(g.url, "http", "ws", 1)+"/ws"+query, &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + rootKey}},
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(8 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	k := &talk{t: t, conn: conn}
	k.id = k.until("connection", func(m spoken) bool { return m.Type == "connection" }).Payload.SessionID
	return k
}

func (k *talk) say(text string) {
	k.t.Helper()
	b, _ := json.Marshal(map[string]any{"type": "message", "payload": map[string]string{"text": text}})
	if err := k.conn.Write(ctxFor(k.t), websocket.MessageText, b); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talk) until(what string, ok func(spoken) bool) spoken {
	k.t.Helper()
	for {
		_, data, err := k.conn.Read(ctxFor(k.t))
		if err != nil {
			k.t.Fatalf("waiting for %s: %v", what, err)
		}
		var m spoken
		if err := json.Unmarshal(data, &m); err != nil {
			k.t.Fatal(err)
		}
		k.seq = max(k.seq, m.Seq)
		if ok(m) {
			return m
		}
	}
}

func complete(m spoken) bool {
	return m.Type == "status" && m.Payload.Tool == "" && m.Payload.State == "complete"
}

// chatOfTheDead: a conversation is followed on another node; when the one
// that gives the reply dies, the reply is marked, and the conversation goes
// on.
func (c *nodes) chatOfTheDead(t *testing.T) {
	a := c.all[0].talk(t, "")
	a.say("hello")
	a.until("the first reply", complete)
	a.say("tell me slowly")
	a.until("some of the reply", func(m spoken) bool { return m.Type == "text" })
	// On another node: what is said there comes here live.
	b := c.all[1].talk(t, fmt.Sprintf("?sessionId=%s&after=%d", a.id, a.seq))
	if b.id != a.id {
		t.Fatalf("session %q, want %q", b.id, a.id)
	}
	b.until("more of the reply", func(m spoken) bool { return m.Type == "text" })
	died := time.Now()
	c.kill(0)
	b.until("the end of the reply", func(m spoken) bool { return m.Type == "error" && m.Payload.Code == "INTERRUPTED" })
	b.until("the end of the turn", complete)
	b.say("hello again")
	b.until("a reply of the other node", complete)
	took := time.Since(died)
	t.Logf("the conversation went on %v after the death", took.Round(time.Millisecond))
	d := c.all[2].talk(t, "?sessionId="+a.id)
	history := d.until("the history", func(m spoken) bool { return m.Type == "history" })
	notices := 0
	for _, m := range history.Payload.Messages {
		if m.Notice == "interrupted" {
			notices++
		}
	}
	if len(history.Payload.Messages) != 6 || notices != 1 {
		t.Errorf("%d messages with %d notices: %+v", len(history.Payload.Messages), notices, history.Payload.Messages)
	}
}

// killedUnderLoad: a node dies with -9 in the middle of many calls. No record
// of an answered call is lost, and what it alone could do another does.
func (c *nodes) killedUnderLoad(t *testing.T) {
	l := c.load(t, 6)
	until(t, "calls", func() bool { return len(l.answered()) > 100 })
	c.kill(1)
	more := len(l.answered()) + 100
	until(t, "more calls", func() bool { return len(l.answered()) > more })
	l.stop()
	// Those that the dead node had in hand may fail, no others.
	if bad := l.failed(); len(bad) > 6 {
		t.Errorf("%d calls failed: %s", len(bad), strings.Join(bad[:7], "\n"))
	}
	c.recorded(t, l.answered())
	until(t, "the singleton on the last node", func() bool {
		if n := processes(t, c.single); n > 1 {
			t.Errorf("%d processes of a singleton", n)
		}
		status, _, _ := c.call(ctxFor(t), c.proxy, callLonely)
		return status == 200
	})
}

// TestNodesServeWithoutDatabase: set so, calls are served while the database
// is away, and their records are written when it is back.
func TestNodesServeWithoutDatabase(t *testing.T) {
	c := startNodes(t, 1, "", "", `, "whenAway": "open"`).ready("tools")
	ctx := ctxFor(t)
	if status, body, err := c.call(ctx, c.proxy, callEcho); status != 200 {
		t.Fatalf("%d %s %v", status, body, err)
	}
	if err := c.db.Stop(); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range 5 {
		id := fmt.Sprintf("away-%d", i)
		if status, body, err := c.call(ctx, c.proxy, callEcho, "X-Request-Id", id); status != 200 {
			t.Errorf("%d %s %v", status, body, err)
		}
		ids = append(ids, id)
	}
	if err := c.db.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the records of that time", func() bool {
		_, err := c.store.Call(ctx, ids[len(ids)-1])
		return err == nil
	})
	c.recorded(t, ids)
}

// TestNodesRefreshOnce: at the moment a login expires, 50 callers on each of
// three nodes need it: it is refreshed once, and no call fails.
func TestNodesRefreshOnce(t *testing.T) {
	g := startGuarded(t, 8)
	c := startNodes(t, 3, "", fmt.Sprintf(`, "guarded": {"url": %q, "proxy": true}`, g.Resource), "")
	c.all[0].mustRun([]string{"BROWSER=" + browser(t), "E2E=" + here(t)}, junctor(t), "servers", "login", "guarded", "--config", c.all[0].config)
	c.ready("guarded")
	for _, life := range []string{"8", "3600"} {
		until(t, "the token has ended", func() bool { return g.happened().Expired })
		g.set("life", life)
		before := g.happened()
		var wg sync.WaitGroup
		for _, node := range c.all {
			for range 50 {
				wg.Go(func() {
					status, body, err := try(ctxFor(t), "POST", node.url+"/api/mcp/guarded/proxy", rootKey, whoami, "Accept", "application/json")
					if status != 200 || !strings.Contains(body, "account ada") {
						t.Errorf("%d %s %v", status, body, err)
					}
				})
			}
		}
		wg.Wait()
		after := g.happened()
		if got := after.Refreshes - before.Refreshes; got != 1 || after.Replays != 0 {
			t.Errorf("%d refreshes and %d replays for 150 callers on three nodes", got, after.Replays)
		}
	}
}
