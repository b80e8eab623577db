package httpserver

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// The rate limit of log lines about rejected requests: a burst, then one per
// second. Omitted lines are counted in the next one.
const (
	rejectionBurst    = 20
	rejectionInterval = time.Second
)

// Rejections counts requests that were rejected before they became a call, and
// logs them at a limited rate, so that guessing keys is noticed but cannot
// fill the disk.
type Rejections struct {
	log   *slog.Logger
	meter *telemetry.Metrics

	mu      sync.Mutex
	lines   *rate.Limiter
	omitted int
}

// NewRejections returns a Rejections.
func NewRejections(log *slog.Logger, m *telemetry.Metrics) *Rejections {
	return &Rejections{log: log.With(telemetry.KeyComponent, "http"), meter: m, lines: rate.NewLimiter(rate.Every(rejectionInterval), rejectionBurst)}
}

// Observe implements httperr.Observer.
func (j *Rejections) Observe(r *http.Request, status int, reason string, err error) {
	j.meter.Rejected(reason)
	omitted, ok := j.take(time.Now())
	if !ok {
		return
	}
	from, _, splitErr := net.SplitHostPort(r.RemoteAddr)
	if splitErr != nil {
		from = r.RemoteAddr
	}
	j.log.WarnContext(r.Context(), "request rejected", "reason", reason, "status", status,
		"method", tool.Shorten(r.Method, 16), "path", tool.Shorten(r.URL.Path, 200), "from", from, "omitted", omitted, "err", tool.AsError(err).Msg)
}

// take reports whether a line may be logged, and how many have been omitted
// since the last one.
func (j *Rejections) take(now time.Time) (omitted int, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.lines.AllowN(now, 1) {
		j.omitted++
		return 0, false
	}
	omitted, j.omitted = j.omitted, 0
	return omitted, true
}
