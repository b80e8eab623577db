package httpserver

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/httpstream"
	"junctor/internal/tool"
)

// StreamLimit limits the streamed responses of each caller, over all listeners
// that share it. Streams of MCP are limited by the number of sessions, and
// chats by package chat, because one of their callers may represent thousands
// of people.
type StreamLimit struct {
	mu   sync.Mutex
	open map[string]int
}

// isStream reports whether the response may be a stream that counts.
func isStream(r *http.Request) bool {
	switch {
	case r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, "/mcp/"), r.URL.Path == "/ws":
		return false
	case strings.HasPrefix(r.URL.Path, "/ws/"):
		return true
	}
	return httpstream.Accepted(r) != httpstream.None
}

// Wrap rejects a stream if its caller already has as many open as limit
// returns; 0 means no limit.
func (s *StreamLimit) Wrap(limit func() int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isStream(r) {
			next.ServeHTTP(w, r)
			return
		}
		caller := tool.CallerFrom(r.Context()).ID
		if max := limit(); !s.take(caller, max) {
			httperr.Write(w, r, &tool.Error{
				Kind: tool.RateLimited, RetryAfter: time.Second,
				Msg: fmt.Sprintf("%d streams are open for this caller, as many as limits.maxStreamsPerCaller allows", max),
			})
			return
		}
		defer s.release(caller)
		next.ServeHTTP(w, r)
	})
}

func (s *StreamLimit) take(caller string, max int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if max > 0 && s.open[caller] >= max {
		return false
	}
	if s.open == nil {
		s.open = map[string]int{}
	}
	s.open[caller]++
	return true
}

// Open returns the number of open streams of all callers.
func (s *StreamLimit) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, open := range s.open {
		n += open
	}
	return n
}

func (s *StreamLimit) release(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[caller]--; s.open[caller] == 0 {
		delete(s.open, caller)
	}
}
