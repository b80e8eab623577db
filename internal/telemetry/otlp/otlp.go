// Package otlp sends traces to an OpenTelemetry collector. It is separate from
// telemetry, which almost every package imports, because the exporter links
// gRPC into the binary.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"

	"golang.org/x/time/rate"

	"junctor/internal/telemetry"
)

// errorInterval is the least time between two logged errors of the exporter.
const errorInterval = time.Minute

// NewTracer returns a Tracer that redacts its spans and sends them to the
// configured collector in the background. It does not connect yet. If cfg is
// nil, it returns a nil Tracer. Failures to send go to log; OpenTelemetry has
// one error handler per process, which NewTracer replaces.
func NewTracer(ctx context.Context, cfg *telemetry.OTLPConfig, version string, r *telemetry.Redactor, log *slog.Logger) (*telemetry.Tracer, error) {
	if cfg == nil {
		return nil, nil
	}
	options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(tracesURL(cfg.Endpoint))}
	if len(cfg.Headers) > 0 { // otherwise the exporter uses OTEL_EXPORTER_OTLP_HEADERS
		headers := map[string]string{}
		for name, value := range cfg.Headers {
			headers[name] = value.Reveal()
			r.Add(value)
		}
		options = append(options, otlptracehttp.WithHeaders(headers))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("traces to %s: %w", r.String(cfg.Endpoint), err)
	}
	sometimes := rate.Sometimes{Interval: errorInterval}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		sometimes.Do(func() {
			log.Warn("cannot send traces", telemetry.KeyComponent, "telemetry", "endpoint", cfg.Endpoint, "err", err)
		})
	}))
	return telemetry.NewTracer(cfg, version, r, exporter), nil
}

// tracesURL adds the path for traces of OTLP over HTTP if the address has no
// path.
func tracesURL(endpoint string) string {
	endpoint = strings.TrimRight(endpoint, "/")
	if _, rest, ok := strings.Cut(endpoint, "://"); ok && strings.Contains(rest, "/") || !ok && strings.Contains(endpoint, "/") {
		return endpoint
	}
	return endpoint + "/v1/traces"
}
