package app

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/store"
	"junctor/internal/telemetry"
)

// losing is a store that loses records.
type losing struct {
	store.Store
	n atomic.Int64
}

func (l *losing) Lost() int64 { return l.n.Load() }

// TestLostRecordsAreCounted checks that records lost while the database was
// unavailable are counted in the metrics.
func TestLostRecordsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := &losing{}
		a := &App{store: lost, metrics: telemetry.NewMetrics("test")}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.countDroppedRecords(ctx)
		lost.n.Store(3)
		time.Sleep(2 * dropCountInterval) // fake time
		synctest.Wait()
		w := httptest.NewRecorder()
		a.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if want := `junctor_dropped_total{what="record"} 3`; !strings.Contains(w.Body.String(), want) {
			t.Errorf("the metrics lack %s", want)
		}
	})
}
