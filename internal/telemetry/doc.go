// Package telemetry contains the logger, the redactor that masks its output,
// metrics and traces.
//
// Known secrets, values that look like secrets and values of keys with secret
// names are masked in everything that it writes.
package telemetry
