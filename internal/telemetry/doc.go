// Package telemetry is how the program speaks about itself: the logger, the
// redactor that stands before it, metrics and traces.
//
// It promises that no known secret, no secret-shaped value and no value of a
// secret-named key leaves through it.
package telemetry
