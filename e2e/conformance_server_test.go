package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"junctor/internal/upstream/upstreamtest"
)

// sessions starts the example server with sessions over HTTP: what a server of
// the handshake era alone is.
func sessions(t *testing.T) string {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", upstreamtest.UnusedPort(t))
	cmd := exec.Command(everything(t), "-http", addr, "-stateless=false")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil || !strings.Contains(line, "listening") {
		t.Fatalf("the example server: %q, %v", line, err)
	}
	go func() { _, _ = bufio.NewReader(stderr).WriteTo(nopWriter{}) }()
	return "http://" + addr
}

type nopWriter struct{}

func (nopWriter) Write(b []byte) (int, error) { return len(b), nil }

// The official suite examines the gateway's server side through the
// transparent view of its own example server, for both sets of requirements.
// What it counts must all pass; the tasks extension is not counted.
func TestConformanceServer(t *testing.T) {
	t.Parallel()
	node, suite := suiteNode(t)
	h := newHouse(t, fmt.Sprintf(`{"mcpServers":{"modern":{"command":%q},"legacy":{"url":%q}}}`, everything(t), sessions(t)))
	g := h.serve().ready("modern", "legacy")
	for _, tt := range []struct{ revision, server string }{{"2025-11-25", "legacy"}, {"2026-07-28", "modern"}} {
		t.Run(tt.revision, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.CommandContext(ctxFor(t), node, suite, "server", "--url", g.url+"/mcp/"+tt.server, "--requirements", tt.revision, "-o", dir)
			cmd.Dir, cmd.WaitDelay = dir, time.Minute
			out, err := cmd.CombinedOutput()
			_, summary, _ := strings.Cut(string(out), "=== SUMMARY ===")
			scored, unscored, found := strings.Cut(summary, "Not scored for")
			if !found {
				t.Fatalf("the suite said no result: %v\n%s", err, out)
			}
			passed := 0
			for line := range strings.Lines(scored) {
				name, _, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(line), "✓✗ "), ":")
				switch {
				case strings.Contains(line, "✓"):
					passed++
				case strings.Contains(line, "✗") && !strings.Contains(unscored, " "+name+" "):
					t.Errorf("%s", strings.TrimSpace(line))
				}
			}
			if passed < 30 {
				t.Errorf("only %d scenarios passed", passed)
			}
			if t.Failed() {
				files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
				for _, f := range files {
					if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), "FAILURE") {
						t.Logf("%s:\n%s", f, b)
					}
				}
			}
		})
	}
}
