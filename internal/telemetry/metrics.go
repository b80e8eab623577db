package telemetry

import (
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the gateway's Prometheus metrics. The number of series is bounded
// whatever upstreams and callers send: tools beyond a limit share a label. A
// nil *Metrics counts nothing.
type Metrics struct {
	registry *prometheus.Registry

	calls     *prometheus.CounterVec
	latency   *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	inFlight  prometheus.Gauge
	endCall   func() // inFlight.Dec, stored to avoid an allocation for each call
	upstreams *prometheus.GaugeVec
	restarts  *prometheus.CounterVec
	tools     *prometheus.GaugeVec
	circuits  *prometheus.GaugeVec
	dropped   *prometheus.CounterVec
	tokens    *prometheus.CounterVec
	rejected  *prometheus.CounterVec

	mu     sync.Mutex
	known  map[[2]string]struct{} // pairs of server and tool with series of their own
	series map[seriesKey]series   // a cache, because a lookup by labels is slow
	limit  int
}

// seriesKey identifies the series of a call.
type seriesKey struct{ face, server, tool, status string }

// series are the series in which a call is counted.
type series struct {
	calls   prometheus.Counter
	latency prometheus.Observer
}

// maxTools is the maximum number of tools with series of their own.
const maxTools = 2000

// otherTool is the label of all tools beyond the limit.
const otherTool = "other"

// NewMetrics returns new metrics, including those of the Go runtime and of the
// process.
func NewMetrics(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), known: map[[2]string]struct{}{}, series: map[seriesKey]series{}, limit: maxTools}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "junctor", Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "junctor", Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	m.calls = counter("calls_total", "Calls by upstream, tool and outcome (ok, error, failed).", "server", "tool", "status")
	m.failures = counter("call_failures_total", "Failed calls, by kind of error.", "server", "kind")
	m.latency = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "junctor", Name: "call_duration_seconds", Help: "Time from the arrival of a call to its response.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"server", "face"})
	m.inFlight = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "junctor", Name: "calls_in_flight", Help: "Calls in progress."})
	m.endCall = m.inFlight.Dec
	m.registry.MustRegister(m.latency, m.inFlight)
	m.upstreams = gauge("upstream_state", "1 for the state that an upstream is in.", "server", "state")
	m.restarts = counter("upstream_connects_total", "Connections made to an upstream.", "server")
	m.tools = gauge("upstream_tools", "Tools of an upstream.", "server")
	m.circuits = gauge("circuit_state", "2 while the circuit of a tool is open; closed ones have no series.", "server", "tool")
	m.dropped = counter("dropped_total", "Items dropped, by kind.", "what")
	m.rejected = counter("rejected_requests_total", "HTTP requests that were rejected, by reason.", "reason")
	m.tokens = counter("model_tokens_total", "Tokens read and written by models.", "model", "direction")

	build := gauge("build_info", "1, with the running version.", "version")
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics in the formats of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, EnableOpenMetrics: true})
}

// Begin counts a call as in flight until end is called.
func (m *Metrics) Begin() (end func()) {
	if m == nil {
		return func() {}
	}
	m.inFlight.Inc()
	return m.endCall
}

// Call counts one finished call. status is ok, error or failed; kind is the
// kind of error, or empty. server must be the name of a configured upstream, or
// empty.
func (m *Metrics) Call(face, server, tool, status, kind string, took time.Duration) {
	if m == nil {
		return
	}
	s := m.seriesOf(seriesKey{face, server, tool, status})
	s.calls.Inc()
	s.latency.Observe(took.Seconds())
	if kind != "" {
		m.failures.WithLabelValues(server, kind).Inc()
	}
}

func (m *Metrics) seriesOf(key seriesKey) series {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.series[key]
	if !ok {
		s = series{m.calls.WithLabelValues(key.server, m.bounded(key.server, key.tool), key.status), m.latency.WithLabelValues(key.server, key.face)}
		if len(m.series) < 4*m.limit {
			m.series[key] = s
		}
	}
	return s
}

// bounded returns the label for the tool: otherTool if too many others have
// been seen. The caller holds m.mu.
func (m *Metrics) bounded(server, tool string) string {
	pair := [2]string{server, tool}
	if _, ok := m.known[pair]; ok {
		return tool
	}
	if len(m.known) >= m.limit {
		return otherTool
	}
	m.known[pair] = struct{}{}
	return tool
}

// Rejected counts a rejected request. reason is one of a fixed set of words.
func (m *Metrics) Rejected(reason string) {
	if m != nil {
		m.rejected.WithLabelValues(reason).Inc()
	}
}

// Upstream records the state of an upstream (connecting, connected, …) and its
// number of tools.
func (m *Metrics) Upstream(server, state string, tools int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock() // so that concurrent calls do not leave two states
	m.upstreams.DeletePartialMatch(prometheus.Labels{"server": server})
	m.upstreams.WithLabelValues(server, state).Set(1)
	m.tools.WithLabelValues(server).Set(float64(tools))
}

// Connected counts a connection made to an upstream.
func (m *Metrics) Connected(server string) {
	if m != nil {
		m.restarts.WithLabelValues(server).Inc()
	}
}

// Circuit states.
const (
	CircuitClosed = 0
	CircuitOpen   = 2
)

// Circuit records the state of a tool's circuit. Closed circuits have no
// series, because almost all are closed.
func (m *Metrics) Circuit(server, tool string, state int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	tool = m.bounded(server, tool)
	m.mu.Unlock()
	if state == CircuitClosed {
		m.circuits.DeleteLabelValues(server, tool)
		return
	}
	m.circuits.WithLabelValues(server, tool).Set(float64(state))
}

// Sessions registers a gauge of the open sessions of a kind; count is called
// whenever the metrics are collected. It must be called once for each kind.
func (m *Metrics) Sessions(kind string, count func() int) {
	if m != nil {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "junctor", Name: "sessions", Help: "Open sessions and streams by kind: chat (conversations with a client or a reply under way), mcp, stream.",
			ConstLabels: prometheus.Labels{"kind": kind},
		}, func() float64 { return float64(count()) }))
	}
}

// Dropped counts an item that was dropped because of a limit.
func (m *Metrics) Dropped(what string) {
	if m != nil {
		m.dropped.WithLabelValues(what).Inc()
	}
}

// Tokens counts the input and output tokens of a model. model must be a name
// from the configuration.
func (m *Metrics) Tokens(model string, read, written int) {
	if m != nil {
		m.tokens.WithLabelValues(model, "read").Add(float64(read))
		m.tokens.WithLabelValues(model, "written").Add(float64(written))
	}
}

// Forget removes the series of an upstream that is no longer configured.
func (m *Metrics) Forget(server string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for pair := range m.known {
		if pair[0] == server {
			delete(m.known, pair)
		}
	}
	maps.DeleteFunc(m.series, func(key seriesKey, _ series) bool { return key.server == server })
	of := prometheus.Labels{"server": server}
	for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
		m.calls, m.failures, m.latency, m.upstreams, m.restarts, m.tools, m.circuits,
	} {
		v.DeletePartialMatch(of)
	}
}
