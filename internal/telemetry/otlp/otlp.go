// Package otlp sends traces to an OpenTelemetry collector. It is separate from
// telemetry, which almost every package imports, because the exporter links
// gRPC into the binary.
package otlp

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"

	"junctor/internal/telemetry"
)

// NewTracer returns a Tracer that redacts its spans and sends them to the
// configured collector in the background. It does not connect yet. If cfg is
// nil, it returns a nil Tracer.
func NewTracer(ctx context.Context, cfg *telemetry.OTLPConfig, version string, r *telemetry.Redactor) (*telemetry.Tracer, error) {
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
