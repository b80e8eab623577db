// Package telemetry contains the logger, the redactor that masks its output,
// metrics and traces.
//
// It promises that no known secret, no secret-shaped value and no value of a
// secret-named key leaves through it.
package telemetry
