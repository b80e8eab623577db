// Package app builds the gateway from a configuration, in dependency order and
// in a straight line, mounts the APIs, runs it, and stops it in order: first
// the APIs, so that calls in flight still find their upstreams; then the
// upstreams; then the store, so that every call can be recorded.
//
// All wiring happens here. The package makes no decisions about calls.
package app
