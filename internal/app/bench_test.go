package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/config"
	"junctor/internal/telemetry"
	"junctor/internal/upstream/upstreamtest"
)

// BenchmarkCall takes a call through everything but the network of the face:
// the executor with its record in the store, the log, and the wire to an HTTP
// upstream in the same process.
func BenchmarkCall(b *testing.B) {
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
	defer func() { cancel(); <-done; a.Close() }()
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
