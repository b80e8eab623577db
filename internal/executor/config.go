package executor

import (
	"errors"

	"junctor/internal/setting"
)

// Config configures the executor.
type Config struct {
	Circuit CircuitConfig `json:"circuit"`
	Limits  LimitConfig   `json:"limits"`
}

// CircuitConfig configures the circuit breaker of each tool.
type CircuitConfig struct {
	// Number of failures within the window that opens the circuit of a tool.
	Threshold int `json:"threshold"`
	// Window in which failures are counted.
	WindowMs setting.Millis `json:"windowMs"`
	// How long an open circuit rejects calls before it allows a trial call.
	CoolDownMs setting.Millis `json:"coolDownMs"`
}

// LimitConfig has the limits on calls and their results.
type LimitConfig struct {
	// Maximum size of a result, in bytes. A larger result is truncated and stored for up to an hour, and the response says how to read the rest. 0 means no limit.
	MaxResultBytes int `json:"maxResultBytes"`
	// Maximum size of the arguments, and of the result, in the call log, in bytes; 0 means no limit.
	MaxRecordBytes int `json:"maxRecordBytes"`
	// Rate limit of each caller. Default: no limit.
	CallerRate *setting.Rate `json:"callerRate,omitempty"`
	// Rate limit of each tool, for all callers together. Default: no limit.
	ToolRate *setting.Rate `json:"toolRate,omitempty"`
}

// DefaultConfig returns the circuit settings of the specification, no rate
// limit, and results of up to 8 MiB, of which the call log stores the first 16
// KiB.
func DefaultConfig() Config {
	return Config{
		Circuit: CircuitConfig{Threshold: 5, WindowMs: 60_000, CoolDownMs: 60_000},
		Limits:  LimitConfig{MaxResultBytes: 8 << 20, MaxRecordBytes: 16 << 10},
	}
}

// Validate reports everything that is wrong with the circuit's numbers.
func (c CircuitConfig) Validate() error {
	errs := []error{setting.CheckMillis("windowMs", c.WindowMs), setting.CheckMillis("coolDownMs", c.CoolDownMs)}
	if c.Threshold < 1 {
		errs = append(errs, setting.Wrong("threshold", "must be at least 1"))
	}
	if c.WindowMs == 0 {
		errs = append(errs, setting.Wrong("windowMs", "must be more than 0"))
	}
	return errors.Join(errs...)
}

// Validate reports everything that is wrong with the limits.
func (c LimitConfig) Validate() error {
	errs := []error{setting.NotNegative("maxResultBytes", c.MaxResultBytes), setting.NotNegative("maxRecordBytes", c.MaxRecordBytes)}
	if c.MaxResultBytes > 0 && c.MaxResultBytes < 1024 {
		errs = append(errs, setting.Wrong("maxResultBytes", "must be 0 (no limit) or at least 1024"))
	}
	errs = append(errs,
		setting.Prefix("callerRate", c.CallerRate.Validate()),
		setting.Prefix("toolRate", c.ToolRate.Validate()))
	return errors.Join(errs...)
}
