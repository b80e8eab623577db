package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// boundedPipe is a pipe with a limited buffer, like those of the system.
type boundedPipe struct {
	mu     sync.Mutex
	moved  *sync.Cond
	bytes  []byte
	room   int
	closed bool
	direct int // messages that were written without waiting
}

func newBoundedPipe(room int) *boundedPipe {
	p := &boundedPipe{room: room}
	p.moved = sync.NewCond(&p.mu)
	return p
}

func (p *boundedPipe) TryWrite(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, io.ErrClosedPipe
	}
	n := min(len(b), p.room-len(p.bytes))
	if n == len(b) {
		p.direct++
	}
	p.bytes = append(p.bytes, b[:n]...)
	p.moved.Broadcast()
	return n, nil
}

func (p *boundedPipe) Write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n < len(b) {
		for !p.closed && len(p.bytes) == p.room {
			p.moved.Wait()
		}
		if p.closed {
			return n, io.ErrClosedPipe
		}
		part := b[n:min(len(b), n+p.room-len(p.bytes))]
		p.bytes = append(p.bytes, part...)
		n += len(part)
		p.moved.Broadcast()
	}
	return n, nil
}

func (p *boundedPipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && len(p.bytes) == 0 {
		p.moved.Wait()
	}
	if len(p.bytes) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.bytes[:min(len(p.bytes), 1+rand.IntN(len(p.bytes)))])
	p.bytes = p.bytes[n:]
	p.moved.Broadcast()
	return n, nil
}

func (p *boundedPipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.moved.Broadcast()
	return nil
}

// connectDirect connects a client to a server that answers tools/call with its
// params. The pipe to the server has a buffer of room bytes.
func connectDirect(t *testing.T, room int) (c *Client, in *boundedPipe, serve func()) {
	in, out := newBoundedPipe(room), newBoundedPipe(1<<20)
	server := mcp.NewStream(in, out, mcp.StreamOptions{})
	t.Cleanup(func() { _ = server.Close() })
	answer := func(m *mcp.Message) error {
		result := m.Params
		switch m.Method {
		case "server/discover":
			return server.Send(&mcp.Message{ID: m.ID, Error: &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "no"}})
		case "initialize":
			result = json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`)
		}
		return server.Send(&mcp.Message{ID: m.ID, Result: result})
	}
	shaken := make(chan struct{})
	resume := make(chan struct{})
	go func() {
		for {
			m, err := server.Receive()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Errorf("the server received %v", err)
				}
				return
			}
			if m.IsRequest() && answer(&m) != nil {
				return
			}
			if m.Method == "notifications/initialized" {
				close(shaken)
				<-resume
			}
		}
	}()
	c, err := Connect(t.Context(), OverLink(mcp.NewStream(out, in, mcp.StreamOptions{})), Options{})
	if err != nil {
		t.Fatal(err)
	}
	<-shaken
	return c, in, sync.OnceFunc(func() { close(resume) })
}

// A server that stopped reading blocks no caller beyond its deadline, whether
// its message was written to the pipe in full, in part or not at all.
func TestUnreadPipeDoesNotBlockCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, in, serve := connectDirect(t, 300)
		defer serve()
		for i := range maxSendQueue + 10 {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := c.Do(ctx, tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"` + strings.Repeat("x", 100) + `"}`)})
			cancel()
			if tool.KindOf(err) != tool.Timeout || time.Since(begun) > time.Second {
				t.Fatalf("call %d: %v after %s", i, err, time.Since(begun))
			}
		}
		begun := time.Now()
		go func() { // closing the connection closes the pipes of a program
			time.Sleep(flushTimeout)
			_ = in.Close()
		}()
		if err := c.Close(); err != nil || time.Since(begun) > 2*flushTimeout {
			t.Errorf("Close: %v after %s", err, time.Since(begun))
		}
	})
}

// Messages of many callers are not mixed up and each gets its response, whether
// they were written by the callers or queued.
func TestManyCallersOnOnePipe(t *testing.T) {
	for _, room := range []int{64, 4 << 10, 64 << 10} {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			c, in, serve := connectDirect(t, room)
			serve()
			defer c.Close()
			var wg sync.WaitGroup
			for caller := range 16 {
				wg.Go(func() {
					for i := range 100 {
						params := fmt.Sprintf(`{"name":"%d-%d-%s"}`, caller, i, strings.Repeat("y", rand.IntN(300)))
						got, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Params: json.RawMessage(params)})
						if err != nil || string(got) != params {
							t.Errorf("call %d of %d: %s, %v; want %s", i, caller, got, err, params)
							return
						}
					}
				})
			}
			wg.Wait()
			if in.mu.Lock(); room > 64 && in.direct == 0 {
				t.Error("no caller wrote its message itself")
			}
			in.mu.Unlock()
		})
	}
}

// A caller whose write fails gets the error of a connection that ended, and so
// do the others.
func TestBrokenPipeFailsAllCalls(t *testing.T) {
	c, in, serve := connectDirect(t, 4<<10)
	serve()
	_ = in.Close()
	if _, err := c.Do(t.Context(), tool.Request{Method: "tools/call"}); tool.KindOf(err) != tool.UpstreamFailed {
		t.Errorf("got %v", err)
	}
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Error("the connection goes on")
	}
}

// refusedWrites fails every write and then lets the reader continue.
type refusedWrites struct{ failed chan struct{} }

func (w refusedWrites) Write([]byte) (int, error) {
	close(w.failed)
	return 0, syscall.EPIPE
}

// What a program wrote before it exited is read even if writing to it has
// failed by then.
func TestOutputOfExitedProgramIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan struct{})
		out, printed := io.Pipe()
		go func() {
			<-failed
			time.Sleep(10 * time.Millisecond)
			_, _ = io.WriteString(printed, "usage: server FILE\n")
			printed.Close()
		}()
		var dropped []string
		link := mcp.NewStream(out, refusedWrites{failed}, mcp.StreamOptions{OnDrop: func(d mcp.DroppedInput) { dropped = append(dropped, d.Preview) }})
		if _, err := Connect(t.Context(), OverLink(link), Options{Protocol: mcp.Version20251125}); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the end of the program's output", err)
		}
		if len(dropped) != 1 {
			t.Errorf("read %q before the connection ended", dropped)
		}
	})
}
