package e2e

import (
	"os"
	"os/exec"
	"testing"
)

// chromium finds the browser: the one that $CHROMIUM names, or what the
// distributions call it. Programs that the tests start find it in $CHROMIUM.
func chromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}
	if named := os.Getenv("CHROMIUM"); named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Setenv("CHROMIUM", path); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("Chromium is missing; run make setup")
	}
	t.Skip("Chromium is missing; run make setup")
	return ""
}
