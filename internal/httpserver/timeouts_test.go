package httpserver

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// dial opens a line to a server and writes to it.
func dialRaw(t *testing.T, ts *httptest.Server, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestSlowBodyTimesOut(t *testing.T) {
	read := make(chan error, 1)
	ts := httptest.NewServer(timeouts{body: 100 * time.Millisecond, write: time.Minute}.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
	})))
	defer ts.Close()
	dialRaw(t, ts, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nslow")
	if err := <-read; err == nil {
		t.Error("the body was waited for")
	}
}

// TestBodyDeadlineDoesNotEndCall keeps the deadline of a body from ending the call
// that it began.
func TestBodyDeadlineDoesNotEndCall(t *testing.T) {
	const body = 100 * time.Millisecond
	ts := httptest.NewServer(timeouts{body: body, write: time.Minute}.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		select {
		case <-r.Context().Done():
			t.Error("the call was cancelled")
		case <-time.After(3 * body):
		}
		fmt.Fprint(w, "done")
	})))
	defer ts.Close()
	for range 2 { // the second on the same line
		resp, err := http.Post(ts.URL, "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != "done" {
			t.Errorf("answer %q", b)
		}
		resp.Body.Close()
	}
}

func TestUnreadResponseTimesOut(t *testing.T) {
	failed := make(chan error, 1)
	ts := httptest.NewServer(timeouts{body: time.Minute, write: 100 * time.Millisecond}.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1<<20)
		for {
			if _, err := w.Write(chunk); err != nil {
				failed <- err
				return
			}
		}
	})))
	defer ts.Close()
	dialRaw(t, ts, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-failed
}

// TestIdleStreamIsNotTimedOut write seldom, and end without a write.
func TestIdleStreamIsNotTimedOut(t *testing.T) {
	const within = 100 * time.Millisecond
	ts := httptest.NewServer(timeouts{body: time.Minute, write: within}.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			fmt.Fprintln(w, "piece")
			w.(http.Flusher).Flush()
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			<-time.After(2 * within)
		}
	})))
	defer ts.Close()
	resp, err := http.Get(ts.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "piece\npiece\npiece\n" {
		t.Errorf("stream %q, %v", b, err)
	}
}

// TestUpgradedConnectionsHaveNoDeadline pass: the deadlines of HTTP do not hold for them.
func TestUpgradedConnectionsHaveNoDeadline(t *testing.T) {
	const within = 50 * time.Millisecond
	ts := httptest.NewServer(timeouts{body: within, write: within}.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		_, data, err := c.Read(r.Context())
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.Write(r.Context(), websocket.MessageText, data)
	})))
	defer ts.Close()
	c, _, err := websocket.Dial(t.Context(), ts.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	<-time.After(3 * within)
	if err := c.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, data, err := c.Read(t.Context()); err != nil || string(data) != "hello" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestSlowHeadersTimeOut(t *testing.T) {
	server := New(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if server.ReadHeaderTimeout <= 0 || server.ReadHeaderTimeout > time.Minute || server.MaxHeaderBytes > 1<<20 {
		t.Errorf("headers may take %s and have %d bytes", server.ReadHeaderTimeout, server.MaxHeaderBytes)
	}
	server.ReadHeaderTimeout = 100 * time.Millisecond
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = server
	ts.Start()
	defer ts.Close()
	conn := dialRaw(t, ts, "GET / HTTP/1.1\r\nX-Slow: ")
	if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
		t.Log("answered before it closed") // some versions say why
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Error(err)
	}
}
