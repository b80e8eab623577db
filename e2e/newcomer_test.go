package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestFirstSteps runs the commands of a new user, with only a home and a path
// in the environment. npx uses the packages of this folder, so that no registry
// is needed.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	npm(t, "mcp-server-filesystem")
	node, _ := suiteNode(t)
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	npx, err := exec.LookPath("npx") // the folder of a node that npm installed has none
	if err != nil {
		unmet(t, "npx is missing; install npm")
	}
	typeOnEmptyHome(t, "testdata/newcomer.txt", filepath.Dir(node)+":"+filepath.Dir(npx), map[string]string{"node_modules": modules})
}

// TestFirstStepsWithTrouble covers problems that new users had: an install that
// takes longer than the start timeout, variables without a value, wrong URLs,
// servers that differ only in a token. Two concurrent agents are tested in
// cmd/junctor.
func TestFirstStepsWithTrouble(t *testing.T) {
	t.Parallel()
	typeOnEmptyHome(t, "testdata/newcomer-trouble.txt", "", map[string]string{"bin/example-server": everything(t)})
}

// typeOnEmptyHome runs a script with an empty home and with path in PATH, after
// creating the links in its folder.
func typeOnEmptyHome(t *testing.T, script, path string, links map[string]string) {
	t.Helper()
	links["bin/junctor"] = junctor(t)
	testscript.Run(t, testscript.Params{
		Files: []string{script},
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Vars = []string{"HOME=" + home, "PATH=" + filepath.Join(e.WorkDir, "bin") + ":" + path + ":/usr/local/bin:/usr/bin:/bin", "WORK=" + e.WorkDir, "PWD=" + e.WorkDir, "/=/"}
			if dir := os.Getenv("JUNCTOR_COVERDIR"); dir != "" {
				e.Vars = append(e.Vars, "GOCOVERDIR="+dir)
			}
			if err := os.MkdirAll(filepath.Join(e.WorkDir, "bin"), 0o700); err != nil {
				return err
			}
			for name, target := range links {
				if err := os.Symlink(target, filepath.Join(e.WorkDir, filepath.FromSlash(name))); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// TestFirstStepsMatchREADME: the script of TestFirstSteps contains the commands
// of the README.
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
			line = strings.ReplaceAll(line, `"$PWD"`, "$PWD")                         // scripts do not split the value of a variable
			if strings.HasPrefix(line, "junctor ") && !strings.Contains(line, "&&") { // combined commands have their own tests
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

// TestServerAddedToRunningGateway: the running gateway has a new server when
// servers add returns.
func TestServerAddedToRunningGateway(t *testing.T) {
	t.Parallel()
	h := newHome(t, `{"mcpServers": {}}`)
	gw := h.serve()
	h.mustRun(nil, junctor(t), "--config", h.config, "servers", "add", "late", "--", "no-such-program")
	if status, body := gw.send("GET", "/api/servers/late", ""); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}
