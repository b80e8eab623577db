package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "junctor/internal/app" // so that the test cache depends on what go build reads
	"junctor/internal/postgres/pgtest"
)

// built are the programs that tests run, each built once.
var built struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

// databases is the PostgreSQL server shared by tests that neither stop it nor
// access databases other than their own.
var databases pgtest.Shared

const compileCache = "NODE_COMPILE_CACHE"

// TestMain stops the shared database server and removes the built programs.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "junctor-e2e")
	if err != nil {
		log.Fatal(err)
	}
	built.dir, built.paths = dir, map[string]string{}
	// Node caches compiled JavaScript there.
	if err := os.Setenv(compileCache, filepath.Join(dir, "node")); err != nil {
		log.Fatal(err)
	}
	code := databases.Main(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// program builds a main package and returns the path of its binary.
func program(t testing.TB, pkg string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if path := built.paths[pkg]; path != "" {
		return path
	}
	path := filepath.Join(built.dir, filepath.Base(pkg))
	args := []string{"build", "-ldflags=-s -w", "-o", path}
	if os.Getenv("JUNCTOR_COVERDIR") != "" && strings.HasPrefix(pkg, "junctor/") {
		args = append(args, "-cover", "-coverpkg=junctor/internal/...,junctor/cmd/...")
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // like released binaries
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	built.paths[pkg] = path
	return path
}

func junctor(t testing.TB) string { return program(t, "junctor/cmd/junctor") }

// everything returns the SDK's implementation of the conformance suite's
// example server.
func everything(t testing.TB) string {
	return program(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
}

// failures returns the folder for the logs and screenshots of failed tests.
// make test empties it first.
func failures(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".cache", "failed"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// homeFolder is a temporary home folder with a configuration of Junctor.
type homeFolder struct {
	t      testing.TB
	dir    string
	config string
}

func newHome(t testing.TB, config string) *homeFolder {
	t.Helper()
	dir, err := os.MkdirTemp("", "j") // short, because it contains sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &homeFolder{t: t, dir: dir, config: filepath.Join(dir, "junctor.json")}
	if err := os.WriteFile(h.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// env returns the environment of a program in the home folder. It contains none
// of the machine's own settings, keys and proxies.
func (h *homeFolder) env(extra ...string) []string {
	node, _ := suiteNode(h.t.(*testing.T))
	env := []string{
		"HOME=" + h.dir, "TMPDIR=" + h.dir, // agents pass little more to the programs that they start
		"PATH=" + filepath.Dir(node) + ":" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1", "CI=1",
		"NODE_NO_WARNINGS=1", compileCache + "=" + os.Getenv(compileCache), "GEMINI_CLI_NO_RELAUNCH=true", "no_proxy=127.0.0.1,localhost", "CHROMIUM=" + headlessPath(),
	}
	if dir := os.Getenv("JUNCTOR_COVERDIR"); dir != "" {
		env = append(env, "GOCOVERDIR="+dir)
	}
	return append(env, extra...)
}

// gateway is a running `junctor serve`.
type gateway struct {
	*homeFolder
	url string
	log *lines
	cmd *exec.Cmd
	end func() // stops it

	session func() string // returns the session of an administrator; see asAdmin

	said   chan string   // receives its address
	read   chan struct{} // closed at the end of its stderr
	killed atomic.Bool
}

// serve starts Junctor and waits until it logs its address.
func (h *homeFolder) serve(args ...string) *gateway { return h.begin(args...).await() }

// begin starts Junctor; await waits until it logs its address.
func (h *homeFolder) begin(args ...string) *gateway {
	h.t.Helper()
	cmd := exec.Command(junctor(h.t), append([]string{"serve", "--config", h.config, "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env, cmd.Dir = h.env(), h.dir
	stderr, err := cmd.StderrPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	g := &gateway{homeFolder: h, cmd: cmd, log: &lines{}, said: make(chan string, 1), read: make(chan struct{})}
	go func() {
		defer close(g.read)
		s := bufio.NewScanner(stderr)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			g.log.add(s.Text())
			if _, addr, ok := strings.Cut(s.Text(), " is at http://"); ok {
				g.said <- addr
			}
		}
	}()
	g.session = sync.OnceValue(g.signIn)
	g.end = sync.OnceFunc(g.stop)
	h.t.Cleanup(g.end)
	return g
}

func (g *gateway) await() *gateway {
	g.t.Helper()
	select {
	case addr := <-g.said:
		g.url = "http://" + strings.TrimSpace(addr)
	case <-g.read:
		g.t.Fatalf("junctor serve ended:\n%s", g.log)
	case <-time.After(time.Minute):
		g.t.Fatalf("junctor serve said nothing:\n%s", g.log)
	}
	return g
}

// asAdmin returns the header, as name and value, that gives requests the
// administrator's rights. These come neither from an Origin nor from any other
// header that any program can set, but from the token that `junctor open` gets
// through the socket, which is exchanged for a session like the page does.
func (g *gateway) asAdmin() []string { return []string{"X-Junctor-Session", g.session()} }

func (g *gateway) signIn() string {
	g.t.Helper()
	out, errs, err := g.run(nil, nil, junctor(g.t), "open", "--print", "--config", g.config)
	_, token, ok := strings.Cut(strings.TrimSpace(out), "?token=")
	if err != nil || !ok {
		g.t.Fatalf("junctor open --print: %v %s%s", err, out, errs)
	}
	resp, err := http.Post(g.url+"/api/session", "application/json", strings.NewReader(fmt.Sprintf(`{"token":%q}`, token)))
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Session string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Session == "" {
		g.t.Fatalf("sign in: %s %v", resp.Status, err)
	}
	return answer.Session
}

func (g *gateway) stop() {
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(time.Minute, func() { _ = g.cmd.Process.Kill() })
	defer kill.Stop()
	<-g.read
	if err := g.cmd.Wait(); err != nil && !g.killed.Load() {
		g.t.Errorf("junctor serve: %v\n%s", err, g.log)
	}
	if g.t.Failed() {
		g.t.Logf("the end of junctor's log, which is in %s:\n%s", g.keepLog(), g.log.tail(20))
	}
}

// keepLog saves the log of a gateway whose test failed.
func (g *gateway) keepLog() string {
	dir := filepath.Join(failures(g.t), strings.Map(func(r rune) rune {
		if r == '/' || r == ' ' {
			return '-'
		}
		return r
	}, g.t.Name()))
	file := filepath.Join(dir, fmt.Sprintf("gateway-%d.log", g.cmd.Process.Pid))
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(file, []byte(g.log.String()), 0o600)); err != nil {
		g.t.Log(err)
	}
	return file
}

// kill kills the gateway with SIGKILL.
func (g *gateway) kill() {
	g.killed.Store(true)
	_ = g.cmd.Process.Kill()
	g.end()
}

// ready waits until the servers are connected.
func (g *gateway) ready(servers ...string) *gateway {
	g.t.Helper()
	ctx := ctxFor(g.t)
	for {
		var health struct {
			Servers []struct {
				Name   string `json:"name"`
				Status string `json:"status"`
			} `json:"servers"`
		}
		if resp, err := http.Get(g.url + "/api/status"); err == nil {
			_ = json.NewDecoder(resp.Body).Decode(&health)
			resp.Body.Close()
		}
		left := len(servers)
		for _, s := range health.Servers {
			for _, want := range servers {
				if s.Name == want && s.Status == "connected" {
					left--
				}
			}
		}
		if left == 0 {
			return g
		}
		select {
		case <-ctx.Done():
			g.t.Fatalf("not connected: %v of %+v\n%s", servers, health.Servers, g.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lines collects the lines that a program printed.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

func (l *lines) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all[max(0, len(l.all)-n):], "\n")
}

func ctxFor(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// run runs a program in the home folder and returns its output.
func (h *homeFolder) run(stdin io.Reader, env []string, name string, args ...string) (stdout, stderr string, err error) {
	h.t.Helper()
	cmd := exec.CommandContext(ctxFor(h.t), name, args...)
	cmd.Env, cmd.Dir, cmd.Stdin = h.env(env...), h.dir, stdin
	cmd.WaitDelay = time.Minute
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// mustRun is run for programs that must succeed.
func (h *homeFolder) mustRun(env []string, name string, args ...string) string {
	h.t.Helper()
	out, errs, err := h.run(nil, env, name, args...)
	if err != nil {
		h.t.Fatalf("%s %s: %v\n%s\n%s", filepath.Base(name), strings.Join(args, " "), err, out, errs)
	}
	return out + errs
}

// unmet skips a test whose prerequisite is missing. In CI that is a failure.
func unmet(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// npm returns the path of a program that npm installed.
func npm(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		unmet(t, name+" is missing; run npm ci in e2e")
	}
	return path
}

// stdioConfig returns a configuration with the example server on stdio.
func stdioConfig(t testing.TB) string {
	return fmt.Sprintf(`{"mcpServers":{"everything":{"command":%q,"description":"Example tools of every kind"}}}`, everything(t))
}
