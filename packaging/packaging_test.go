// Package packaging holds what releases are made of beside the binary; these
// tests try it as far as that goes without a container engine.
package packaging

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v4"

	"junctor/internal/config"
)

// need returns the path of a program that the test cannot do without.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing", program)
		}
		t.Skipf("%s is missing", program)
	}
	return path
}

func run(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// version is what the built program says.
const version = "1.2.3-test"

// dir is for what more than one test uses.
var dir string

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "packaging"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// extras builds the program, and lets it write manual pages and completions,
// as scripts/extras does for releases. Linking takes seconds: it happens once.
var extras = sync.OnceValue(func() error {
	cmd := exec.Command("./scripts/extras", filepath.Join(dir, "extras"))
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "VERSION="+version, "BIN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("scripts/extras: %w\n%s", err, out)
	}
	return nil
})

// TestNpmPackage installs the packages from local tarballs and lets npx speak
// MCP, as it stands in clients' configurations.
func TestNpmPackage(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	node, npm, npx := need(t, "node"), need(t, "npm"), need(t, "npx")
	program := filepath.Join(dir, "junctor")
	dir := t.TempDir()
	binaries := filepath.Join(dir, "binaries")
	binary := filepath.Join(binaries, runtime.GOOS+"-"+runtime.GOARCH, "junctor")
	if runtime.GOOS == "windows" {
		run(t, "..", []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags", "-X main.version="+version, "-o", binary+".exe", "./cmd/junctor")
	} else {
		if err := extras(); err != nil {
			t.Fatal(err)
		}
		// npm takes long to compress and unpack the program, so that it gets
		// a script which runs it.
		if err := os.MkdirAll(filepath.Dir(binary), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(binary, []byte("#!/bin/sh\nexec '"+program+"' \"$@\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "..", nil, node, "packaging/npm/build.mjs", binaries, "v"+version, filepath.Join(dir, "npm"))

	packages, err := os.ReadDir(filepath.Join(dir, "npm"))
	if err != nil || len(packages) != 2 {
		t.Fatalf("%d packages, %v; want the one of this platform and the main one", len(packages), err)
	}
	home := filepath.Join(dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_DATA_HOME=" + home, "XDG_RUNTIME_DIR=" + home, "npm_config_update_notifier=false"}
	var tarballs []string
	for _, p := range packages {
		out := run(t, dir, env, npm, "pack", "--silent", "./npm/"+p.Name())
		tarballs = append(tarballs, filepath.Join(dir, strings.TrimSpace(out)))
	}
	user := filepath.Join(dir, "user")
	if err := os.MkdirAll(user, 0o700); err != nil {
		t.Fatal(err)
	}
	run(t, user, env, npm, append([]string{"install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"}, tarballs...)...)
	if out := run(t, user, env, npx, "--offline", "junctor", "version"); !strings.Contains(out, version) {
		t.Errorf("npx junctor version: %s", out)
	}
	t.Run("exit code", func(t *testing.T) {
		cmd := exec.Command(npx, "--offline", "junctor", "no-such-command")
		cmd.Dir, cmd.Env = user, append(os.Environ(), env...)
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("exit code %d, want 2", cmd.ProcessState.ExitCode())
		}
	})
	t.Run("mcp", func(t *testing.T) {
		cmd := exec.Command(npx, "--offline", "junctor", "mcp")
		cmd.Dir, cmd.Env = user, append(os.Environ(), env...)
		speak(t, cmd)
	})
	t.Run("without the binary", func(t *testing.T) {
		script := filepath.Join(dir, "npm", "junctor", "bin", "junctor.js")
		out, err := exec.Command(node, script).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "is not installed") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// speak makes a handshake with an MCP server on stdio and asks for its tools.
func speak(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	ask := func(message string) map[string]any {
		t.Helper()
		if _, err := io.WriteString(in, message+"\n"); err != nil {
			t.Fatalf("%v: %s", err, &stderr)
		}
		line, err := r.ReadBytes('\n')
		var answer map[string]any
		if err != nil || json.Unmarshal(line, &answer) != nil {
			t.Fatalf("%v: %q, %s", err, line, &stderr)
		}
		return answer
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	answer := ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`)
	if text := fmt.Sprint(answer["result"]); !strings.Contains(text, "search_tools") {
		t.Errorf("tools/list: %v", answer)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it did not end well when its stdin did: %v\n%s", err, &stderr)
	}
}

// TestManualPagesAndCompletions writes the manual pages and completions as releases carry them.
func TestManualPagesAndCompletions(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("runs a shell script that builds the program")
	}
	if err := extras(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "extras")
	for _, want := range []string{"completions/junctor.bash", "completions/_junctor", "completions/junctor.fish", "completions/junctor.ps1", "man/junctor.1", "man/junctor-servers-add.1", "man/junctor-doctor.1"} {
		data, err := os.ReadFile(filepath.Join(out, want))
		if err != nil || len(data) < 200 {
			t.Errorf("%s: %d bytes, %v", want, len(data), err)
		}
	}
	pages, err := filepath.Glob(filepath.Join(out, "man", "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil || !bytes.Contains(data, []byte("\n.TH \"JUNCTOR")) || !bytes.Contains(data, []byte(".SH NAME\n")) {
			t.Errorf("%s is no manual page: %v", page, err)
		}
	}
	if groff, err := exec.LookPath("groff"); err == nil {
		if said := run(t, ".", nil, groff, append([]string{"-Kutf8", "-man", "-Tutf8", "-ww", "-z"}, pages...)...); said != "" {
			t.Errorf("groff: %s", said)
		}
	}
	if slices.ContainsFunc(pages, func(p string) bool { return strings.Contains(p, "junctor-health") }) {
		t.Error("a hidden command has a page")
	}
}

// TestDockerfile holds the images to a few rules.
func TestDockerfile(t *testing.T) {
	data, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(string(data), "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	stages := regexp.MustCompile(`(?m)^FROM .* AS (\w+)$`).FindAllStringSubmatchIndex(text, -1)
	if len(stages) != strings.Count(text, "FROM ") || len(stages) < 4 {
		t.Fatalf("%d named stages", len(stages))
	}
	gomod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(gomod)
	if version == nil || !strings.Contains(text, "ARG GO_VERSION="+string(version[1])) {
		t.Errorf("the image is not built with the Go of go.mod (%s)", version)
	}
	for i, at := range stages {
		name, end := text[at[2]:at[3]], len(text)
		if i+1 < len(stages) {
			end = stages[i+1][0]
		}
		body := text[at[1]:end]
		if strings.Contains(body, "ADD ") || strings.Contains(text[at[0]:at[1]], ":latest") {
			t.Errorf("%s uses ADD or a moving tag", name)
		}
		if name != "gateway" && name != "servers" {
			continue
		}
		for _, want := range []string{"USER ", "HEALTHCHECK ", "ENTRYPOINT [", "CMD [", "EXPOSE 8787", "VOLUME /data"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
		if strings.Contains(body, "USER 0") || strings.Contains(body, "USER root") {
			t.Errorf("%s runs as root", name)
		}
	}
	if last := stages[len(stages)-1]; text[last[2]:last[3]] != "gateway" {
		t.Error("the minimal image is not what docker build . makes")
	}
}

// TestConfigurations checks the files that the packages bring and that the
// compose files mount.
func TestConfigurations(t *testing.T) {
	files, err := filepath.Glob("*/junctor*.json")
	if err != nil || len(files) < 3 {
		t.Fatal("no configuration", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lookup := func(name string) (string, bool) { return "postgres://u:p@h/d", name == "DATABASE_URL" }
		if _, _, err := config.Parse(f, data, config.Options{LookupEnv: lookup}); err != nil {
			t.Error(err)
		}
	}
	for _, f := range []string{"../compose.yml", "../compose.cluster.yml"} {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		// Docker kills after ten seconds; calls in flight get thirty.
		if !strings.Contains(string(data), "stop_grace_period: 45s") {
			t.Errorf("%s has no stop_grace_period", f)
		}
		for _, m := range regexp.MustCompile(`\./(packaging/\S+?):/`).FindAllStringSubmatch(string(data), -1) {
			if _, err := os.Stat("../" + m[1]); err != nil {
				t.Errorf("%s mounts what is not there: %v", f, err)
			}
		}
	}
}

// TestReleaseFilesExist looks for everything that a release is told to carry. What the
// hooks make must not be in dist, which is emptied after them.
func TestReleaseFilesExist(t *testing.T) {
	data, err := os.ReadFile("../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type source struct {
		Src string
	}
	var release struct {
		Before struct{ Hooks []string }
		Nfpms  []struct {
			Scripts  map[string]string
			Contents []source
		}
		Archives []struct{ Files []yaml.Node }
	}
	if err := yaml.Unmarshal(data, &release); err != nil {
		t.Fatal(err)
	}
	var carried []string
	for _, n := range release.Nfpms {
		for _, script := range n.Scripts {
			carried = append(carried, script)
		}
		for _, c := range n.Contents {
			carried = append(carried, c.Src)
		}
	}
	for _, a := range release.Archives {
		for _, f := range a.Files {
			var with source
			if f.Kind == yaml.ScalarNode {
				with.Src = f.Value
			} else if err := f.Decode(&with); err != nil {
				t.Fatal(err)
			}
			carried = append(carried, with.Src)
		}
	}
	const made = ".cache/extras/"
	if len(carried) < 10 || !slices.ContainsFunc(release.Before.Hooks, func(h string) bool { return strings.Contains(h, strings.TrimSuffix(made, "/")) }) {
		t.Fatalf("hooks %q, files %q", release.Before.Hooks, carried)
	}
	for _, path := range carried {
		if strings.HasPrefix(path, made) {
			continue // TestManualPagesAndCompletions makes them
		}
		if _, err := os.Stat("../" + path); err != nil {
			t.Error(err)
		}
	}
}
