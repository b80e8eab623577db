package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	"junctor/internal/control"
	"junctor/internal/discovery"
	"junctor/internal/httpserver"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/search"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

func TestServesWithNothingConfigured(t *testing.T) {
	r := start(t, `{}`, t.TempDir())
	code, body := r.ask("POST", "/api/call", `{"tool":"calculate","arguments":{"expression":"6*7"}}`)
	if code != 200 || !strings.Contains(body, `"text":"42"`) {
		t.Fatalf("call: %d %s", code, body)
	}
	if code, body := r.ask("GET", "/", ""); code != 200 || !strings.Contains(body, "<html") {
		t.Errorf("page: %d", code)
	}
	if code, body := r.ask("GET", "/metrics", ""); code != 200 || !strings.Contains(body, `junctor_calls_total{server="junctor",status="ok",tool="calculate"} 1`) {
		t.Errorf("metrics: %d %.300s", code, body)
	}
	if _, body := r.ask("POST", "/api/call", `{"tool":"status"}`); !strings.Contains(body, `junctor`) {
		t.Errorf("status tool: %s", body)
	}
	calls, err := r.store.Calls(t.Context(), store.CallQuery{})
	if err != nil || len(calls) != 2 || !strings.HasPrefix(calls[0].Caller, "key:fixed-admin-") || calls[0].Face != "control" {
		t.Errorf("call log: %+v, %v", calls, err)
	}
}

func TestRestartServesToolsBeforeAnyServerAnswers(t *testing.T) {
	data := t.TempDir()
	slow := upstreamtest.Stdio(t, "slow", upstreamtest.Script{})
	cfg := fmt.Sprintf(`{"mcpServers":{"slow":%s}}`, entry(t, slow))
	first := start(t, cfg, data)
	if code, body := first.ask("POST", "/api/call", `{"server":"slow","tool":"echo","arguments":{"text":"hi"}}`); code != 200 {
		t.Fatalf("call: %d %s", code, body)
	}
	first.stop()

	kept, _, err := config.Load(config.Options{File: first.file})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), Options{Config: kept, DataDir: data, Log: slog.New(slog.DiscardHandler), Redactor: &telemetry.Redactor{}})
	if err != nil {
		t.Fatal(err)
	}
	if s := again.catalog.Snapshot().Server("slow"); s == nil || len(s.Tools) == 0 { // no server has been started
		t.Error("the tools of the last run are not there")
	}
	if hits, err := again.search.Search(searchFor("echo")); err != nil || len(hits) == 0 {
		t.Errorf("search finds %v, %v", hits, err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}

	for name, cache := range map[string]discovery.CacheConfig{"switched off": {TTL: 3600}, "out of date": {Enabled: true, TTL: 0}} {
		kept.Discovery.Cache = cache
		without, err := Open(t.Context(), Options{Config: kept, DataDir: data, Log: slog.New(slog.DiscardHandler), Redactor: &telemetry.Redactor{}})
		if err != nil {
			t.Fatal(err)
		}
		if without.catalog.Snapshot().Server("slow") != nil {
			t.Errorf("%s: the tools of the last run are there", name)
		}
		if err := without.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReloadTouchesOnlyWhatChanged(t *testing.T) {
	one := upstreamtest.Stdio(t, "one", upstreamtest.Script{})
	two := upstreamtest.Stdio(t, "two", upstreamtest.Script{})
	r := start(t, fmt.Sprintf(`{"mcpServers":{"one":%s}}`, entry(t, one)), t.TempDir())
	pid := func(name string) int { s, _ := r.upstreams.StatusOf(name); return s.PID }
	eventually(t, "one connects", func() bool { s, _ := r.upstreams.StatusOf("one"); return s.State == upstream.Connected })
	before := pid("one")

	r.write(fmt.Sprintf(`{"mcpServers":{"one":%s,"two":%s},"toolRules":[{"pattern":["one:fail"],"enabled":false}]}`, entry(t, one), entry(t, two)))
	eventually(t, "two connects", func() bool { s, ok := r.upstreams.StatusOf("two"); return ok && s.State == upstream.Connected })
	eventually(t, "the rule holds", func() bool {
		e := r.catalog.Snapshot().Lookup(tool.Name{Server: "one", Tool: "fail"})
		return e != nil && !e.Enabled
	})
	if after := pid("one"); after != before {
		t.Errorf("one was restarted: process %d, then %d", before, after)
	}

	r.write(`{"mcpServers": {"one": {"comand": 1}}}`)
	eventually(t, "the broken file is reported", func() bool { return strings.Contains(r.log.String(), "configuration not applied") })
	if code, body := r.ask("POST", "/api/call", `{"server":"two","tool":"echo"}`); code != 200 {
		t.Errorf("after a broken file: %d %s", code, body)
	}
	if after := pid("one"); after != before {
		t.Error("a broken file restarted a server")
	}
}

// A client on stdio applies changes of the file without another gateway.
func TestReloadReachesAClientOnStdio(t *testing.T) {
	file := filepath.Join(t.TempDir(), "junctor.json")
	one, two := upstreamtest.Stdio(t, "one", upstreamtest.Script{}), upstreamtest.Stdio(t, "two", upstreamtest.Script{})
	write := func(cfg string) {
		if err := os.WriteFile(file, []byte(cfg), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(fmt.Sprintf(`{"mcpServers":{"one":%s}}`, entry(t, one)))
	o := config.Options{File: file}
	loaded, _, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), Options{Config: loaded, Reload: o, DataDir: t.TempDir(), Environ: os.Environ(), Log: slog.New(slog.DiscardHandler), Redactor: &telemetry.Redactor{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	wg.Go(func() {
		if err := a.Host(ctx, discovery.View{Mode: discovery.DirectMode}, in, out, "", nil, func() {}); err != nil && ctx.Err() == nil {
			t.Errorf("Host: %v", err)
		}
	})
	c, err := mcpclient.Connect(t.Context(), mcpclient.OverLink(mcp.NewStream(fromServer, toServer, mcp.StreamOptions{})), mcpclient.Options{Name: "test", DiscoverTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lists := func(name string) func() bool {
		return func() bool {
			got, err := c.Do(t.Context(), tool.Request{Method: "tools/list"})
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(got), `"`+name+`"`)
		}
	}
	eventually(t, "the tools of the first server", lists("one__echo"))
	write(fmt.Sprintf(`{"mcpServers":{"one":%s,"two":%s}}`, entry(t, one), entry(t, two)))
	eventually(t, "the tools of the second server", lists("two__echo"))
}

func TestCallsInFlightFinishWhenTheGatewayStops(t *testing.T) {
	slow := upstreamtest.Listen(t, upstreamtest.Script{})
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	slow.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(b))
		if strings.Contains(string(b), "tools/call") {
			once.Do(func() { close(begun) })
			<-goOn
		}
		return false
	}
	r := start(t, fmt.Sprintf(`{"mcpServers":{"slow":%s}}`, entry(t, slow.Config("slow"))), t.TempDir())
	answer := make(chan string, 1)
	go func() {
		_, body := r.ask("POST", "/api/call", `{"server":"slow","tool":"echo","arguments":{"text":"done"}}`)
		answer <- body
	}()
	<-begun
	stopped := make(chan struct{})
	go func() { r.stop(); close(stopped) }()
	eventually(t, "no new connections", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	close(goOn)
	if body := <-answer; !strings.Contains(body, "done") {
		t.Errorf("the call in flight got %s", body)
	}
	<-stopped
}

func TestServersAreManagedOverHTTP(t *testing.T) {
	good := entry(t, upstreamtest.Stdio(t, "x", upstreamtest.Script{}))
	r := start(t, "{\n  // keep this comment\n  \"mcpServers\": {}\n}", t.TempDir())
	for name, body := range map[string]string{
		"map":  fmt.Sprintf(`{"servers":{"mcpServers":{"a":%s}}}`, good),
		"code": fmt.Sprintf(`{"servers":{"servers":{"b":%s},"inputs":[]}}`, good),
		"bare": fmt.Sprintf(`{"servers":{"c":%s}}`, good),
		"one":  fmt.Sprintf(`{"servers":{"name":"d",%s}`, strings.TrimPrefix(good, "{")) + "}",
	} {
		if code, answer := r.ask("POST", "/api/servers", body); code != 200 {
			t.Errorf("%s: %d %s", name, code, answer)
		}
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if code, body := r.ask("POST", "/api/call", fmt.Sprintf(`{"server":%q,"tool":"echo"}`, name)); code != 200 {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	for name, tt := range map[string]struct {
		method, path, body string
		status             int
	}{
		"taken":           {"POST", "/api/servers", fmt.Sprintf(`{"servers":{"a":%s}}`, good), 400},
		"replaced":        {"POST", "/api/servers", fmt.Sprintf(`{"replace":true,"servers":{"a":%s}}`, good), 200},
		"nothing in it":   {"POST", "/api/servers", `{"servers":{}}`, 400},
		"not an object":   {"POST", "/api/servers", `{"servers":[1]}`, 400},
		"a nameless one":  {"POST", "/api/servers", `{"servers":{"command":"x"}}`, 400},
		"a broken one":    {"POST", "/api/servers", `{"servers":{"z":{"comand":"x"}}}`, 400},
		"unknown":         {"DELETE", "/api/servers/nope", "", 404},
		"off":             {"PATCH", "/api/servers/b", `{"enabled":false}`, 200},
		"off how":         {"PATCH", "/api/servers/b", `{}`, 400},
		"removed":         {"DELETE", "/api/servers/c", "", 200},
		"restarted":       {"POST", "/api/servers/d/restart", "", 200},
		"unknown restart": {"POST", "/api/servers/nope/restart", "", 404},
	} {
		if code, body := r.ask(tt.method, tt.path, tt.body); code != tt.status {
			t.Errorf("%s: %d %s, want %d", name, code, body, tt.status)
		}
	}
	eventually(t, "b is off", func() bool { s, _ := r.upstreams.StatusOf("b"); return s.State == upstream.Disabled })
	if _, ok := r.upstreams.StatusOf("c"); ok {
		t.Error("c is still there")
	}
	text, err := os.ReadFile(r.file)
	if err != nil || !strings.Contains(string(text), "// keep this comment") {
		t.Errorf("the file lost its comment: %s", text)
	}
	if _, body := r.ask("GET", "/api/config", ""); !strings.Contains(body, `"settings"`) {
		t.Errorf("config: %s", body)
	}
	var list struct{ Connections []map[string]any }
	_, body := r.ask("GET", "/api/connections", "")
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Connections) != 3 {
		t.Errorf("connections: %s", body)
	}
	if code, _ := r.ask("GET", "/api/mcp/a/proxy/status", ""); code != 200 {
		t.Error("no proxy status")
	}
}

func TestSecretsAreNeverDisclosed(t *testing.T) {
	const canary = "canary-5f3a9d-secret-value"
	up := upstreamtest.Listen(t, upstreamtest.Script{})
	up.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "Bearer "+canary {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	}
	cfg := fmt.Sprintf(`{"mcpServers":{"s":{"url":%q,"authorization_token":%q}},"log":{"level":"trace"}}`, up.URL, canary)
	r := start(t, cfg, t.TempDir())
	var seen strings.Builder
	for _, q := range [][3]string{
		{"POST", "/api/call", `{"server":"s","tool":"echo","arguments":{"text":"` + canary + `"}}`},
		{"POST", "/api/call", `{"server":"s","tool":"refuse","arguments":{"text":"` + canary + `"}}`},
		{"GET", "/api/config", ""}, {"GET", "/api/servers", ""}, {"GET", "/api/status", ""}, {"GET", "/api/mcp/s/proxy/status", ""},
	} {
		_, body := r.ask(q[0], q[1], q[2])
		if q[1] != "/api/call" { // the result of a call is not redacted for its caller
			seen.WriteString(body)
		}
	}
	calls, err := r.store.Calls(t.Context(), store.CallQuery{})
	if err != nil || len(calls) != 2 {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	for _, c := range calls {
		b, _ := json.Marshal(c)
		seen.Write(b)
	}
	seen.WriteString(r.log.String())
	if strings.Contains(seen.String(), canary) {
		i := strings.Index(seen.String(), canary)
		t.Errorf("the secret got out: …%s…", seen.String()[max(0, i-200):i+40])
	}
}

func TestPanicFailsOnlyItsRequest(t *testing.T) {
	r := start(t, `{}`, t.TempDir())
	h := httpserver.Wrap(r.App.log, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))
	client := &http.Client{Transport: httpserver.InProcess{Handler: h}}
	res, err := client.Get("http://junctor/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	if res.StatusCode != 500 || strings.Contains(string(b), "boom") || !strings.Contains(r.log.String(), "boom") {
		t.Errorf("%d %s", res.StatusCode, b)
	}
}

func TestLocalClientStreams(t *testing.T) {
	r := start(t, `{}`, t.TempDir())
	res, err := r.LocalClient().Get("http://junctor/api/tools?query=time&wait")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var list control.ToolList
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil || len(list.Tools) == 0 || list.Tools[0].Name != "junctor:time" {
		t.Errorf("search: %+v, %v", list, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hang := &http.Client{Transport: httpserver.InProcess{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}}
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://junctor/", nil)
	if _, err := hang.Do(req); err == nil {
		t.Error("a request that was cancelled got an answer")
	}
}

func searchFor(text string) search.Query { return search.Query{Text: text} }

// TestListenersShareTheirAPIs sends requests to the broker on one listener and
// reads the count on another.
func TestListenersShareTheirAPIs(t *testing.T) {
	server := upstreamtest.Stdio(t, "files", upstreamtest.Script{})
	text := strings.TrimSuffix(entry(t, server), "}") + `,"proxy":true}`
	r := start(t, fmt.Sprintf(`{"mcpServers":{"files":%s}}`, text), t.TempDir())
	if code, body := r.ask("POST", "/api/mcp/files/proxy", `{"method":"tools/list"}`); code != 200 {
		t.Fatalf("proxy: %d %s", code, body)
	}
	status := func(client *http.Client, base string) string {
		req, err := http.NewRequestWithContext(t.Context(), "GET", base+"/api/mcp/files/proxy/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-API-Key", "admin-key-for-the-tests")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	one, other := status(http.DefaultClient, r.url), status(r.LocalClient(), "http://local")
	if one != other || !strings.Contains(one, `"proxyRequestCount":1`) {
		t.Errorf("TCP says %s, the local client %s", one, other)
	}
}
