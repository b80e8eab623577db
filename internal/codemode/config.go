package codemode

import (
	"errors"

	"junctor/internal/script"
	"junctor/internal/setting"
)

// Config has the limits of scripts.
type Config struct {
	// Maximum CPU time of a script, not including its calls.
	CPUMs setting.Millis `json:"cpuMs"`
	// Timeout of a script, including its calls. Time spent waiting for people does not count.
	TimeoutMs setting.Millis `json:"timeoutMs"`
	// Maximum memory of a script, in bytes.
	MaxMemoryBytes int `json:"maxMemoryBytes"`
	// Maximum number of calls per script.
	MaxCalls int `json:"maxCalls"`
	// Maximum number of concurrent calls per script. Further calls wait in a queue.
	MaxParallel int `json:"maxParallel"`
	// Maximum size of a script's return value in the response, in bytes. A longer value is truncated and stored for up to an hour, and the response says how to read the rest. The same limit applies to the log of the script; lines beyond it are dropped.
	MaxOutputBytes int `json:"maxOutputBytes"`
}

// DefaultConfig returns the limits of the engine.
func DefaultConfig() Config {
	d := script.DefaultLimits()
	return Config{
		CPUMs: setting.Millis(d.CPU.Milliseconds()), TimeoutMs: setting.Millis(d.Wall.Milliseconds()),
		MaxMemoryBytes: d.Memory, MaxCalls: d.Calls, MaxParallel: d.Parallel, MaxOutputBytes: d.Output,
	}
}

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	errs := []error{setting.CheckMillis("cpuMs", c.CPUMs), setting.CheckMillis("timeoutMs", c.TimeoutMs)}
	for _, n := range []struct {
		key             string
		value, min, max int
	}{
		{"cpuMs", int(c.CPUMs), 10, 600_000},
		{"timeoutMs", int(c.TimeoutMs), 10, 24 * 3600_000},
		{"maxMemoryBytes", c.MaxMemoryBytes, 8 << 20, 256 << 20},
		{"maxCalls", c.MaxCalls, 1, 100_000},
		{"maxParallel", c.MaxParallel, 1, 64},
		{"maxOutputBytes", c.MaxOutputBytes, 1024, 8 << 20},
	} {
		if n.value < n.min || n.value > n.max {
			errs = append(errs, setting.Wrong(n.key, "must be between %d and %d", n.min, n.max))
		}
	}
	return errors.Join(errs...)
}

func (c Config) limits() script.Limits {
	return script.Limits{
		CPU: c.CPUMs.Duration(), Wall: c.TimeoutMs.Duration(), Memory: c.MaxMemoryBytes,
		Calls: c.MaxCalls, Parallel: c.MaxParallel, Output: c.MaxOutputBytes,
	}
}
