package telemetry

import (
	"encoding/json"
	"log/slog"
)

// Redacted is what stands where a secret was.
const Redacted = "[redacted]"

// Secret is a string that must not be seen. However it is printed, logged or
// marshalled it shows as [redacted]; Reveal alone gives it up, so that every
// place that does can be found.
type Secret string

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String returns [redacted], or nothing for the empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return Redacted
}

// GoString keeps %#v from showing the secret.
func (s Secret) GoString() string { return s.String() }

// LogValue keeps structured logs from showing the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON keeps JSON from showing the secret.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }
