package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestWebPage uses the page as a person does: a real browser, the real binary
// with the page in it, real MCP servers and a scripted model. The steps are in
// web/*.test.mjs. With SHOTS set to a folder it leaves pictures there.
func TestWebPage(t *testing.T) {
	missing := func(what string) {
		t.Helper()
		if os.Getenv("CI") == "true" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	node, _ := suiteNode(t)
	chromium(t)
	if _, err := os.Stat(filepath.Join("node_modules", "axe-core")); err != nil {
		missing("npm packages are missing; run make setup")
	}
	if _, err := os.Stat(filepath.Join("..", "internal", "webui", "dist", "index.html")); err != nil {
		missing("the page is not built; run make page")
	}
	// What Node reads is read here too, so that the test cache sees it.
	for _, pattern := range []string{"web/*.mjs", "testdata/guarded.mjs", "../internal/webui/dist/index.html", "package-lock.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			if _, err := os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "--test", "--test-concurrency=1", "--test-reporter=spec", "web/*.test.mjs")
	cmd.Env = append(os.Environ(),
		"JUNCTOR_BIN="+junctor(t), "LLMSCRIPT_BIN="+program(t, "junctor/internal/llm/llmtest/cmd/llmscript"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
