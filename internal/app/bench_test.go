package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"junctor/internal/config"
	"junctor/internal/httpserver"
	"junctor/internal/telemetry"
	"junctor/internal/upstream/upstreamtest"
)

// openBench runs a gateway with one HTTP upstream, in the same process.
func openBench(b *testing.B) *App {
	far := upstreamtest.Listen(b, upstreamtest.Script{})
	file := filepath.Join(b.TempDir(), "junctor.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers":{"far":{"url":%q,"proxy":true}}}`, far.URL), 0o600); err != nil {
		b.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{File: file})
	if err != nil {
		b.Fatal(err)
	}
	redactor, err := telemetry.NewRedactor(cfg.Security.RedactConfig)
	if err != nil {
		b.Fatal(err)
	}
	a, err := Open(b.Context(), Options{
		Config: cfg, DataDir: b.TempDir(), Redactor: redactor,
		Log: telemetry.NewLogger(telemetry.LogOptions{Output: io.Discard, Redactor: redactor, Level: new(slog.LevelVar)}),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done; a.Close() })
	return a
}

// BenchmarkCall measures a call without the client's network: the executor,
// recording in the store, the log, and the connection to an HTTP upstream in
// the same process.
func BenchmarkCall(b *testing.B) {
	a := openBench(b)
	client := a.LocalClient()
	call := func() {
		res, err := client.Post("http://junctor/api/mcp/far/proxy", "application/json",
			strings.NewReader(`{"method":"tools/call","id":1,"params":{"name":"echo","arguments":{"text":"The quick brown fox jumps over the lazy dog."}}}`))
		if err != nil {
			b.Error(err)
			return
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			b.Errorf("%s, %v", res.Status, err)
		}
	}
	call()
	b.ReportAllocs()
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			call()
		}
	})
}

// BenchmarkMCP measures a stateless call through all handlers of a listener,
// without the client's connection. Its allocations include those of the
// upstream.
func BenchmarkMCP(b *testing.B) {
	a := openBench(b)
	gate, err := a.newGate(b.Context(), "127.0.0.1:80")
	if err != nil {
		b.Fatal(err)
	}
	handler := httpserver.New(a.handler(gate), a.log).Handler
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"The quick brown fox jumps over the lazy dog."},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}`
	call := func() {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:80/mcp/far", strings.NewReader(body))
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"echo"},
		}
		w := deadlineRecorder{httptest.NewRecorder()}
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
	call()
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

// deadlineRecorder supports deadlines, as the response writer of a connection
// does.
type deadlineRecorder struct{ *httptest.ResponseRecorder }

func (deadlineRecorder) SetReadDeadline(time.Time) error  { return nil }
func (deadlineRecorder) SetWriteDeadline(time.Time) error { return nil }
