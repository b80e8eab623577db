package telemetry

import (
	"encoding/json"
	"log/slog"
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// Secret is a string that must not be disclosed. It is printed, logged and
// marshalled as [redacted]. Only Reveal returns the value, so that all uses can
// be found.
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

// GoString implements fmt.GoStringer, so that %#v does not show the secret.
func (s Secret) GoString() string { return s.String() }

// LogValue implements slog.LogValuer, so that logs do not show the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON implements json.Marshaler, so that JSON does not show the secret.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }
