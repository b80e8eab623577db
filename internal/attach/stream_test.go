package attach

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestStreamServesManyClients(t *testing.T) {
	path, _ := running(t, nil)
	var wg sync.WaitGroup
	for i := range 10 { // ten clients, one gateway
		wg.Go(func() {
			var out strings.Builder
			text := strings.Repeat(fmt.Sprintf("client %d\n", i), 5000)
			if err := Stream(ctxFor(t), path, StreamRequest{Mode: "direct"}, strings.NewReader(text), &out); err != nil {
				t.Errorf("Stream = %v", err)
			}
			if want := "mode direct\n" + strings.ToUpper(text); out.String() != want {
				t.Errorf("client %d got %d bytes, want %d", i, out.Len(), len(want))
			}
		})
	}
	wg.Wait()
	for server, want := range map[string]string{"none": "no such server", "odd": "odd"} {
		var out strings.Builder
		err := Stream(ctxFor(t), path, StreamRequest{Server: server}, strings.NewReader("x"), &out)
		if refused, ok := errors.AsType[*Refused](err); !ok || refused.Error() != want || out.Len() > 0 {
			t.Errorf("Stream(%s) = %v, %q", server, err, out.String())
		}
	}
}

func TestStreamEndsWithTheGateway(t *testing.T) {
	begun := make(chan struct{})
	path, stop := running(t, func(context.Context, StreamRequest) (func(context.Context, io.Reader, io.Writer) error, error) {
		return func(ctx context.Context, r io.Reader, _ io.Writer) error {
			close(begun)
			<-ctx.Done()
			return nil
		}, nil
	})
	in, feed := io.Pipe()
	defer feed.Close()
	done := make(chan error, 1)
	go func() { done <- Stream(context.Background(), path, StreamRequest{}, in, io.Discard) }()
	<-begun
	stop()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("Stream = %v", err)
	}
	if err := Stream(ctxFor(t), path, StreamRequest{}, in, io.Discard); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Stream to nobody = %v", err)
	}
}

// TestStreamsEndWhenIdle checks that a stopping gateway accepts no more
// connections and closes its streams when no call is in flight.
func TestStreamsEndWhenIdle(t *testing.T) {
	path := filepath.Join(folder(t), "s.sock")
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	begun, asked := make(chan context.Context, 1), make(chan struct{}, 1)
	var idle atomic.Bool
	s := New(Options{
		HTTP: http.NotFoundHandler(), Version: "1", Log: slog.New(slog.DiscardHandler),
		Drain: func(ctx context.Context) {
			AwaitIdle(ctx, func() bool {
				select {
				case asked <- struct{}{}:
				default:
				}
				return idle.Load()
			})
		},
		Open: func(context.Context, StreamRequest) (func(context.Context, io.Reader, io.Writer) error, error) {
			return func(ctx context.Context, _ io.Reader, _ io.Writer) error {
				begun <- ctx
				<-ctx.Done()
				return nil
			}, nil
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	in, feed := io.Pipe()
	defer feed.Close()
	ended := make(chan error, 1)
	go func() { ended <- Stream(context.Background(), path, StreamRequest{}, in, io.Discard) }()
	stream := <-begun
	cancel()
	<-asked
	if err := stream.Err(); err != nil {
		t.Errorf("the stream ended during a call: %v", err)
	}
	if err := Stream(ctxFor(t), path, StreamRequest{}, in, io.Discard); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a stream to a gateway that stops = %v", err)
	}
	idle.Store(true)
	if err := <-done; err != nil {
		t.Errorf("Serve = %v", err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("Stream = %v", err)
	}
}

func TestStreamEndsWithItsContext(t *testing.T) {
	begun := make(chan struct{}, 1)
	path, _ := running(t, func(context.Context, StreamRequest) (func(context.Context, io.Reader, io.Writer) error, error) {
		return func(ctx context.Context, r io.Reader, _ io.Writer) error {
			begun <- struct{}{}
			_, err := io.ReadAll(r)
			return err
		}, nil
	})
	in, feed := io.Pipe()
	defer feed.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-begun; cancel() }()
	if err := Stream(ctx, path, StreamRequest{}, in, io.Discard); err != nil && !errors.Is(err, ErrNotRunning) {
		t.Errorf("Stream = %v", err)
	}
}

func TestHTTPOverSocket(t *testing.T) {
	path, stop := running(t, nil)
	c := Client(path)
	for range 3 {
		resp, err := c.Get("http://junctor/api/x")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != "GET /api/x local" {
			t.Errorf("got %s", b)
		}
	}
	stop()
	if _, err := c.Get("http://junctor/"); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
}

func TestInvalidGreetingsAreRefused(t *testing.T) {
	path, _ := running(t, nil)
	for text, want := range map[string]string{
		"JUNCTOR/9 {}\n":      "speaks JUNCTOR/1",
		"JUNCTOR/1 {broken\n": "read the greeting",
		"JUNCTOR/1 " + strings.Repeat("x", 2*maxLine) + "\n": "too long",
	} {
		c, err := Dial(ctxFor(t), path)
		if err != nil {
			t.Fatal(err)
		}
		go io.WriteString(c, text)
		b, _ := io.ReadAll(c)
		c.Close()
		if !strings.Contains(string(b), want) {
			t.Errorf("%.20q is answered %q, want %q", text, b, want)
		}
	}
	c, err := Dial(ctxFor(t), path)
	if err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("JUN"))
	c.Close() // its goroutine must end, too: running waits for it
}

// A gateway of an incompatible version is rejected.
func TestGatewayOfOtherVersionIsRefused(t *testing.T) {
	path := filepath.Join(folder(t), "s.sock")
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for _, answer := range []string{"what?\n", ""} {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = readLine(bufio.NewReader(c))
			io.WriteString(c, answer)
			c.Close()
		}
	}()
	if _, ok := errors.AsType[*Refused](Stream(ctxFor(t), path, StreamRequest{}, strings.NewReader(""), io.Discard)); !ok {
		t.Error("spoken to")
	}
	if err := Stream(ctxFor(t), path, StreamRequest{}, strings.NewReader(""), io.Discard); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Stream = %v", err)
	}
}

// Connections that arrive while the server stops are closed.
func TestConnectionsDuringShutdownAreClosed(t *testing.T) {
	done := make(chan struct{})
	close(done)
	f := &connQueue{addr: &net.UnixAddr{Name: "x"}, conns: make(chan net.Conn), done: done}
	a, b := net.Pipe()
	defer b.Close()
	f.push(a)
	if _, err := a.Write([]byte("x")); err == nil {
		t.Error("the connection is still open")
	}
	if f.Addr().String() != "x" {
		t.Error("another address")
	}
}
