package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestWebPage uses the page like a user: with a real browser, the real binary
// with the page in it, real MCP servers and a scripted model. The steps are in
// web/*.test.mjs; each is a subtest here. Set PAGE to the name of a file, such
// as chat, to run only that file. Set SHOTS to a folder for screenshots. A
// failed step saves a screenshot, the page's console and the gateway's log in a
// folder under .cache/failed.
func TestWebPage(t *testing.T) {
	t.Parallel()
	node, _ := suiteNode(t)
	browser := chromium(t)
	if _, err := os.Stat(filepath.Join("node_modules", "axe-core")); err != nil {
		unmet(t, "npm packages are missing; run make setup")
	}
	if _, err := os.Stat(filepath.Join("..", "internal", "webui", "dist", "index.html")); err != nil {
		unmet(t, "the page is not built; run make page")
	}
	// The files that Node reads are read here too, so that the test cache
	// depends on them.
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
	cmd := exec.CommandContext(ctx, node, "--test", "--test-concurrency=3", "--test-reporter=./web/report.mjs",
		"web/"+cmp.Or(os.Getenv("PAGE"), "*")+".test.mjs")
	cmd.Env = append(os.Environ(), "CHROMIUM="+browser, "CHROMIUM_HEADLESS="+headlessPath(), "FAILURES="+failures(t),
		"JUNCTOR_BIN="+junctor(t), "LLMSCRIPT_BIN="+program(t, "junctor/internal/llm/llmtest/cmd/llmscript"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	steps := 0
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var step struct {
			Test, Skip, Error, Output string
			Passed                    bool
			Seconds                   float64
		}
		if err := json.Unmarshal(lines.Bytes(), &step); err != nil || step.Test == "" {
			t.Logf("%s", lines.Bytes())
			continue
		}
		steps++
		t.Run(step.Test, func(t *testing.T) {
			switch {
			case step.Skip != "":
				t.Skip(step.Skip)
			case !step.Passed:
				t.Errorf("after %.1f s: %s", step.Seconds, step.Error)
			default:
				t.Logf("%.1f s", step.Seconds)
			}
		})
	}
	if err := cmd.Wait(); err != nil && !t.Failed() || steps == 0 {
		t.Errorf("%d steps: %v\n%s", steps, err, errs.String())
	}
}
