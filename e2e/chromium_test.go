package e2e

import (
	"os"
	"os/exec"
	"sync"
	"testing"
)

// chromiumPath is the browser: the one that $CHROMIUM names, or what the
// distributions call it. It is empty where there is none.
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

// headlessPath is Chromium without windows where it is installed beside the
// ordinary one, of which it takes a third of the CPU for a page. It does not
// isolate frames in processes.
var headlessPath = sync.OnceValue(func() string {
	if path, err := exec.LookPath("chromium-headless-shell"); err == nil && os.Getenv("CHROMIUM") == "" {
		return path
	}
	return chromiumPath()
})

// chromium is the browser for a test that needs one. Programs in a home folder find
// the one without windows in $CHROMIUM.
func chromium(t *testing.T) string {
	t.Helper()
	if path := chromiumPath(); path != "" {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("Chromium is missing; run make setup")
	}
	t.Skip("Chromium is missing; run make setup")
	return ""
}
