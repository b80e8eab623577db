package http1

import (
	"bufio"
	"cmp"
	"context"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sweepInterval is the interval between checks of idle connections.
const sweepInterval = 5 * time.Second

// get returns a connection to the address: the most recently used idle one
// that is still open, or a new one.
func (t *Transport) get(ctx context.Context, key string) (*conn, error) {
	for {
		t.mu.Lock()
		list := t.idle[key]
		if len(list) == 0 {
			t.mu.Unlock()
			return t.dial(ctx, key)
		}
		c := list[len(list)-1]
		list[len(list)-1] = nil
		t.idle[key] = list[:len(list)-1]
		t.count--
		t.mu.Unlock()
		if now := time.Now(); now.Sub(c.began) < t.keepFor(c) && c.isQuiet() {
			c.began, c.reused = now, true
			return c, nil
		}
		c.close()
	}
}

func (t *Transport) dial(ctx context.Context, key string) (*conn, error) {
	dial := t.base.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	nc, err := dial(ctx, "tcp", key)
	if err != nil {
		return nil, err
	}
	c := &conn{nc: nc, key: key, remote: nc.RemoteAddr(), began: time.Now()}
	c.r = bufio.NewReader((*limited)(c))
	c.text.R = c.r
	c.end, c.look = c.close, c.peek
	if sc, ok := nc.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn() // nil means that the connection is not reused
	}
	return c, nil
}

// put returns a connection to the pool, or closes it.
func (t *Transport) put(c *conn) {
	t.mu.Lock()
	list := t.idle[c.key]
	if c.raw == nil || len(list) >= t.maxIdlePerHost() || t.base.MaxIdleConns > 0 && t.count >= t.base.MaxIdleConns {
		t.mu.Unlock()
		c.close()
		return
	}
	t.idle[c.key] = append(list, c)
	t.count++
	if t.sweep == nil {
		t.sweep = time.AfterFunc(sweepInterval, t.sweepIdle)
	}
	t.mu.Unlock()
}

func (t *Transport) maxIdlePerHost() int {
	if n := t.base.MaxIdleConnsPerHost; n > 0 {
		return n
	}
	return http.DefaultMaxIdleConnsPerHost
}

func (t *Transport) idleTimeout() time.Duration {
	if d := t.base.IdleConnTimeout; d > 0 {
		return d
	}
	return math.MaxInt64
}

// defaultKeepAlive is the assumed idle timeout of a server that does not
// announce one. It is that of Node.js and uvicorn, which most MCP servers run
// on.
const defaultKeepAlive = 5 * time.Second

// keepFor returns for how long after the start of its last request c may be
// reused: half of the server's idle timeout. Otherwise the server could close
// the connection while a request is being sent, and a request that must not be
// repeated would fail.
func (t *Transport) keepFor(c *conn) time.Duration {
	return min(t.idleTimeout(), cmp.Or(c.hint, t.keepAlive)/2)
}

// keepAliveHint returns the timeout in a Keep-Alive header ("timeout=5,
// max=9"), or 0 if there is none.
func keepAliveHint(header string) time.Duration {
	if header == "" {
		return 0
	}
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if n, err := strconv.ParseUint(value, 10, 31); err == nil && strings.EqualFold(name, "timeout") {
			return max(time.Duration(n)*time.Second, 1)
		}
	}
	return 0
}

// sweepIdle closes connections that have been idle for too long or that the
// server has closed.
func (t *Transport) sweepIdle() {
	now := time.Now()
	t.closeIdle(func(c *conn) bool { return now.Sub(c.began) >= t.keepFor(c) || !c.isQuiet() })
}

// CloseIdleConnections closes the idle connections, including those of the
// standard transport.
func (t *Transport) CloseIdleConnections() {
	t.closeIdle(func(*conn) bool { return true })
	t.base.CloseIdleConnections()
}

func (t *Transport) closeIdle(ended func(*conn) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, list := range t.idle {
		kept := list[:0]
		for _, c := range list {
			if ended(c) {
				c.close()
			} else {
				kept = append(kept, c)
			}
		}
		t.count -= len(list) - len(kept)
		clear(list[len(kept):])
		if t.idle[key] = kept; len(kept) == 0 {
			delete(t.idle, key)
		}
	}
	if t.sweep != nil {
		t.sweep.Stop()
		t.sweep = nil
	}
	if t.count > 0 {
		t.sweep = time.AfterFunc(sweepInterval, t.sweepIdle)
	}
}
