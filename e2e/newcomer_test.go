package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestFirstSteps types what a new user types, with nothing in the environment
// but a home and a path. The packages of npx are those of this folder, so that
// no registry is asked.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	npm(t, "mcp-server-filesystem")
	node, _ := suiteNode(t)
	program := junctor(t)
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: []string{"testdata/newcomer.txt"},
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Vars = []string{"HOME=" + home, "PATH=" + filepath.Join(e.WorkDir, "bin") + ":" + filepath.Dir(node) + ":/usr/local/bin:/usr/bin:/bin", "WORK=" + e.WorkDir, "PWD=" + e.WorkDir, "/=/"}
			if dir := os.Getenv("JUNCTOR_COVERDIR"); dir != "" {
				e.Vars = append(e.Vars, "GOCOVERDIR="+dir)
			}
			if err := os.MkdirAll(filepath.Join(e.WorkDir, "bin"), 0o700); err != nil {
				return err
			}
			if err := os.Symlink(modules, filepath.Join(e.WorkDir, "node_modules")); err != nil {
				return err
			}
			return os.Symlink(program, filepath.Join(e.WorkDir, "bin", "junctor"))
		},
	})
}

// TestFirstStepsMatchREADME holds the script to the README.
func TestFirstStepsMatchREADME(t *testing.T) {
	t.Parallel()
	script := read(t, "testdata/newcomer.txt")
	found := 0
	for _, b := range blocks(t) {
		if b.file != "README.md" || !b.is("sh") {
			continue
		}
		for line := range strings.Lines(b.text) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			line = strings.ReplaceAll(line, `"$PWD"`, "$PWD")                         // scripts do not split what a variable holds
			if strings.HasPrefix(line, "junctor ") && !strings.Contains(line, "&&") { // what is joined has tests of its own
				found++
				if !strings.Contains(script, "exec "+strings.TrimSpace(line)+"\n") {
					t.Errorf("testdata/newcomer.txt does not type %q", line)
				}
			}
		}
	}
	if found < 3 {
		t.Errorf("the README has %d commands", found)
	}
}

// TestServerAddedToRunningGateway holds servers add to it that the gateway knows the
// server when the command is done.
func TestServerAddedToRunningGateway(t *testing.T) {
	t.Parallel()
	h := newHouse(t, `{"mcpServers": {}}`)
	gw := h.serve()
	h.mustRun(nil, junctor(t), "--config", h.config, "servers", "add", "late", "--", "no-such-program")
	if status, body := gw.send("GET", "/api/servers/late", ""); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}
