package httpserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"junctor/internal/tool"
)

func TestStreamsPerCallerAreLimited(t *testing.T) {
	started, hold := make(chan struct{}), make(chan struct{})
	var s StreamLimit
	most := 2
	h := s.Wrap(func() int { return most }, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Hold") != "" {
			started <- struct{}{}
			<-hold
		}
	}))
	ask := func(caller, path, accept string, held bool) int {
		r := httptest.NewRequest("POST", path, nil)
		r = r.WithContext(tool.WithCaller(r.Context(), tool.Caller{ID: caller}))
		r.Header.Set("Accept", accept)
		if held {
			r.Header.Set("X-Hold", "1")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == 429 && w.Header().Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
		return w.Code
	}
	const events = "text/event-stream, application/json"
	done := make(chan int)
	for range 2 {
		go func() { done <- ask("a", "/api/mcp/x/proxy", events, true) }()
		<-started
	}
	for name, tt := range map[string]struct {
		caller, path, accept string
		want                 int
	}{
		"a third":         {"a", "/logs", "application/x-ndjson", 429},
		"a log's socket":  {"a", "/ws/logs", "", 429},
		"another caller":  {"b", "/logs", events, 200},
		"no stream":       {"a", "/logs", "application/json", 200},
		"MCP":             {"a", "/mcp", events, 200},
		"one MCP server":  {"a", "/mcp/x", events, 200},
		"a chat's socket": {"a", "/ws", "", 200},
	} {
		if got := ask(tt.caller, tt.path, tt.accept, false); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	close(hold)
	<-done
	<-done
	if got := ask("a", "/logs", events, false); got != 200 || len(s.open) != 0 {
		t.Errorf("afterwards: %d, %v", got, s.open)
	}
	most = 0
	if got := ask("a", "/logs", events, false); got != 200 {
		t.Errorf("without a limit: %d", got)
	}
}
