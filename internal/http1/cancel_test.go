package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

func TestCancellation(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	for name, tt := range map[string]struct {
		send string
		read bool // whether the response starts
	}{
		"before the head": {"", false},
		"in the head":     {"HTTP/1.1 200 OK\r\nContent", false},
		"in a length":     {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", true},
		"in a stream":     {head + "data: 1\n\n", true},
		"in chunks":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			asked := make(chan struct{})
			s := serve(t, func(c net.Conn, r *bufio.Reader, _ int) {
				if readRequest(r) == nil {
					return
				}
				_, _ = io.WriteString(c, tt.send)
				close(asked)
				_, _ = r.ReadByte() // until the client has disconnected
				close(gone)
			})
			tr := transport(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-asked
				if !tt.read {
					cancel()
				}
			}()
			resp, err := tr.RoundTrip(s.request("POST", "{}").WithContext(ctx))
			if tt.read {
				if err != nil {
					t.Fatal(err)
				}
				first := make([]byte, 1)
				if _, err := io.ReadFull(resp.Body, first); err != nil {
					t.Fatal(err)
				}
				cancel()
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("= %v", err)
			}
			<-gone
			if n := idleCount(tr); n != 0 {
				t.Errorf("%d idle connections", n)
			}
		})
	}
}

// Canceling the context after the response was read does not affect the
// connection, which may be in use by another request.
func TestLateCancellation(t *testing.T) {
	s := answerAll(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab")
	tr := transport(t)
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		started := make(chan struct{})
		wg.Go(func() { <-started; cancel() })
		resp, err := tr.RoundTrip(s.request("POST", "{}").WithContext(ctx))
		close(started)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err == nil && string(got) != "ab" || err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("= %q, %v", got, err)
		}
		wg.Wait()
		if _, got, err := do(t, tr, s.request("POST", "{}")); err != nil || got != "ab" {
			t.Fatalf("the next request = %q, %v", got, err)
		}
	}
}

func TestContextThatHasEnded(t *testing.T) {
	s := answerAll(t, "HTTP/1.1 204 No Content\r\n\r\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := transport(t).RoundTrip(s.request("POST", "{}").WithContext(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("= %v", err)
	}
	if n := s.conns.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// Closing a body early closes the connection, even during a read, and the body
// cannot be read afterwards.
func TestCloseEarly(t *testing.T) {
	s := serve(t, func(c net.Conn, r *bufio.Reader, _ int) {
		if readRequest(r) != nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
			_, _ = r.ReadByte()
		}
	})
	tr := transport(t)
	for range 20 {
		resp, err := tr.RoundTrip(s.request("POST", "{}"))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
		resp.Body.Close()
		wg.Wait()
		if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Fatalf("read after the end = %d, %v", n, err)
		}
	}
	if n := idleCount(tr); n != 0 {
		t.Errorf("%d idle connections", n)
	}
}
