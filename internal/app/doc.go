// Package app builds the gateway from a configuration, in dependency order and
// in a straight line, mounts the faces, runs it, and stops it in order: faces
// first, so that calls in flight still find their upstreams; then upstreams;
// then the store, so that every call finds its record's place.
//
// It is the one place for wiring. It decides nothing about calls.
package app
