package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/config"
	"junctor/internal/sqlite/sqlitetest"
	"junctor/internal/telemetry"
	"junctor/internal/toolsapi/openapitest"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

func TestMain(m *testing.M) {
	upstreamtest.Main()
	os.Exit(openapitest.Main(m, openAPIFile))
}

// fixture is a gateway on port 0 with its configuration in a file.
type fixture struct {
	*App
	t    *testing.T
	file string
	url  string
	log  *lockedBuffer
	stop context.CancelFunc
	done chan error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a gateway with the given configuration and data folder. change
// may modify its options.
func start(t *testing.T, cfg, data string, change ...func(*Options)) *fixture {
	t.Helper()
	r := &fixture{t: t, file: filepath.Join(t.TempDir(), "junctor.json"), log: &lockedBuffer{}, done: make(chan error, 1)}
	r.write(cfg)
	o := config.Options{File: r.file}
	loaded, _, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	redactor, err := telemetry.NewRedactor(loaded.Security.RedactConfig)
	if err != nil {
		t.Fatal(err)
	}
	var level slog.LevelVar
	level.Set(loaded.Log.Level.Slog())
	options := Options{
		Config: loaded, Reload: o, Version: "test", DataDir: data, Environ: os.Environ(), AdminKey: "admin-key-for-the-tests",
		Log:   telemetry.NewLogger(telemetry.LogOptions{Output: r.log, Level: &level, Redactor: redactor}),
		Level: &level, Redactor: redactor,
		DiscoverTimeout: time.Hour, // a slow machine must not make a server look silent
	}
	for _, f := range change {
		f(&options)
	}
	sqlitetest.Create(t, filepath.Join(options.DataDir, "junctor.db"))
	r.App, err = Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-r.done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	ready := make(chan struct{})
	go func() { r.done <- r.Serve(ctx, ln, func() error { close(ready); return nil }) }()
	t.Cleanup(r.stop)
	select {
	case <-ready:
	case err := <-r.done:
		r.done <- err // stop reports it
		t.FailNow()
	}
	return r
}

func (r *fixture) write(cfg string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(cfg), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// ask sends a request as an administrator and returns the status and the body.
func (r *fixture) ask(method, path, body string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-API-Key", "admin-key-for-the-tests")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// eventually waits until cond returns true.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatalf("never came: %s", what)
}

// entry returns an upstream as an entry of mcpServers.
func entry(t *testing.T, c upstream.Config) string {
	t.Helper()
	m := map[string]any{}
	if c.URL != "" {
		m["url"] = c.URL
	} else {
		env := map[string]string{}
		for k, v := range c.Env {
			env[k] = strings.ReplaceAll(v.Reveal(), "${", "$${")
		}
		m["command"], m["args"], m["env"], m["startTimeoutMs"] = c.Command, c.Args, env, c.StartTimeoutMs
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
