package telemetry

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	b, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("scrape: %d, %v", w.Code, err)
	}
	return string(b)
}

func TestMetrics(t *testing.T) {
	m := NewMetrics("v1.2.3")
	end := m.Begin()
	m.Call("tools", "github", "create", "ok", "", 30*time.Millisecond)
	m.Call("tools", "github", "create", "failed", "TIMEOUT", time.Second)
	m.Upstream("github", "connecting", 0)
	m.Upstream("github", "connected", 51)
	m.Connected("github")
	m.Circuit("github", "create", CircuitOpen)
	m.Circuit("github", "other_tool", CircuitClosed)
	m.Sessions("chat", func() int { return 2 })
	m.Sessions("mcp", func() int { return 0 })
	m.Dropped("log line")
	m.Tokens("gpt", 10, 20)
	text := scrape(t, m)
	for _, want := range []string{
		`junctor_calls_total{server="github",status="ok",tool="create"} 1`,
		`junctor_calls_total{server="github",status="failed",tool="create"} 1`,
		`junctor_call_failures_total{kind="TIMEOUT",server="github"} 1`,
		`junctor_call_duration_seconds_bucket{face="tools",server="github",le="0.05"} 1`,
		`junctor_call_duration_seconds_count{face="tools",server="github"} 2`,
		`junctor_calls_in_flight 1`,
		`junctor_upstream_state{server="github",state="connected"} 1`,
		`junctor_upstream_tools{server="github"} 51`,
		`junctor_upstream_connects_total{server="github"} 1`,
		`junctor_circuit_state{server="github",tool="create"} 2`,
		`junctor_sessions{kind="chat"} 2`,
		`junctor_dropped_total{what="log line"} 1`,
		`junctor_model_tokens_total{direction="written",model="gpt"} 20`,
		`junctor_build_info{version="v1.2.3"} 1`,
		`go_goroutines`, `process_resident_memory_bytes`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if strings.Contains(text, `state="connecting"`) || strings.Contains(text, "other_tool") {
		t.Errorf("a former state or a closed circuit is shown:\n%s", text)
	}
	end()
	m.Circuit("github", "create", CircuitClosed)
	m.Forget("github")
	if text := scrape(t, m); strings.Contains(text, "github") || !strings.Contains(text, "junctor_calls_in_flight 0") {
		t.Errorf("traces of a forgotten upstream:\n%s", text)
	}
}

// TestMetricsBounded: the number of series is bounded for any number of names.
func TestMetricsBounded(t *testing.T) {
	m := NewMetrics("v")
	m.limit = 10
	for i := range 100 {
		m.Call("tools", "s", fmt.Sprintf("tool%d", i), "ok", "", 0)
		m.Circuit("s", fmt.Sprintf("tool%d", i), CircuitOpen)
	}
	text := scrape(t, m)
	if n := strings.Count(text, "junctor_calls_total{"); n != 11 {
		t.Errorf("%d series of calls, want 10 tools and the others", n)
	}
	if !strings.Contains(text, `junctor_calls_total{server="s",status="ok",tool="other"} 90`) {
		t.Error("the others are not counted together")
	}
	m.Forget("s")
	m.Call("tools", "s", "fresh", "ok", "", 0)
	m.Call("tools", "s", "tool1", "ok", "", 0)
	text = scrape(t, m)
	if !strings.Contains(text, `tool="fresh"`) {
		t.Error("a forgotten upstream still takes up room")
	}
	if !strings.Contains(text, `junctor_calls_total{server="s",status="ok",tool="tool1"} 1`) {
		t.Errorf("a call of an upstream that is configured again is not counted from zero:\n%s", text)
	}
}

func TestNilMetrics(t *testing.T) {
	var m *Metrics
	m.Begin()()
	m.Call("f", "s", "t", "ok", "", 0)
	m.Upstream("s", "x", 1)
	m.Connected("s")
	m.Circuit("s", "t", CircuitOpen)
	m.Sessions("k", func() int { return 1 })
	m.Dropped("x")
	m.Tokens("m", 1, 1)
	m.Forget("s")
}
