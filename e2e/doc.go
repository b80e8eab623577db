// Package e2e holds the tests that need the world outside: real clients, real
// servers and the official conformance suite, installed by npm ci in this
// folder.
package e2e
