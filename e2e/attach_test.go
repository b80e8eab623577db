package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"junctor/internal/mcp"
)

// running returns the processes of a binary.
func running(t testing.TB, binary string) (pids []int) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		t.Skip("no /proc to look at")
	}
	for _, dir := range dirs {
		if cmd, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil && strings.HasPrefix(string(cmd), binary+"\x00") {
			if stat, err := os.ReadFile(filepath.Join(dir, "stat")); err == nil && !strings.Contains(string(stat), ") Z ") {
				if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids
}

func processes(t testing.TB, binary string) int { return len(running(t, binary)) }

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx := ctxFor(t)
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// own links a program to a path of its own, so that its processes can be
// distinguished from those of other tests. It does not copy the program,
// because a file that was just written cannot be executed while another test's
// child still has it open for writing.
func (h *homeFolder) own(binary, name string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if os.Link(binary, path) != nil { // on another disk
		if err := os.Symlink(binary, path); err != nil {
			h.t.Fatal(err)
		}
	}
	return path
}

// TestTenClientsShareOneSetOfServers: every `junctor mcp` attaches to the
// running gateway, with the view that it requests.
func TestTenClientsShareOneSetOfServers(t *testing.T) {
	t.Parallel()
	h := newHome(t, "{}")
	server := h.own(everything(t), "example-server")
	h.write("junctor.json", fmt.Sprintf(`{"mcpServers":{"everything":{"command":%q}}}`, server))
	g := h.serve().ready("everything")
	ctx := ctxFor(t)
	connect := func(args ...string) *sdk.ClientSession {
		cmd := exec.Command(junctor(t), append([]string{"mcp", "--config", h.config}, args...)...)
		cmd.Env, cmd.Dir = h.env(), h.dir
		s, err := sdkClient(nil).Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	var sessions []*sdk.ClientSession
	for i := range 10 {
		sessions = append(sessions, connect([][]string{nil, {"--mode", "direct"}, {"--server", "everything"}}[i%3]...))
	}
	var wg sync.WaitGroup
	for i, s := range sessions {
		wg.Go(func() {
			params := []*sdk.CallToolParams{
				{Name: "execute_tool", Arguments: map[string]any{"server": "everything", "tool": "test_simple_text", "arguments": map[string]any{}}},
				{Name: "everything__test_simple_text"}, {Name: "test_simple_text"},
			}[i%3]
			if r, err := s.CallTool(ctx, params); err != nil || r.IsError {
				t.Errorf("client %d: %+v, %v", i, r, err)
			}
		})
	}
	wg.Wait()
	if n := processes(t, server); n != 1 {
		t.Errorf("%d servers for ten clients", n)
	}
	alone := connect("--standalone")
	if _, err := alone.ListTools(ctx, nil); err != nil {
		t.Error(err)
	}
	eventually(t, "--standalone starts a server of its own", func() bool { return processes(t, server) == 2 })
	for _, s := range append(sessions, alone) {
		s.Close()
	}
	eventually(t, "the second server is gone", func() bool { return processes(t, server) == 1 })
	// The command line uses the same gateway.
	if out := h.mustRun(nil, junctor(t), "tools", "list", "--config", h.config, "--json"); !strings.Contains(out, "test_simple_text") {
		t.Errorf("tools list = %s", out)
	}
	if n := processes(t, server); n != 1 {
		t.Errorf("%d servers after the command line", n)
	}
	// An unknown server is an error, not a second gateway.
	if out, errs, err := h.run(strings.NewReader(""), nil, junctor(t), "mcp", "--config", h.config, "--server", "no-such"); err == nil {
		t.Errorf("mcp --server no-such: %s %s", out, errs)
	}
	_ = g
}

// rawClient exchanges lines with `junctor mcp`.
type rawClient struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func (h *homeFolder) raw(args ...string) *rawClient {
	h.t.Helper()
	cmd := exec.Command(junctor(h.t), append([]string{"mcp", "--config", h.config}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stderr = h.env(), h.dir, h.t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	c := &rawClient{t: h.t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	c.out.Buffer(nil, 64<<20)
	h.t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return c
}

func (c *rawClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next line that contains part.
func (c *rawClient) next(part string) string {
	c.t.Helper()
	for c.out.Scan() {
		if strings.Contains(c.out.Text(), part) {
			return c.out.Text()
		}
	}
	c.t.Fatalf("the stream ended before %s: %v", part, c.out.Err())
	return ""
}

// ask sends a request and returns the response.
func (c *rawClient) ask(line string) string {
	c.t.Helper()
	c.send(line)
	m, err := mcp.Decode([]byte(line), mcp.Limits{})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.next(`"id":` + string(m.ID) + `,`)
}

func (c *rawClient) execute(server, tool, arguments string) string {
	c.t.Helper()
	return c.ask(`{"jsonrpc":"2.0","id":` + strconv.Itoa(time.Now().Nanosecond()) + `,"method":"tools/call","params":{"name":"execute_tool","arguments":{"server":"` + server + `","tool":"` + tool + `","arguments":` + arguments + `}}}`)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// TestBrokenServersDoNotAffectOthers: calls to servers that are down, disabled,
// or die during a call get a clear error, and the next call succeeds.
func TestBrokenServersDoNotAffectOthers(t *testing.T) {
	t.Parallel()
	h := newHome(t, "{}")
	server := h.own(everything(t), "example-server")
	h.write("junctor.json", fmt.Sprintf(`{"mcpServers":{"good":{"command":%q},"off":{"command":%q,"enabled":false},"down":{"command":"/no/such/program"}}}`, server, server))
	c := h.raw()
	c.ask(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1))
	for server, part := range map[string]string{"down": "down", "off": "disabled", "gone": "no server named"} {
		if got := c.execute(server, "test_simple_text", `{}`); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, part) || strings.Contains(got, "/no/such") {
			t.Errorf("%s: %s", server, got)
		}
	}
	if got := c.execute("good", "test_simple_text", `{}`); !strings.Contains(got, "simple text response") {
		t.Errorf("good: %s", got)
	}
	// Kill it while it waits for the answer to a question.
	c.send(`{"jsonrpc":"2.0","id":"killed","method":"tools/call","params":{"name":"execute_tool","arguments":{"server":"good","tool":"test_elicitation","arguments":{"message":"sure?"}}}}`)
	c.next(`"elicitation/create"`)
	for _, pid := range running(t, server) {
		if p, err := os.FindProcess(pid); err != nil || p.Kill() != nil {
			t.Errorf("process %d cannot be killed", pid)
		}
	}
	if got := c.next(`"id":"killed"`); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "good") {
		t.Errorf("killed in the middle: %s", got)
	}
	eventually(t, "the server is back", func() bool {
		return strings.Contains(c.execute("good", "test_simple_text", `{}`), "simple text response")
	})
	// After the client has disconnected no process is left.
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("junctor mcp: %v", err)
	}
	eventually(t, "the servers are gone", func() bool { return processes(t, server) == 0 })
}

// TestKilledClientEndsItsServers: when a client is killed, its servers exit.
func TestKilledClientEndsItsServers(t *testing.T) {
	t.Parallel()
	h := newHome(t, "{}")
	server := h.own(everything(t), "example-server")
	h.write("junctor.json", fmt.Sprintf(`{"mcpServers":{"good":{"command":%q}}}`, server))
	c := h.raw("--standalone")
	c.ask(initialize)
	if got := c.execute("good", "test_simple_text", `{}`); !strings.Contains(got, "simple text response") {
		t.Fatal(got)
	}
	if n := processes(t, server); n != 1 {
		t.Fatalf("%d servers", n)
	}
	_ = c.cmd.Process.Kill()
	eventually(t, "the servers are gone", func() bool { return processes(t, server) == 0 })
}

// TestMalformedInput sends ten thousand malformed messages to the real binary:
// each that requires a response gets one, and the program continues to work.
func TestMalformedInput(t *testing.T) {
	t.Parallel()
	h := newHome(t, `{}`)
	c := h.raw("--standalone")
	c.ask(initialize)
	const n = 10_000
	answered := make(chan struct{})
	go func() { // every message requires a response
		defer close(answered)
		for range n {
			if !c.out.Scan() || !json.Valid(c.out.Bytes()) {
				t.Errorf("not JSON: %.200q, %v", c.out.Text(), c.out.Err())
				return
			}
		}
	}()
	bad := []string{
		`{`, `nonsense`, `[]`, `{}`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":{},"method":"x"}`, `{"jsonrpc":"2.0","id":1,"method":7}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":7}}`, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"execute_tool","arguments":[]}}`,
		strings.Repeat("[", 2000), "\xff\xfe\x00",
	}
	w := bufio.NewWriter(c.in)
	for i := range n {
		fmt.Fprintln(w, bad[i%len(bad)])
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	<-answered
	if got := c.ask(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`); !strings.Contains(got, `"result":{}`) {
		t.Errorf("afterwards: %s", got)
	}
}

// TestSessionSurvivesGatewayRestart: an agent's session continues after the
// gateway is restarted.
func TestSessionSurvivesGatewayRestart(t *testing.T) {
	t.Parallel()
	h := newHome(t, stdioConfig(t))
	g := h.serve().ready("everything")
	c := h.raw()
	c.ask(initialize)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if got := c.execute("everything", "test_simple_text", `{}`); !strings.Contains(got, "simple text response") {
		t.Fatal(got)
	}
	g.end()
	h.serve().ready("everything")
	c.next("notifications/tools/list_changed")
	if got := c.execute("everything", "test_simple_text", `{}`); !strings.Contains(got, "simple text response") {
		t.Errorf("after the restart: %s", got)
	}
}
