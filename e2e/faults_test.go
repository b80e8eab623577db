package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestFaults runs, on one gateway, all faults of servers, clients and users
// that must not affect others, while a healthy server is called.
func TestFaults(t *testing.T) {
	t.Parallel()
	marker := fmt.Sprintf("%d.75", 7000+os.Getpid()%1000) // sleep duration of grandchildren, to find them
	servers := func(more string) string {
		return fmt.Sprintf(`{"mcpServers":{"good":%[1]s,"dies":%[1]s,"hangs":%[2]s,"garbles":%[1]s,"floods":%[1]s,"forks":%[1]s,"gone":%[1]s,"broken":{"command":"/nonexistent/server"}%[3]s},
			"toolRules":[{"pattern":"circuit:guarded","approval":"ask"}],"circuit":{"coolDownMs":300}}`,
			faultServer(t, ""), faultServer(t, `,"timeoutMs":500`), hostileServers(t)+more)
	}
	h := newHome(t, servers(""))
	g := &faultFixture{gateway: h.serve()}
	g.ready("good", "dies", "hangs", "garbles", "floods", "forks", "gone", "hostile", "circuit", "reports", "queued")
	g.awaitServer(t, "good")
	before := g.usage(t)
	stop := g.bystander()

	t.Run("rows", func(t *testing.T) {
		row := func(name string, f func(t *testing.T)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f(t)
			})
		}
		row("server killed in mid-call", func(t *testing.T) {
			for range 5 {
				if o := g.call("dies", "die", "", 0); o.status != http.StatusBadGateway && o.status != http.StatusServiceUnavailable {
					t.Fatalf("a call whose server dies: %s", o)
				}
				g.awaitServer(t, "dies")
			}
		})
		row("server hangs", func(t *testing.T) {
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if o := g.call("hangs", "hang", "", 0); o.status != http.StatusGatewayTimeout || !strings.Contains(o.body, "500ms") {
						t.Errorf("a call that is not answered: %s", o)
					}
				})
			}
			wg.Wait()
			g.awaitServer(t, "hangs")
		})
		row("garbage on stdout", func(t *testing.T) {
			for range 10 {
				if o := g.call("garbles", "garbage", "", 0); !o.ok() {
					t.Fatalf("a call between garbage: %s", o)
				}
			}
		})
		row("flood of notifications", func(t *testing.T) {
			if o := g.call("floods", "flood", "", 30_000); !o.ok() {
				t.Errorf("a call in a flood: %s", o)
			}
			if o := g.call("floods", "stderr", "", 20_000); !o.ok() {
				t.Errorf("a call in a flood on stderr: %s", o)
			}
			if o := g.call("floods", "huge", "", 20<<20); o.ok() || o.err != nil {
				t.Errorf("an answer over the limit: %s", o)
			}
			g.awaitServer(t, "floods")
		})
		row("server forks and dies", func(t *testing.T) {
			if o := g.call("forks", "fork", marker, 0); !o.ok() {
				t.Fatalf("fork: %s", o)
			}
			// The child has no command line yet until it has executed sleep.
			g.eventually(t, "the grandchild", func() bool { return sleepers(marker) == 1 })
			_ = g.call("forks", "die", "", 0)
			g.awaitServer(t, "forks")
			g.eventually(t, "the end of the grandchild", func() bool { return sleepers(marker) == 0 })
		})
		row("program missing", func(t *testing.T) {
			if o := g.call("broken", "echo", "", 0); o.ok() || o.status >= 600 || !strings.Contains(o.body, "/nonexistent/server") && !strings.Contains(o.body, "broken") {
				t.Errorf("a call of a server that cannot start: %s", o)
			}
		})
		row("client leaves in mid-call", func(t *testing.T) {
			for range 10 {
				ctx, leave := context.WithCancel(t.Context())
				req, _ := http.NewRequestWithContext(ctx, "POST", g.url+"/call_tool", strings.NewReader(`{"server":"gone","tool":"hang"}`))
				req.Header.Set("Content-Type", "application/json")
				time.AfterFunc(20*time.Millisecond, leave)
				if res, err := http.DefaultClient.Do(req); err == nil {
					res.Body.Close()
				}
				leave()
			}
			g.awaitServer(t, "gone")
		})
		row("slow clients", func(t *testing.T) {
			addr := strings.TrimPrefix(g.url, "http://")
			var conns []net.Conn
			for i := range 60 {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				conns = append(conns, c)
				switch i % 3 {
				case 0:
					_, err = io.WriteString(c, "GET /health HTTP/1.1\r\nHost: ")
				case 1:
					_, err = io.WriteString(c, "POST /call_tool HTTP/1.1\r\nHost: "+addr+"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
				case 2: // sends a request and does not read
					_, err = io.WriteString(c, strings.Repeat("GET /tools HTTP/1.1\r\nHost: "+addr+"\r\n\r\n", 50))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 10 {
				g.awaitServer(t, "good")
			}
			for _, c := range conns {
				_ = c.Close()
			}
		})
		g.hostileRows(row)
		row("configuration edits", func(t *testing.T) {
			edit := func(text string) {
				if err := os.WriteFile(h.config, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			edit(`{"mcpServers": {`)
			g.eventually(t, "the report of a broken file", func() bool { return strings.Contains(g.log.String(), "configuration not applied") })
			g.awaitServer(t, "good")
			edit(servers(fmt.Sprintf(`,"late":%s`, faultServer(t, ""))))
			g.awaitServer(t, "late")
			edit(servers(""))
			g.eventually(t, "the end of the removed server", func() bool {
				o := g.call("late", "echo", "", 0)
				return o.status == http.StatusNotFound
			})
		})
	})
	g.check(t, before, stop)
	g.end()
	if n := sleepers(marker); n != 0 {
		t.Errorf("%d grandchildren outlive the gateway", n)
	}
}

// eventually waits until so returns true.
func (g *faultFixture) eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx := ctxFor(t)
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatalf("never came: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sleepers counts the processes that run sleep with this duration.
func sleepers(seconds string) int {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	n := 0
	for _, path := range all {
		if b, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(b), "sleep\x00"+seconds) {
			n++
		}
	}
	return n
}

// TestFaultsGatewayKilled kills the gateway with SIGKILL under load and
// restarts it: every answered call has its record.
func TestFaultsGatewayKilled(t *testing.T) {
	t.Parallel()
	h := newHome(t, fmt.Sprintf(`{"mcpServers":{"good":%s}}`, faultServer(t, "")))
	g := &faultFixture{}
	var before usage
	for range 3 {
		g.gateway = h.serve()
		g.awaitServer(t, "good")
		if before == (usage{}) {
			before = g.usage(t)
		}
		var wg sync.WaitGroup
		end := make(chan struct{})
		acked := make(chan struct{}, 1<<16)
		for range 8 {
			wg.Go(func() {
				for {
					select {
					case <-end:
						return
					default:
					}
					if o := g.call("good", "echo", "", 0); o.ok() {
						acked <- struct{}{}
					} else if o.err != nil {
						return // killed
					}
				}
			})
		}
		for range 200 {
			<-acked
		}
		g.kill()
		close(end)
		wg.Wait()
		faultClient.CloseIdleConnections()
	}
	g.gateway = h.serve()
	if lost := g.missing(t); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged calls have no record after the kills, such as %s", len(lost), len(g.acked), lost[0])
	}
	g.awaitServer(t, "good")
	g.awaitBaseline(t, before) // recovery does not leak memory
}

// TestSoakFaults runs for a minute: eight callers call a healthy server while
// others die, flood and hang. make test-soak runs it.
func TestSoakFaults(t *testing.T) {
	if os.Getenv("JUNCTOR_SOAK") == "" {
		t.Skip("takes a minute; make test-soak runs it")
	}
	h := newHome(t, fmt.Sprintf(`{"mcpServers":{"good":%[1]s,"dies":%[1]s,"floods":%[1]s,"hangs":%[2]s}}`, faultServer(t, ""), faultServer(t, `,"timeoutMs":300`)))
	g := &faultFixture{gateway: h.serve()}
	g.ready("good", "dies", "floods", "hangs")
	for range 200 { // until the process has its usual size
		g.awaitServer(t, "good")
	}
	before := g.usage(t)
	stop := g.bystander()
	end := time.Now().Add(time.Minute)
	var wg sync.WaitGroup
	work := func(f func()) {
		wg.Go(func() {
			for time.Now().Before(end) {
				f()
			}
		})
	}
	for range 8 {
		work(func() {
			if o := g.call("good", "echo", "", 0); !o.ok() {
				t.Errorf("a call of the healthy server: %s", o)
			}
		})
	}
	work(func() { g.call("dies", "die", "", 0); g.awaitServer(t, "dies") })
	work(func() { g.call("floods", "flood", "", 2000); g.call("floods", "garbage", "", 0) })
	work(func() { g.call("hangs", "hang", "", 0) })
	wg.Wait()
	g.check(t, before, stop)
}
