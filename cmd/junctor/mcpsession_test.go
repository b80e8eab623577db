package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// agents are processes of junctor mcp that share an empty home folder. Their
// server records each of its starts.
type agents struct {
	t    *testing.T
	home string
}

func newAgents(t *testing.T) *agents {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the server is a shell script")
	}
	home, err := os.MkdirTemp("", "j") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	file := filepath.Join(home, "config", "junctor", "junctor.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"mcpServers": {"one": {"command": "sh", "args": ["-c", "echo started >> %s/starts; exec test-server"], "env": {"UPSTREAMTEST_SCRIPT": "{}"}, "timeoutMs": 600000, "startTimeoutMs": 600000}}}`, home)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &agents{t, home}
}

// command returns a command that is killed if it takes far too long, so that a
// program that does not end fails its test.
func (a *agents) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	a.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "junctor", args...)
	cmd.Env = []string{"HOME=" + a.home, "XDG_CONFIG_HOME=" + a.home + "/config", "XDG_DATA_HOME=" + a.home + "/data", "PATH=" + os.Getenv("PATH"), "GORACE=" + exitDelay}
	cmd.Dir, cmd.Stderr = a.home, a.t.Output()
	return cmd
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// starts returns how often the server was started.
func (a *agents) starts() int {
	text, _ := os.ReadFile(filepath.Join(a.home, "starts")) // there is none before the first start
	return strings.Count(string(text), "\n")
}

// agent is one process of junctor mcp, used as an MCP server.
type agent struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	id  int
}

func (a *agents) start(args ...string) *agent {
	a.t.Helper()
	return a.initialize(a.command(append([]string{"mcp"}, args...)...))
}

// initialize starts a command and performs the MCP handshake.
func (a *agents) initialize(cmd *exec.Cmd) *agent {
	a.t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	c := &agent{t: a.t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	c.out.Buffer(nil, 1<<20)
	a.t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c.request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}`)
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		a.t.Fatal(err)
	}
	return c
}

// request sends a request and returns its id.
func (c *agent) request(method, params string) string {
	c.t.Helper()
	c.id++
	if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.id, method, params); err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf(`"id":%d,`, c.id)
}

func (c *agent) call(tool string) string {
	return c.request("tools/call", `{"name":"execute_tool","arguments":{"server":"one","tool":"`+tool+`","arguments":{"text":"hello"}}}`)
}

// answer returns the next message that contains id.
func (c *agent) answer(id string) string {
	c.t.Helper()
	for c.out.Scan() {
		if strings.Contains(c.out.Text(), id) {
			return c.out.Text()
		}
	}
	c.t.Fatalf("the stream ended: %v", c.out.Err())
	return ""
}

func (c *agent) works() {
	c.t.Helper()
	if got := c.answer(c.call("echo")); !strings.Contains(got, "hello") || strings.Contains(got, `"isError":true`) {
		c.t.Errorf("a call: %s", got)
	}
}

// reconnected waits until the agent has switched to another gateway.
func (c *agent) reconnected() { c.answer("notifications/tools/list_changed") }

// TestFirstAgentIsTheGateway: without junctor serve the first agent is the
// gateway for the others. One of them takes over when it is killed, and junctor
// serve takes over when it starts.
func TestFirstAgentIsTheGateway(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	first := a.start()
	first.works()
	second, third := a.start(), a.start()
	second.works()
	third.works()
	if n := a.starts(); n != 1 {
		t.Errorf("the server was started %d times for three agents", n)
	}

	pending := second.call("silent")
	second.works() // through the same gateway
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := second.answer(pending); !strings.Contains(got, "under way") {
		t.Errorf("a call under way: %s", got)
	}
	second.reconnected()
	third.reconnected()
	second.works()
	third.works()
	if n := a.starts(); n != 2 {
		t.Errorf("the server was started %d times after another agent took over, want 2", n)
	}

	serve := a.command("serve", "--listen", "127.0.0.1:0")
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serve.Process.Kill(); _ = serve.Wait() })
	eventually(t, "junctor serve has the socket", func() bool {
		out, err := a.command("open", "--print").Output()
		return err == nil && strings.HasPrefix(string(out), "http://127.0.0.1:")
	})
	for _, c := range []*agent{second, third} { // a call may be in flight when the gateway changes
		eventually(t, "the agent uses it", func() bool { return strings.Contains(c.answer(c.call("echo")), "hello") })
	}
	if err := second.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.cmd.Wait(); err != nil {
		t.Errorf("an agent that leaves: %v", err)
	}
	third.works()
}

// TestAgentsThatStartTogetherShareServers: agents that start at the same time
// agree on one gateway.
func TestAgentsThatStartTogetherShareServers(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	var all []*agent
	for range 4 {
		all = append(all, a.start())
	}
	for _, c := range all {
		c.works()
	}
	if n := a.starts(); n != 1 {
		t.Errorf("the server was started %d times for %d agents", n, len(all))
	}
	// An unknown server is an error, and --standalone starts a separate
	// gateway.
	if out, err := a.command("mcp", "--server", "nowhere").Output(); err == nil {
		t.Errorf("mcp --server nowhere: %s", out)
	}
	alone := a.start("--standalone")
	alone.works()
	if n := a.starts(); n != 2 {
		t.Errorf("the server was started %d times, want 2 with --standalone", n)
	}
}

// TestRequestsBeforeTheEndOfInputAreAnswered: requests sent before the end of
// the input are answered, also if the process itself is the gateway.
func TestRequestsBeforeTheEndOfInputAreAnswered(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	c := a.start()
	id := c.call("echo")
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	if got := c.answer(id); !strings.Contains(got, "hello") {
		t.Error(got)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("junctor mcp: %v", err)
	}
	// An unknown server is an error, also if the process itself is the gateway.
	cmd := a.command("mcp", "--server", "nowhere")
	cmd.Stderr = nil
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "nowhere") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestClosedStderrEndsNothing: a client may close the stderr of its agent.
func TestClosedStderrEndsNothing(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	cmd := a.command("mcp", "--log-level", "trace")
	stderr, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr.Close()
	cmd.Stderr = w
	c := a.initialize(cmd)
	w.Close()
	for range 3 { // each writes many lines
		c.works()
	}
}

// TestUnreadStderrBlocksNoCall: a client may never read the stderr of its
// agent. When the pipe is full, calls continue, and the number of dropped log
// lines is logged once stderr is read.
func TestUnreadStderrBlocksNoCall(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	cmd := a.command("mcp", "--log-level", "trace")
	stderr, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stderr.Close(); w.Close() })
	cmd.Stderr = w
	c := a.initialize(cmd)
	text := strings.Repeat("hello ", 1000)
	for range 100 { // more than the pipe and the gateway buffer
		id := c.request("tools/call", `{"name":"execute_tool","arguments":{"server":"one","tool":"echo","arguments":{"text":"`+text+`"}}}`)
		if got := c.answer(id); !strings.Contains(got, text) {
			t.Fatalf("a call: %s", got)
		}
	}
	reported := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "log lines were dropped") {
				close(reported)
				break
			}
		}
		_, _ = io.Copy(io.Discard, stderr)
	}()
	eventually(t, "the number of dropped lines is logged", func() bool {
		c.works()
		select {
		case <-reported:
			return true
		default:
			return false
		}
	})
}
