package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// suiteNode returns the paths of a Node for the conformance suite (22 or newer)
// and of the suite itself.
func suiteNode(t *testing.T) (node, suite string) {
	t.Helper()
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	suite = filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(suite); err != nil {
		unmet(t, "the conformance suite is missing; run npm ci in e2e")
	}
	if node = nodePath(); node == "" {
		unmet(t, "Node 22 or newer is missing; run npm ci in e2e")
	}
	return node, suite
}

// nodePath returns the path of Node 22 or newer, installed by npm or by the
// system, or "" if there is none.
var nodePath = sync.OnceValue(func() string {
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		return ""
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	for _, candidate := range []string{
		filepath.Join(modules, "node-"+runtime.GOOS+"-"+arch, "bin", "node"),
		filepath.Join(modules, ".bin", "node"),
		"node",
	} {
		path, err := exec.LookPath(candidate)
		if err == nil && exec.Command(path, "-e", "process.exit(parseInt(process.versions.node) >= 22 ? 0 : 1)").Run() == nil {
			return path
		}
	}
	return ""
})

// TestConformanceClient runs the official suite against Junctor as a client,
// for both sets of requirements: the protocol and the logins. Scenarios in the
// file of expected failures are not scored. Any other failure, and any expected
// failure that passes, fails the test.
func TestConformanceClient(t *testing.T) {
	t.Parallel()
	node, suite := suiteNode(t)
	client := junctor(t) + " conformance-client"
	expected, err := filepath.Abs("conformance-client.expected.yml")
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, args ...string) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		results := t.TempDir()
		cmd := exec.CommandContext(ctx, node, append([]string{suite, "client", "--command", client, "--timeout", "60000", "--output-dir", results}, args...)...)
		cmd.Dir = t.TempDir()
		cmd.WaitDelay = time.Minute
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("the suite is not content: %v\n%s\n%s", err, out, failedScenarios(results))
		}
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) { run(t, "--requirements", revision, "--expected-failures", expected) })
	}
	for _, scenario := range []string{"auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"} {
		t.Run(scenario, func(t *testing.T) { run(t, "--scenario", scenario) }) // servers with the first version of logins still exist
	}
}

// failedScenarios returns the suite's checks of the failed scenarios and the
// output of their clients.
func failedScenarios(results string) string {
	var b strings.Builder
	_ = filepath.WalkDir(results, func(path string, _ fs.DirEntry, _ error) error {
		checks, err := os.ReadFile(path)
		if filepath.Base(path) != "checks.json" || err != nil || !bytes.Contains(checks, []byte("FAILURE")) && !bytes.Contains(checks, []byte("WARNING")) {
			return nil
		}
		said, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stderr.txt"))
		fmt.Fprintf(&b, "%s\n%s\n%s\n", filepath.Dir(path), said, checks)
		return nil
	})
	return b.String()
}
