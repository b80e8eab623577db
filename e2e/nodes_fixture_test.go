package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"junctor/internal/llm/llmtest"
	"junctor/internal/postgres"
	"junctor/internal/postgres/pgtest"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/upstream/upstreamtest"
)

const (
	rootKey = "root-key-of-the-nodes-tests-0123456789"
	slowKey = "slow-key-of-the-nodes-tests-0123456789"
)

// nodes are real junctor processes on one real PostgreSQL, behind a proxy that
// forwards requests to them in turn.
type nodes struct {
	t      *testing.T
	db     *pgtest.Server
	dbURL  string
	dbName string
	all    []*gateway
	proxy  string
	store  *postgres.Store
	tools  *upstreamtest.HTTP
	model  *llmtest.Server
	single string // the binary of the singleton

	mu   sync.Mutex
	dead map[int]bool
	next atomic.Int64
	// Set by checkReadiness for each node: the start of the latest check that
	// found it ready, and the end of the check that then found it not ready.
	readyAt, notReadyAt map[int]time.Time
}

// settings are a node's configuration.
type settings map[string]any

// startNodes starts n nodes concurrently on an empty database. change may
// modify the configuration of each.
func startNodes(t *testing.T, n int, change func(node int, s settings)) *nodes {
	t.Helper()
	return startNodesOn(t, databases.Server(t), n, change)
}

func startNodesOn(t *testing.T, db *pgtest.Server, n int, change func(node int, s settings)) *nodes {
	t.Helper()
	c := &nodes{t: t, db: db, dead: map[int]bool{}, readyAt: map[int]time.Time{}, notReadyAt: map[int]time.Time{}}
	var err error
	if c.dbName, err = c.db.Create(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	c.dbURL = c.db.URL(c.dbName)
	c.tools = upstreamtest.Listen(t, upstreamtest.Script{})
	c.model = llmtest.Start(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "slowly"}, Reply: llmtest.Reply{Text: "one two three four five six seven eight nine ten ", Repeat: 200, GapMS: 50}},
		{When: llmtest.When{User: "in a while"}, Reply: llmtest.Reply{Text: "word ", Repeat: 30, GapMS: 100}},
		{When: llmtest.When{User: "hello"}, Reply: llmtest.Reply{Text: "Hello from the model."}},
	}})
	for i := range n {
		c.all = append(c.all, c.home(i, change).begin())
	}
	t.Cleanup(func() { // concurrently, because each of them takes some time
		var wg sync.WaitGroup
		for _, g := range c.all {
			wg.Go(g.end)
		}
		wg.Wait()
	})
	for _, g := range c.all {
		g.await()
	}
	c.proxy = c.balancer()
	cfg := store.DefaultConfig()
	cfg.URL = telemetry.Secret(c.dbURL)
	cfg.TimeoutMs = 60_000
	if c.store, err = postgres.Open(t.Context(), cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.store.Close() })
	c.guardLeases()
	return c
}

// soak reports whether make test-soak runs, during which the machine has no
// other work and tests may take longer.
func soak() bool { return os.Getenv("JUNCTOR_SOAK") != "" }

// within logs how long something took. In make test-soak, where the machine has
// no other work, the test fails above five times the limit, so that a hang
// fails it but a slow machine does not.
func within(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	if soak() && took > 5*limit {
		t.Errorf("%s: took %v, want about %v", what, took, limit)
	}
	t.Logf("%s: %v", what, took.Round(time.Millisecond))
}

// home creates the home folder of one node.
func (c *nodes) home(node int, change func(node int, s settings)) *homeFolder {
	c.t.Helper()
	h := newHome(c.t, "{}")
	if c.single == "" {
		c.single = h.own(everything(c.t), "lonely-server")
	}
	s := settings{
		"store": settings{"url": c.dbURL, "timeoutMs": 60_000}, // so that a busy machine does not cause an outage
		"auth": settings{"loopback": "key", "keys": []settings{
			{"name": "root", "key": rootKey, "admin": true},
			{"name": "slow", "key": slowKey, "rate": settings{"calls": 20, "perMs": 3600000}},
		}},
		"llm":        settings{"provider": "openai", "model": "scripted", "baseUrl": c.model.URL + "/v1", "apiKey": "x"},
		"mcpServers": settings{"tools": settings{"url": c.tools.URL}, "lonely": settings{"command": c.single, "singleton": true}},
	}
	if change != nil {
		change(node, s)
	}
	text, err := json.Marshal(s)
	if err != nil {
		c.t.Fatal(err)
	}
	h.write("junctor.json", string(text))
	h.write(".env", "JUNCTOR_SECRET_KEY="+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, store.KeySize))+"\n")
	return h
}

// balancer starts the round-robin proxy and returns its address.
func (c *nodes) balancer() string {
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			target, _ := url.Parse(c.pick().url)
			r.SetURL(target)
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Read the whole body first: Go's server closes it when the response
		// begins, and ReverseProxy, which may not have noticed the end of the
		// body yet, would then abort the stream that it forwards.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has disconnected
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	c.t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	return front.URL
}

// guardLeases adds a trigger that checks every change of a lease's owner. The
// test fails if a lease was granted before the previous one expired.
func (c *nodes) guardLeases() {
	c.t.Helper()
	if err := c.db.Exec(ctxFor(c.t), c.dbName, `
CREATE TABLE junctor.granted_twice (name text, was text, became text);
CREATE FUNCTION junctor.guard_lease() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF NEW.owner NOT IN ('', OLD.owner) AND OLD.owner <> '' AND (OLD.until > clock_timestamp() OR NEW.token <= OLD.token) THEN
		INSERT INTO junctor.granted_twice VALUES (NEW.name, OLD.owner, NEW.owner);
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE ON junctor.leases FOR EACH ROW EXECUTE FUNCTION junctor.guard_lease();`); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		conn, err := pgx.Connect(ctxFor(c.t), c.dbURL)
		if err != nil {
			c.t.Error(err)
			return
		}
		defer conn.Close(context.Background())
		var n int
		var which string
		if err := conn.QueryRow(ctxFor(c.t), "SELECT count(*), coalesce(string_agg(name || ': ' || was || ', ' || became, '; '), '') FROM junctor.granted_twice").Scan(&n, &which); err != nil || n > 0 {
			c.t.Errorf("%d leases were granted twice: %s %v", n, which, err)
		}
	})
}

// pick returns the next live node, or the next of all nodes if none is live.
func (c *nodes) pick() *gateway {
	c.mu.Lock()
	defer c.mu.Unlock()
	var i int
	for range c.all {
		if i = int(c.next.Add(1)) % len(c.all); !c.dead[i] {
			break
		}
	}
	return c.all[i]
}

// kill kills a node with SIGKILL. The load balancer skips it immediately.
func (c *nodes) kill(i int) {
	c.mu.Lock()
	c.dead[i] = true
	c.mu.Unlock()
	c.all[i].kill()
}

func (c *nodes) ready(servers ...string) *nodes {
	c.t.Helper()
	for _, g := range c.all {
		eventually(c.t, "ready", func() bool {
			_, body, err := try(c.t.Context(), "GET", g.url+"/health", rootKey, "")
			for _, s := range servers {
				if err != nil || !strings.Contains(body, `"name":"`+s+`","status":"connected"`) {
					return false
				}
			}
			return true
		})
	}
	return c
}

// try sends one request.
func try(ctx context.Context, method, address, key, body string, header ...string) (status int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

const callEcho = `{"server":"tools","tool":"echo","arguments":{"n":1}}`

func (c *nodes) call(ctx context.Context, base, body string, header ...string) (int, string, error) {
	return try(ctx, "POST", base+"/call_tool", rootKey, body, header...)
}

// load makes calls through the proxy until it is stopped, and records the ids
// of those that were answered. Except in make test-soak, which has the machine
// to itself, its callers pause between calls.
type load struct {
	stop     func() // stops the calls and waits for them
	answered func() []string
	failed   func() []string
	delayed  func() []string // those that failed because the load balancer was late; see missedNotice
}

func (c *nodes) load(t *testing.T, callers int) *load {
	ctx, cancel := context.WithCancel(ctxFor(t))
	var mu sync.Mutex
	var good, bad, late []string
	var n atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				id := fmt.Sprintf("load-%s-%d", t.Name()[strings.LastIndexByte(t.Name(), '/')+1:], n.Add(1))
				began := time.Now()
				status, body, err := c.call(ctx, c.proxy, callEcho, "X-Request-Id", id)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				if err == nil && status == 200 {
					good = append(good, id)
				} else if failure := fmt.Sprintf("%d %s %v", status, body, err); c.missedNotice(began) {
					late = append(late, failure)
				} else {
					bad = append(bad, failure)
				}
				mu.Unlock()
				if !soak() {
					time.Sleep(10 * time.Millisecond)
				}
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
	return &load{stop: func() { cancel(); wg.Wait() }, answered: get(&good), failed: get(&bad), delayed: get(&late)}
}

// recorded fails the test if an answered call has no record.
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

// tail follows the log of one node and checks that no number is missing.
type tail struct {
	mu    sync.Mutex
	last  int64
	count int
	wrong string
}

func (c *nodes) tail(t *testing.T, g *gateway) *tail {
	t.Helper()
	last, err := c.store.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := &tail{last: last}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			l.read(ctx, g)
			select { // the connection was lost: continue where it ended
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return l
}

func (l *tail) read(ctx context.Context, g *gateway) {
	l.mu.Lock()
	address := fmt.Sprintf("%s/logs?after=%d&limit=10000", g.url, l.last)
	l.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+rootKey)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var call store.Call
		if !ok || json.Unmarshal([]byte(data), &call) != nil || call.Seq == 0 {
			continue
		}
		l.mu.Lock()
		if call.Seq != l.last+1 && l.wrong == "" {
			l.wrong = fmt.Sprintf("%d came after %d", call.Seq, l.last)
		}
		l.last = call.Seq
		l.count++
		l.mu.Unlock()
	}
}

func (l *tail) at() (count int, wrong string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count, l.wrong
}
