package postgres

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"junctor/internal/setting"
	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// cutting is a proxy of the database. It forwards one INSERT of call records.
// When the database has committed it, cutting closes all connections instead of
// forwarding the response, and refuses new ones until release is called.
type cutting struct {
	t              *testing.T
	socket, server string
	cut            chan struct{} // closed when the connections have been closed

	mu       sync.Mutex
	over     bool // the connections have been closed; forward everything from now on
	listener net.Listener
	conns    []net.Conn
}

// cutBefore returns a cutting and a URL of the database that is accessed through
// it.
func cutBefore(t *testing.T, database string) (*cutting, string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	query, dir := u.Query(), t.TempDir()
	c := &cutting{t: t, socket: filepath.Join(dir, socket), server: filepath.Join(query.Get("host"), socket), cut: make(chan struct{})}
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	c.release()
	t.Cleanup(c.close)
	return c, u.String()
}

// release starts to accept connections, or resumes it.
func (c *cutting) release() {
	l, err := net.Listen("unix", c.socket)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	c.listener = l
	c.mu.Unlock()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", c.server)
			if err != nil {
				client.Close()
				continue
			}
			c.mu.Lock()
			c.conns = append(c.conns, client, server)
			c.mu.Unlock()
			p := &cutConn{cutting: c}
			go p.copy(server, client, p.sent)
			go p.copy(client, server, p.answered)
		}
	}()
}

func (c *cutting) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listener.Close()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// cutConn is one connection through a cutting.
type cutConn struct {
	*cutting
	mu       sync.Mutex
	prepared bool   // the statement was sent, and is executed next
	executed bool   // its response is to be dropped
	answer   []byte // the response so far
}

func (p *cutConn) copy(to, from net.Conn, pass func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && pass(buf[:n]) {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// sent inspects data from the client: first the message that prepares the
// statement, then the one that executes it.
func (p *cutConn) sent(data []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.executed = p.executed || p.prepared
	p.prepared = p.prepared || bytes.Contains(data, []byte("INSERT INTO calls"))
	return true
}

// answered closes the connections when the database is ready for the next
// statement, because the INSERT is then committed.
func (p *cutConn) answered(data []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutting.mu.Lock()
	over := p.over
	p.cutting.mu.Unlock()
	if over || !p.executed {
		return true
	}
	if p.answer = append(p.answer, data...); bytes.HasSuffix(p.answer, []byte("Z\x00\x00\x00\x05I")) {
		p.cutting.mu.Lock()
		p.over = true
		p.cutting.mu.Unlock()
		p.close()
		close(p.cut)
	}
	return false
}

// TestRecordsOfLostCommitAreWrittenOnce checks that records are not written
// again after the response to their commit was lost and the database was
// unavailable for a while.
func TestRecordsOfLostCommitAreWrittenOnce(t *testing.T) {
	for _, away := range []store.OutagePolicy{store.FailClosed, store.FailOpen} {
		t.Run(string(away), func(t *testing.T) {
			t.Parallel()
			c, address := cutBefore(t, shared.Database(t))
			cfg := config(address)
			cfg.WhenAway, cfg.TimeoutMs = away, setting.Millis(soon.Milliseconds())
			s := openAt(t, cfg)
			ctx, cancel := context.WithTimeout(context.Background(), soon)
			defer cancel()
			batch := make([]*pendingRecord, 5)
			for i := range batch {
				batch[i] = &pendingRecord{call: storetest.Call(i)}
				batch[i].call.ID = fmt.Sprint("call-", i)
			}
			done := make(chan struct{})
			go func() { s.commit(batch); close(done) }()
			select {
			case <-c.cut:
			case <-ctx.Done():
				t.Fatal("the records were not committed")
			}
			wait(t, "the outage to be noticed", func() bool { return s.outage.reason() != nil })
			if away == store.FailOpen {
				wait(t, "the records to be kept", func() bool { return s.backlog.size() == len(batch) })
				for i := range 3 { // records added to the backlog later have not been written
					if err := s.Append(ctx, storetest.Call(100+i)); err != nil {
						t.Fatal(err)
					}
				}
			}
			c.release()
			<-done
			wait(t, "the return to be noticed", func() bool { return s.Available(ctx) == nil && s.backlog.size() == 0 })
			for i, e := range batch {
				if e.err != nil {
					t.Errorf("record %d: %v", i, e.err)
				}
			}
			var all, different, last int64
			if err := s.pool.QueryRow(ctx, "SELECT count(*), count(DISTINCT id), max(seq) FROM calls").Scan(&all, &different, &last); err != nil {
				t.Fatal(err)
			}
			want := int64(len(batch))
			if away == store.FailOpen {
				want += 3
			}
			counted, err := s.LastSeq(ctx)
			if all != want || different != want || last != want || counted != want || err != nil {
				t.Errorf("%d records of %d calls up to number %d of %d, %v; want %d", all, different, last, counted, err, want)
			}
		})
	}
}
