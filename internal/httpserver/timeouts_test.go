package httpserver

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/pipenettest"

	"github.com/coder/websocket"
)

const (
	bodyTime  = time.Minute
	writeTime = time.Minute
)

// serveTimed serves a handler with both timeouts in a synctest bubble.
func serveTimed(t *testing.T, h http.HandlerFunc) *pipenettest.Server {
	return pipenettest.Start(t, &http.Server{Handler: timeouts{body: bodyTime, write: writeTime}.wrap(h)})
}

// dialRaw connects to a server and writes text.
func dialRaw(t *testing.T, s *pipenettest.Server, text string) net.Conn {
	t.Helper()
	conn, err := s.Dial(t.Context())
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
	synctest.Test(t, func(t *testing.T) {
		read := make(chan error, 1)
		s := serveTimed(t, func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
		})
		begun := time.Now()
		conn := dialRaw(t, s, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nslow")
		if err := <-read; err == nil || time.Since(begun) != bodyTime {
			t.Errorf("the body ended after %s with %v", time.Since(begun), err)
		}
		_, _ = io.Copy(io.Discard, conn)
	})
}

// The read deadline of a body does not end its call.
func TestBodyDeadlineDoesNotEndCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveTimed(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			select {
			case <-r.Context().Done():
				t.Error("the call was cancelled")
			case <-time.After(3 * bodyTime):
			}
			fmt.Fprint(w, "done")
		})
		client := &http.Client{Transport: s.Transport(t)}
		for range 2 { // the second request reuses the connection
			resp, err := client.Post(pipenettest.URL, "text/plain", strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := io.ReadAll(resp.Body); string(b) != "done" {
				t.Errorf("answer %q", b)
			}
			resp.Body.Close()
		}
	})
}

func TestUnreadResponseTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 1)
		s := serveTimed(t, func(w http.ResponseWriter, r *http.Request) {
			chunk := make([]byte, 1<<20)
			for {
				if _, err := w.Write(chunk); err != nil {
					failed <- err
					return
				}
			}
		})
		begun := time.Now()
		dialRaw(t, s, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		<-failed
		if took := time.Since(begun); took != writeTime {
			t.Errorf("the write failed after %s", took)
		}
	})
}

// A stream may pause for longer than the write timeout, and may end without a
// write.
func TestIdleStreamIsNotTimedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveTimed(t, func(w http.ResponseWriter, r *http.Request) {
			for range 3 {
				fmt.Fprintln(w, "piece")
				w.(http.Flusher).Flush()
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * writeTime)
			}
		})
		client := &http.Client{Transport: s.Transport(t)}
		resp, err := client.Get(pipenettest.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "piece\npiece\npiece\n" {
			t.Errorf("stream %q, %v", b, err)
		}
	})
}

// deadlineRecorder records the write deadlines of a response.
type deadlineRecorder struct {
	http.ResponseWriter
	set []time.Time
}

func (d *deadlineRecorder) SetReadDeadline(time.Time) error { return nil }

func (d *deadlineRecorder) SetWriteDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

func (d *deadlineRecorder) Write(p []byte) (int, error) { return len(p), nil }

// A recent deadline is kept unless the handler has set another one.
func TestWriteDeadlineIsKeptForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var want []time.Time
		h := timeouts{write: writeTime}.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			write := func() { fmt.Fprint(w, "x") }
			write()
			want = append(want, time.Now().Add(writeTime))
			write()
			time.Sleep(writeTime / 2)
			write()
			want = append(want, time.Now().Add(writeTime))
			if err := control.SetWriteDeadline(time.Time{}); err != nil {
				t.Error(err)
			}
			want = append(want, time.Time{}, time.Now().Add(writeTime)) // the second after the handler has returned
		}))
		got := &deadlineRecorder{}
		h.ServeHTTP(got, &http.Request{})
		if !slices.Equal(got.set, want) {
			t.Errorf("deadlines %v, want %v", got.set, want)
		}
	})
}

func TestUpgradedConnectionsHaveNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveTimed(t, func(w http.ResponseWriter, r *http.Request) {
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
		})
		c, _, err := websocket.Dial(t.Context(), pipenettest.URL, &websocket.DialOptions{HTTPClient: &http.Client{Transport: s.Transport(t)}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		time.Sleep(3 * max(bodyTime, writeTime))
		if err := c.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, data, err := c.Read(t.Context()); err != nil || string(data) != "hello" {
			t.Errorf("%q, %v", data, err)
		}
	})
}

func TestSlowHeadersTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := New(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
		if server.ReadHeaderTimeout <= 0 || server.ReadHeaderTimeout > time.Minute || server.MaxHeaderBytes > 1<<20 {
			t.Errorf("headers may take %s and have %d bytes", server.ReadHeaderTimeout, server.MaxHeaderBytes)
		}
		s := pipenettest.Start(t, server)
		begun := time.Now()
		conn := dialRaw(t, s, "GET / HTTP/1.1\r\nX-Slow: ")
		if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
			t.Log("answered before it closed") // some versions send a response first
		}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != server.ReadHeaderTimeout {
			t.Errorf("the connection was closed after %s", took)
		}
	})
}
