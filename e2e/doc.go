// Package e2e has the tests that need external programs: real clients, real
// servers and the official conformance suite, installed by npm ci in this
// folder.
package e2e
