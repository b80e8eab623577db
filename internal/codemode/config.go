package codemode

import (
	"errors"

	"junctor/internal/script"
	"junctor/internal/setting"
)

// Config bounds scripts.
type Config struct {
	// The CPU time of one script, without its calls.
	CPUMs setting.Millis `json:"cpuMs"`
	// The time of one script with its calls; waiting for people is not counted.
	TimeoutMs setting.Millis `json:"timeoutMs"`
	// The memory of one script, in bytes.
	MaxMemoryBytes int `json:"maxMemoryBytes"`
	// How many calls one script may make.
	MaxCalls int `json:"maxCalls"`
	// How many calls of one script run at the same time; others wait for their turn.
	MaxParallel int `json:"maxParallel"`
	// How many bytes of what a script returns are in the answer; what is over is kept and can be read. Log lines over as many bytes are dropped.
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
