//go:build unix

package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"syscall"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// echoLink is a server that answers every request, in process.
func echoLink(link mcp.Link) {
	for {
		m, err := link.Receive()
		if err != nil {
			return
		}
		switch {
		case m.Method == "server/discover":
			m = mcp.Message{ID: m.ID, Error: &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "no"}}
		case m.Method == "initialize":
			m = mcp.Message{ID: m.ID, Result: json.RawMessage(initResult)}
		case m.IsRequest():
			m = mcp.Message{ID: m.ID, Result: json.RawMessage(`{"content":[{"type":"text","text":"hello"}]}`)}
		default:
			continue
		}
		if link.Send(&m) != nil {
			return
		}
	}
}

func benchCalls(b *testing.B, c *Client) {
	r := tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"echo","arguments":{"message":"hello"},"_meta":{"progressToken":1}}`)}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Do(context.Background(), r); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkCallPipe(b *testing.B) {
	near, far := mcp.Pipe()
	go echoLink(far)
	c, err := Connect(b.Context(), OverLink(near), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	benchCalls(b, c)
}

func BenchmarkCallStream(b *testing.B) {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	go echoLink(mcp.NewStream(toServer, fromServer, mcp.StreamOptions{}))
	c, err := Connect(b.Context(), OverLink(mcp.NewStream(toClient, fromClient, mcp.StreamOptions{})), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	benchCalls(b, c)
}

// benchUpstream answers like a stateless server, as JSON or as a stream.
func benchUpstream(stream bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(r.Body)
		m, _ := mcp.Decode(body, mcp.Limits{})
		result := `{"content":[{"type":"text","text":"hello"}]}`
		switch m.Method {
		case "server/discover":
			w.WriteHeader(http.StatusBadRequest)
			return
		case "initialize":
			plain(w, m, initResult)
			return
		case "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, result)
			return
		}
		plain(w, m, result)
	})
}

func cpuTime() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkForward compares the cost of a call without a proxy (direct),
// through httputil.ReverseProxy, and through a handler that reads the message,
// makes the call with a Client and writes the response.
func BenchmarkForward(b *testing.B) {
	for _, stream := range []bool{false, true} {
		kind := map[bool]string{false: "json", true: "sse"}[stream]
		up := httptest.NewServer(benchUpstream(stream))
		defer up.Close()
		target, err := url.Parse(up.URL)
		if err != nil {
			b.Fatal(err)
		}
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: NewRoundTripper(nil)}
		c, err := Connect(b.Context(), NewHTTP(HTTPOptions{URL: up.URL}), Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		ours := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var buf bytes.Buffer
			if _, err := buf.ReadFrom(r.Body); err != nil {
				return
			}
			m, err := mcp.Decode(buf.Bytes(), mcp.Limits{})
			if err != nil {
				return
			}
			result, err := c.Do(r.Context(), tool.Request{Method: m.Method, Params: m.Params})
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Write(mcp.AppendMessage(nil, &mcp.Message{ID: m.ID, Result: result}))
		})
		for _, tt := range []struct {
			name string
			h    http.Handler
		}{{"direct", nil}, {"reverse-proxy", proxy}, {"client", ours}} {
			b.Run(kind+"/"+tt.name, func(b *testing.B) {
				url := up.URL
				if tt.h != nil {
					front := httptest.NewServer(tt.h)
					defer front.Close()
					url = front.URL
				}
				client := &http.Client{Transport: NewRoundTripper(nil)}
				body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}`)
				b.SetParallelism(8)
				b.ReportAllocs()
				b.ResetTimer()
				start := cpuTime()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						req, _ := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
						req.Header.Set("Content-Type", "application/json")
						req.Header.Set("Accept", "application/json, text/event-stream")
						resp, err := client.Do(req)
						if err != nil {
							b.Error(err)
							return
						}
						answer, _ := io.ReadAll(resp.Body)
						resp.Body.Close()
						if !bytes.Contains(answer, []byte("hello")) {
							b.Errorf("%d %s", resp.StatusCode, answer)
							return
						}
					}
				})
				b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
