// Package scripttest is for tests that run scripts.
package scripttest

import (
	"os"
	"testing"

	"junctor/internal/script"
)

// NeedEngine skips a test if the script engine, which is made from npm packages,
// is not built. With CI=true the test fails instead.
func NeedEngine(t testing.TB) {
	t.Helper()
	switch {
	case script.Built():
	case os.Getenv("CI") == "true":
		t.Fatal("the script engine is missing; run make engine")
	default:
		t.Skip("needs npm packages: run make engine")
	}
}
