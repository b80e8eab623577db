package http1

import (
	"net/http"
	"testing"
	"time"
)

func TestKeepAliveHint(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"": 0, "timeout=5": 5 * time.Second, "max=3, Timeout=20": 20 * time.Second, "timeout=0": 1, "timeout=x": 0, "timeout=-1": 0, "max=5": 0,
	} {
		if got := keepAliveHint(header); got != want {
			t.Errorf("keepAliveHint(%q) = %s, want %s", header, got, want)
		}
	}
	tr := New(&http.Transport{IdleConnTimeout: time.Hour})
	for hint, want := range map[time.Duration]time.Duration{0: 2500 * time.Millisecond, time.Minute: 30 * time.Second, 5 * time.Second: 2500 * time.Millisecond, 1: 0} {
		if got := tr.keepFor(&conn{hint: hint}); got != want {
			t.Errorf("keepFor of %s = %s, want %s", hint, got, want)
		}
	}
}
