package telemetry

import (
	"errors"
	"net/url"
	"regexp"

	"junctor/internal/setting"
)

// LogConfig configures the log of the program.
type LogConfig struct {
	// Minimum level of log messages.
	Level Level `json:"level"`
	// Log format; auto means text on a terminal and json otherwise.
	Format LogFormat `json:"format" apply:"restart"`
}

// Level is the name of a log level.
type Level string

// The levels. Silent writes nothing.
const (
	LevelTrace  Level = "trace"
	LevelDebug  Level = "debug"
	LevelInfo   Level = "info"
	LevelWarn   Level = "warn"
	LevelError  Level = "error"
	LevelFatal  Level = "fatal"
	LevelSilent Level = "silent"
)

// Values lists the levels, the most verbose first.
func (Level) Values() []string {
	return []string{"trace", "debug", "info", "warn", "error", "fatal", "silent"}
}

// LogFormat is the form of log lines.
type LogFormat string

// The formats of log lines.
const (
	FormatAuto LogFormat = "auto"
	FormatText LogFormat = "text"
	FormatJSON LogFormat = "json"
)

// Values lists the formats of log lines.
func (LogFormat) Values() []string { return []string{"auto", "text", "json"} }

// Config configures metrics and traces.
type Config struct {
	// Whether to serve Prometheus metrics at /metrics.
	Metrics bool `json:"metrics"`
	// Export of OpenTelemetry traces. Default: none, unless OTEL_EXPORTER_OTLP_ENDPOINT is set.
	OTLP *OTLPConfig `json:"otlp,omitempty" apply:"restart"`
}

// OTLPConfig configures the export of traces.
type OTLPConfig struct {
	// URL of an OTLP/HTTP collector, such as http://localhost:4318.
	Endpoint string `json:"endpoint"`
	// HTTP headers to send to the collector.
	Headers map[string]Secret `json:"headers,omitempty"`
	// Service name in the traces. Default: junctor.
	ServiceName string `json:"serviceName,omitempty"`
	// Sampling ratio of traces, from 0 to 1. Default: 1.
	SampleRatio *float64 `json:"sampleRatio,omitempty"`
}

// RedactConfig adds rules to those of the redactor.
type RedactConfig struct {
	// Regular expressions (RE2) whose matches are masked in logs, traces and the call log, in addition to what Junctor masks by default.
	Redact []string `json:"redact,omitempty"`
}

// DefaultLogConfig returns a log of level info.
func DefaultLogConfig() LogConfig { return LogConfig{Level: LevelInfo, Format: FormatAuto} }

// DefaultConfig returns metrics and no traces.
func DefaultConfig() Config { return Config{Metrics: true} }

// Validate reports everything that is wrong with the configuration.
func (c LogConfig) Validate() error {
	return errors.Join(setting.OneOf("level", c.Level), setting.OneOf("format", c.Format))
}

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	if c.OTLP == nil {
		return nil
	}
	var errs []error
	u, err := url.Parse(c.OTLP.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		errs = append(errs, setting.Wrong("otlp.endpoint", "must be the http or https address of a collector, such as http://localhost:4318"))
	}
	if r := c.OTLP.SampleRatio; r != nil && !(*r >= 0 && *r <= 1) {
		errs = append(errs, setting.Wrong("otlp.sampleRatio", "must be between 0 and 1"))
	}
	return errors.Join(errs...)
}

// Validate reports every expression that does not compile.
func (c RedactConfig) Validate() error {
	var errs []error
	for i, p := range c.Redact {
		re, err := regexp.Compile(p)
		if err != nil {
			errs = append(errs, setting.PrefixIndex("redact", i, setting.Wrong("", "is not a regular expression: %v", err)))
		} else if re.MatchString("") {
			errs = append(errs, setting.PrefixIndex("redact", i, setting.Wrong("", "matches the empty string, and so everything")))
		}
	}
	return errors.Join(errs...)
}
