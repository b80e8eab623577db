package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// suiteNode returns a Node that the conformance suite runs on (22 or newer)
// and the suite itself.
func suiteNode(t *testing.T) (node, suite string) {
	t.Helper()
	missing := func(what string) {
		t.Helper()
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing; run npm ci in e2e", what)
		}
		t.Skipf("%s is missing; run npm ci in e2e", what)
	}
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	suite = filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(suite); err != nil {
		missing("the conformance suite")
	}
	if node = nodePath(); node == "" {
		missing("Node 22 or newer")
	}
	return node, suite
}

// nodePath is Node 22 or newer: what npm installed, or what the system has.
// It is empty where there is none.
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

// TestConformanceClient lets the official suite examine Junctor as a client,
// against both sets of requirements: the wire and the logins. What the file of
// expected failures names is not scored; any other failure, and any of those
// that passes, fails the test.
func TestConformanceClient(t *testing.T) {
	t.Parallel()
	node, suite := suiteNode(t)
	client := junctor(t) + " conformance-client"
	expected, err := filepath.Abs("conformance-client.expected.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, suite, "client", "--command", client,
				"--requirements", revision, "--expected-failures", expected, "--timeout", "60000")
			cmd.Dir = t.TempDir()
			cmd.WaitDelay = time.Minute
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("the suite is not content: %v\n%s", err, out)
			}
		})
	}
	for _, scenario := range []string{"auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"} {
		t.Run(scenario, func(t *testing.T) { // servers of the first version with logins are still about
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, suite, "client", "--command", client, "--scenario", scenario, "--timeout", "60000")
			cmd.Dir = t.TempDir()
			cmd.WaitDelay = time.Minute
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("the suite is not content: %v\n%s", err, out)
			}
		})
	}
}
