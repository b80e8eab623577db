package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"junctor/internal/address/addresstest"
)

// exampleHTTP starts the SDK's example server over HTTP. With sessions it
// supports only the handshake era.
func exampleHTTP(t *testing.T, args ...string) string {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", addresstest.UnusedPort(t))
	cmd := exec.Command(everything(t), append([]string{"-http", addr}, args...)...)
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

// sessions starts the example server of the handshake era.
func sessions(t *testing.T) string { return exampleHTTP(t, "-stateless=false") }

type nopWriter struct{}

func (nopWriter) Write(b []byte) (int, error) { return len(b), nil }

// suiteRun is the result of the official suite for a server: the number of
// checks of each scored scenario, by status.
type suiteRun map[string]map[string]int

// runSuite runs the official suite against the server at a URL.
func runSuite(t *testing.T, url, revision string) suiteRun {
	t.Helper()
	node, suite := suiteNode(t)
	dir := t.TempDir()
	cmd := exec.CommandContext(ctxFor(t), node, suite, "server", "--url", url, "--requirements", revision, "-o", dir)
	cmd.Dir, cmd.WaitDelay = dir, time.Minute
	out, err := cmd.CombinedOutput()
	_, summary, _ := strings.Cut(string(out), "=== SUMMARY ===")
	scored, unscored, found := strings.Cut(summary, "Not scored for")
	if !found {
		t.Fatalf("the suite gave no result: %v\n%s", err, out)
	}
	result := suiteRun{}
	for line := range strings.Lines(scored) {
		name, _, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(line), "✓✗ "), ":")
		if !strings.ContainsAny(line, "✓✗") || strings.Contains(unscored, " "+name+" ") {
			continue
		}
		result[name] = map[string]int{}
		files, _ := filepath.Glob(filepath.Join(dir, "server-"+name+"-*", "checks.json"))
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var checks []struct{ Status string }
			if err := json.Unmarshal(b, &checks); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			for _, c := range checks {
				result[name][c.Status]++
			}
			if strings.Contains(string(b), `"FAILURE"`) {
				t.Logf("%s:\n%s", f, b)
			}
		}
		if strings.Contains(line, "✗") && result[name]["FAILURE"] == 0 {
			result[name]["FAILURE"] = 1
		}
	}
	if len(result) < 25 {
		t.Fatalf("the suite scored %d scenarios only\n%s", len(result), out)
	}
	return result
}

// TestConformanceServer runs the official suite against the gateway's
// transparent views of the suite's example server, for both revisions of the
// protocol and every kind of server: one that supports both eras, on stdio and
// over HTTP, and one that supports only sessions. The scenarios that the server
// passes directly it must also pass through the gateway. If the eras differ,
// the gateway translates; the exceptions that cannot be translated are listed
// here.
func TestConformanceServer(t *testing.T) {
	t.Parallel()
	h := newHome(t, fmt.Sprintf(`{"mcpServers":{"stdio":{"command":%q},"http":{"url":%q},"sessions":{"url":%q}}}`, everything(t), exampleHTTP(t), sessions(t)))
	g := h.serve().ready("stdio", "http", "sessions")
	// Without sessions the server cannot send requests to a client of the
	// handshake era; it fails these without the gateway, too.
	noSessions := []string{"elicitation-sep1034-defaults", "elicitation-sep1330-enums", "tools-call-elicitation", "tools-call-sampling"}
	translated := []string{
		// In the handshake era a server asks questions one after the other and
		// without keys, and it cannot send roots/list on a connection that
		// callers share.
		"input-required-result-basic-elicitation", "input-required-result-basic-list-roots",
		"input-required-result-multi-round", "input-required-result-multiple-input-requests",
		// The server runs a tool without the required capability, and responds
		// to unknown methods with HTTP 400.
		"server-stateless",
	}
	// The server sends two concurrent questions, one of which needs a
	// capability of other callers that share the connection. If the refusal of
	// that one arrives first, the server fails the call.
	const dependsOnOrder = "input-required-result-capability-check"
	for server, runs := range map[string][]struct {
		revision string
		failures []string
	}{
		"stdio":    {{"2025-11-25", nil}, {"2026-07-28", nil}},
		"http":     {{"2025-11-25", noSessions}, {"2026-07-28", nil}},
		"sessions": {{"2025-11-25", nil}, {"2026-07-28", translated}},
	} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			for _, run := range runs {
				got := runSuite(t, g.url+"/mcp/"+server, run.revision)
				for _, name := range slices.Sorted(maps.Keys(got)) {
					if server == "sessions" && name == dependsOnOrder {
						continue
					}
					if failed := got[name]["FAILURE"] > 0; failed != slices.Contains(run.failures, name) {
						t.Errorf("%s: %s: failed: %t (%v)", run.revision, name, failed, got[name])
					}
					// Quick responses are plain JSON, for which the suite
					// reports a warning in this scenario.
					if name != "server-sse-multiple-streams" && got[name]["WARNING"]+got[name]["INFO"]+got[name]["SKIPPED"] > 0 {
						t.Errorf("%s: %s: %v", run.revision, name, got[name])
					}
				}
			}
		})
	}
}

// runScenario runs one scenario of the suite, which must pass. It is safe for
// concurrent use.
func runScenario(t *testing.T, url, scenario string) {
	node, suite := suiteNode(t)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), node, suite, "server", "--url", url, "--scenario", scenario, "-o", dir, "--timeout", "120000")
	cmd.Dir, cmd.WaitDelay = dir, time.Minute
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", scenario, err, out)
	}
}
