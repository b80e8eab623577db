package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/jackc/pgx/v5"
)

// connectionsCut: every connection of every node to the database is terminated,
// one after the other and including the listening ones, without any failed
// call.
func (c *nodes) connectionsCut(t *testing.T) {
	ctx := ctxFor(t)
	tail := c.tail(t, c.all[0])
	l := c.load(t, 4)
	eventually(t, "calls", func() bool { return len(l.answered()) > 20 })
	conn, err := pgx.Connect(ctx, c.db.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, _ := conn.Query(ctx, "SELECT pid FROM pg_stat_activity WHERE datname = $1 AND application_name = 'junctor'", c.dbName)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		before := len(l.answered())
		if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend($1)", pid); err != nil {
			t.Fatal(err)
		}
		eventually(t, "calls after a cut", func() bool { return len(l.answered()) > before+3 })
	}
	l.stop()
	if bad := l.failed(); len(bad) > 0 {
		t.Errorf("%d calls failed; the first: %s", len(bad), bad[0])
	}
	ids := l.answered()
	c.recorded(t, ids)
	eventually(t, "all of them in the live log", func() bool { n, _ := tail.at(); return n >= len(ids) })
	if _, wrong := tail.at(); wrong != "" {
		t.Error(wrong)
	}
	t.Logf("%d connections cut during %d calls", len(pids), len(ids))
}

// chatConn is one chat connection.
type chatConn struct {
	t    *testing.T
	conn *websocket.Conn
	id   string
	seq  int64
}

type chatMessage struct {
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

func (g *gateway) dialChat(t *testing.T, query string) *chatConn {
	t.Helper()
	conn, _, err := websocket.Dial(ctxFor(t), strings.Replace(g.url, "http", "ws", 1)+"/ws"+query, &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + rootKey}},
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(8 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	k := &chatConn{t: t, conn: conn}
	k.id = k.readUntil("connection", func(m chatMessage) bool { return m.Type == "connection" }).Payload.SessionID
	return k
}

func (k *chatConn) sendText(text string) {
	k.t.Helper()
	b, _ := json.Marshal(map[string]any{"type": "message", "payload": map[string]string{"text": text}})
	if err := k.conn.Write(ctxFor(k.t), websocket.MessageText, b); err != nil {
		k.t.Fatal(err)
	}
}

func (k *chatConn) readUntil(what string, ok func(chatMessage) bool) chatMessage {
	k.t.Helper()
	for {
		_, data, err := k.conn.Read(ctxFor(k.t))
		if err != nil {
			k.t.Fatalf("waiting for %s: %v", what, err)
		}
		var m chatMessage
		if err := json.Unmarshal(data, &m); err != nil {
			k.t.Fatal(err)
		}
		k.seq = max(k.seq, m.Seq)
		if ok(m) {
			return m
		}
	}
}

func complete(m chatMessage) bool {
	return m.Type == "status" && m.Payload.Tool == "" && m.Payload.State == "complete"
}

// killedUnderLoad: nodes are killed with SIGKILL during many calls and a chat's
// reply, first the one that runs the singleton. No record of an answered call
// is lost, the chat continues on another node, and the singleton never runs
// twice.
func (c *nodes) killedUnderLoad(t *testing.T) {
	first := c.owner(t)
	second := (first + 1) % len(c.all)
	last := (first + 2) % len(c.all)
	alone := c.watchSingleton(t)
	var quickest time.Duration
	for _, victim := range []int{first, second} {
		took := c.dies(t, victim, last)
		t.Logf("the conversation went on %v after the death", took.Round(time.Millisecond))
		if quickest == 0 || took < quickest {
			quickest = took
		}
		eventually(t, "the singleton on another node", func() bool {
			status, _, _ := c.call(ctxFor(t), c.proxy, callLonely)
			return status == 200
		})
	}
	within(t, "a conversation goes on after its node's death", quickest, 2*time.Second)
	if most := alone(); most != 1 {
		t.Errorf("%d processes of a singleton at once", most)
	}
}

// owner returns the node that runs the singleton.
func (c *nodes) owner(t *testing.T) int {
	t.Helper()
	for i, g := range c.all {
		var status struct {
			Servers []struct{ Name, Node string }
		}
		_, body, err := try(ctxFor(t), "GET", g.url+"/api/servers", rootKey, "")
		if err != nil || json.Unmarshal([]byte(body), &status) != nil {
			t.Fatalf("%s: %v", body, err)
		}
		for _, s := range status.Servers {
			if s.Name == "lonely" && s.Node == "" {
				return i
			}
		}
	}
	t.Fatal("no node runs the singleton")
	return 0
}

// watchSingleton counts the processes of the singleton until most is called,
// which returns the maximum.
func (c *nodes) watchSingleton(t *testing.T) (most func() int) {
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			n = max(n, processes(t, c.single))
			select {
			case <-stop:
				done <- n
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	most = sync.OnceValue(func() int { close(stop); return <-done })
	t.Cleanup(func() { most() })
	return most
}

// dies kills a node with many calls and a chat reply in flight, and follows the
// reply on another node. It returns how long the conversation was interrupted.
func (c *nodes) dies(t *testing.T, victim, other int) time.Duration {
	t.Helper()
	a := c.all[victim].dialChat(t, "")
	a.sendText("hello")
	a.readUntil("the first reply", complete)
	a.sendText("tell me slowly")
	a.readUntil("some of the reply", func(m chatMessage) bool { return m.Type == "text" })
	// Another node receives the conversation live.
	b := c.all[other].dialChat(t, fmt.Sprintf("?sessionId=%s&after=%d", a.id, a.seq))
	if b.id != a.id {
		t.Fatalf("session %q, want %q", b.id, a.id)
	}
	b.readUntil("more of the reply", func(m chatMessage) bool { return m.Type == "text" })

	l := c.load(t, 6)
	eventually(t, "calls", func() bool { return len(l.answered()) > 100 })
	died := time.Now()
	c.kill(victim)
	b.readUntil("the end of the reply", func(m chatMessage) bool { return m.Type == "error" && m.Payload.Code == "INTERRUPTED" })
	b.readUntil("the end of the turn", complete)
	b.sendText("hello again")
	b.readUntil("a reply of the other node", complete)
	took := time.Since(died)

	more := len(l.answered()) + 100
	eventually(t, "more calls", func() bool { return len(l.answered()) > more })
	l.stop()
	// Only calls in flight on the dead node may fail.
	if bad := l.failed(); len(bad) > 6 {
		t.Errorf("%d calls failed: %s", len(bad), strings.Join(bad[:7], "\n"))
	}
	c.recorded(t, l.answered())

	d := c.all[other].dialChat(t, "?sessionId="+a.id)
	history := d.readUntil("the history", func(m chatMessage) bool { return m.Type == "history" })
	notices := 0
	for _, m := range history.Payload.Messages {
		if m.Notice == "interrupted" {
			notices++
		}
	}
	if len(history.Payload.Messages) != 6 || notices != 1 {
		t.Errorf("%d messages with %d notices: %+v", len(history.Payload.Messages), notices, history.Payload.Messages)
	}
	return took
}

// TestNodesRefreshOnce: when a login expires, 50 callers on each of three nodes
// need it. It is refreshed once, no call fails, and no used refresh token is
// sent again. The same applies to a token that is refused before it expires.
func TestNodesRefreshOnce(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, 4)
	c := startNodes(t, 3, func(_ int, s settings) {
		s["mcpServers"].(settings)["guarded"] = settings{"url": g.Resource, "proxy": true}
	})
	g.signIn(c.all[0], rootKey)
	c.ready("guarded")
	crowd := func(when string, begun func()) {
		t.Helper()
		before := g.happened()
		var wg sync.WaitGroup
		for _, node := range c.all {
			for range 50 {
				wg.Go(func() {
					status, body, err := try(ctxFor(t), "POST", node.url+"/api/mcp/guarded/proxy", rootKey, whoami, "Accept", "application/json")
					if status != 200 || !strings.Contains(body, "account ada") {
						t.Errorf("%s: %d %s %v", when, status, body, err)
					}
				})
			}
		}
		begun()
		wg.Wait()
		after := g.happened()
		if got := after.Refreshes - before.Refreshes; got != 1 || after.Replays != 0 {
			t.Errorf("%s: %d refreshes and %d replays for 150 callers on three nodes", when, got, after.Replays)
		}
	}
	// The new token lasts longer than the calls on a busy machine.
	g.expire()
	g.set("life", "3600")
	crowd("at its end", func() { g.set("hold", "false") })
	g.set("dead", "true")
	crowd("refused", func() {})
}
