//go:build !linux

package app

// releaseFile has no equal on this system.
func releaseFile() {}
