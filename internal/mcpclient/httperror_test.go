package mcpclient

import (
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "999999": time.Hour, "-1": 0, "soon": 0,
		"Sun, 15 Nov 2026 03:00:30 GMT": 30 * time.Second, "Sun, 15 Nov 2026 02:00:30 GMT": 0} {
		if got := retryAfter(in, now); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", in, got, want)
		}
	}
}
