package httpserver

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/telemetry"
)

// All rejected requests are counted. They are logged at a limited rate, and
// the next line contains the number of omitted lines.
func TestRejectionsAreLoggedAtABoundedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := telemetry.NewMetrics("test")
		j := NewRejections(slog.New(slog.NewTextHandler(&log, nil)), m)
		r := httptest.NewRequest("GET", "/"+strings.Repeat("x", 5000), nil)
		reject := func(n int) {
			for range n {
				j.Observe(r, 401, "unauthorized", errors.New("no"))
			}
		}
		lines := func() int { return strings.Count(log.String(), "\n") }
		reject(1000)
		if lines() != rejectionBurst {
			t.Errorf("%d lines for 1000 requests at once, want %d", lines(), rejectionBurst)
		}
		if log.Len() > rejectionBurst*1000 {
			t.Errorf("the lines have %d bytes", log.Len())
		}
		log.Reset()
		time.Sleep(rejectionInterval)
		reject(10)
		if lines() != 1 || !strings.Contains(log.String(), "omitted=980") {
			t.Errorf("a second later: %s", log.String())
		}
		log.Reset()
		time.Sleep(24 * time.Hour)
		reject(1000)
		if lines() != rejectionBurst || !strings.Contains(log.String(), "omitted=9") {
			t.Errorf("%d lines a day later", lines())
		}
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if want := `rejected_requests_total{reason="unauthorized"} 2010`; !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	})
}
