package e2e

import (
	"os"
	"os/exec"
	"sync"
	"testing"
)

// chromiumPath returns the path of the browser: the one in $CHROMIUM, or one
// with a name that distributions use. It is empty if there is none.
var chromiumPath = sync.OnceValue(func() string {
	names := []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}
	if named := os.Getenv("CHROMIUM"); named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
})

// headlessPath returns the headless shell of Chromium if it is installed, which
// uses a third of the CPU time for a page, otherwise the ordinary browser. The
// headless shell does not isolate frames in processes.
var headlessPath = sync.OnceValue(func() string {
	if path, err := exec.LookPath("chromium-headless-shell"); err == nil && os.Getenv("CHROMIUM") == "" {
		return path
	}
	return chromiumPath()
})

// chromium returns the browser for a test that needs one, and skips the test if
// there is none. Programs in a home folder find the headless one in $CHROMIUM.
func chromium(t *testing.T) string {
	t.Helper()
	path := chromiumPath()
	if path == "" {
		unmet(t, "Chromium is missing; run make setup")
	}
	return path
}
