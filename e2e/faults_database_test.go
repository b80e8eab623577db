package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/postgres/pgtest"
	"junctor/internal/store"
)

// relay forwards connections to an address. While it is not open it forwards
// nothing and closes nothing: both ends wait, as if a network dropped packets
// or the peer were stopped.
type relay struct {
	listener net.Listener

	mu   sync.Mutex
	open chan struct{} // closed while bytes are forwarded
}

func newRelay(t *testing.T, network, to string) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: ln, open: make(chan struct{})}
	close(r.open)
	t.Cleanup(func() { r.setOpen(true); _ = ln.Close() })
	go func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				target, err := net.Dial(network, to)
				if err != nil {
					_ = from.Close()
					return
				}
				go r.copy(target, from)
				r.copy(from, target)
			}()
		}
	}()
	return r
}

// setOpen starts or stops forwarding bytes.
func (r *relay) setOpen(open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.open:
		if !open {
			r.open = make(chan struct{})
		}
	default:
		if open {
			close(r.open)
		}
	}
}

func (r *relay) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		r.mu.Lock()
		open := r.open
		r.mu.Unlock()
		<-open
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// TestFaultsDatabaseHangs lets PostgreSQL hang without closing a connection.
// Depending on the configuration, calls are refused and health reports that, or
// they are served without waiting for the database each time. Both end when it
// answers again, and every acknowledged call has its record.
func TestFaultsDatabaseHangs(t *testing.T) {
	t.Parallel()
	db := databases.Server(t)
	t.Run("modes", func(t *testing.T) {
		for _, away := range []store.OutagePolicy{store.FailClosed, store.FailOpen} {
			t.Run(string(away), func(t *testing.T) {
				t.Parallel()
				databaseHangs(t, db, away)
			})
		}
	})
}

func databaseHangs(t *testing.T, db *pgtest.Server, away store.OutagePolicy) {
	name, err := db.Create(ctxFor(t))
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(db.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := filepath.Glob(filepath.Join(address.Query().Get("host"), ".s.PGSQL.*[0-9]"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("the sockets of the database: %q, %v", sockets, err)
	}
	relay := newRelay(t, "unix", sockets[0])
	address.Host, address.RawQuery = relay.listener.Addr().String(), "sslmode=disable"
	const timeout = 4 * time.Second
	h := newHome(t, fmt.Sprintf(`{"mcpServers":{"good":%s},"store":{"url":%q,"timeoutMs":%d,"whenAway":%q},"limits":{"callerRate":{"calls":100000}}}`,
		faultServer(t, ""), address, timeout.Milliseconds(), away))
	h.write(".env", "JUNCTOR_SECRET_KEY="+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, store.KeySize))+"\n")
	g := &faultFixture{gateway: h.serve()}
	g.awaitServer(t, "good")
	before := g.usage(t)

	relay.setOpen(false)
	callWhileHanging := g.refusedWhile
	if away == store.FailOpen {
		callWhileHanging = g.servedWhile
	}
	callWhileHanging(t, timeout)
	if o := g.get("/health/live"); !o.ok() {
		t.Errorf("live while the database hangs: %s", o)
	}

	if o := g.get("/logs"); o.status != http.StatusServiceUnavailable {
		t.Errorf("the call log while the database hangs: %s", o)
	}
	g.eventually(t, "a line in the gateway's log", func() bool { return strings.Contains(g.log.String(), "the database is unavailable") })

	relay.setOpen(true)
	g.awaitServer(t, "good")
	g.eventually(t, "the end of it in the gateway's log", func() bool { return strings.Contains(g.log.String(), "the database is available again") })
	g.eventually(t, "health", func() bool { return g.get("/health/ready").ok() })
	g.eventually(t, "the records of all acknowledged calls", func() bool { return len(g.missing(t)) == 0 })
	g.awaitBaseline(t, before)
}

// refusedWhile makes calls while the database hangs, which must be refused.
func (g *faultFixture) refusedWhile(t *testing.T, _ time.Duration) {
	var wg sync.WaitGroup
	for range 8 { // the calls do not wait for one another
		wg.Go(func() {
			g.eventually(t, "a refused call", func() bool {
				o := g.call("good", "echo", "", 0)
				return o.status == http.StatusServiceUnavailable && strings.Contains(o.body, "no call is carried out")
			})
		})
	}
	wg.Wait()
	if o := g.get("/health/ready"); o.status != http.StatusServiceUnavailable {
		t.Errorf("ready while the database hangs: %s", o)
	}
}

// servedWhile makes calls while the database hangs, which must be served. They
// must not each wait for the database separately.
func (g *faultFixture) servedWhile(t *testing.T, timeout time.Duration) {
	const callers, calls = 8, 40
	begun := time.Now()
	var wg sync.WaitGroup
	var longest atomic.Int64
	for range callers {
		wg.Go(func() {
			for range calls {
				from := time.Now()
				if o := g.call("good", "echo", "", 0); !o.ok() {
					t.Errorf("a call while the database hangs: %s", o)
				}
				for took := int64(time.Since(from)); ; {
					if now := longest.Load(); took <= now || longest.CompareAndSwap(now, took) {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	t.Logf("%d callers made %d calls each in %v; the longest took %v", callers, calls, took, time.Duration(longest.Load()))
	if took > calls*timeout/2 {
		t.Errorf("%d calls in sequence took %v where a call may wait for %v and only the first has to", calls, took, timeout)
	}
}
