package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// idleTimeout is the timeoutMs of the servers whose calls take longer than that
// in total. It is long, so that a busy machine does not exceed it.
const idleTimeout = 6 * time.Second

// hostileServers returns the servers of hostileRows as further entries of
// mcpServers.
func hostileServers(t testing.TB) string {
	return fmt.Sprintf(`,"hostile":%[1]s,"circuit":%[1]s,"reports":%[2]s,"queued":%[3]s`, faultServer(t, ""),
		faultServer(t, fmt.Sprintf(`,"timeoutMs":%d`, idleTimeout.Milliseconds())),
		faultServer(t, fmt.Sprintf(`,"timeoutMs":%d,"maxConcurrent":1`, idleTimeout.Milliseconds())))
}

// post sends a request and returns the response.
func (g *faultFixture) post(path, body string, header ...string) outcome {
	req, err := http.NewRequest("POST", g.url+path, strings.NewReader(body))
	if err != nil {
		return outcome{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return send(req)
}

func (g *faultFixture) get(path string) outcome {
	req, err := http.NewRequest("GET", g.url+path, nil)
	if err != nil {
		return outcome{err: err}
	}
	return send(req)
}

func send(req *http.Request) outcome {
	res, err := faultClient.Do(req)
	if err != nil {
		return outcome{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return outcome{res.StatusCode, string(body), err}
}

// hostileRows runs faults of messages, schemas and timing on the gateway of
// TestFaults.
func (g *faultFixture) hostileRows(row func(string, func(*testing.T))) {
	row("hostile schema", func(t *testing.T) {
		for _, tool := range []string{"anyof", "allof"} {
			if o := g.call("hostile", tool, "", 0); o.status != http.StatusBadGateway || !strings.Contains(o.body, "too many steps") {
				t.Errorf("a call of a tool with a schema that multiplies: %s", o)
			}
		}
		for _, path := range []string{"/tools", "/tools/openai", "/tools/gemini", "/tools/anthropic", "/tools?query=anyof"} {
			if o := g.get(path); !o.ok() {
				t.Errorf("GET %s: %s", path, o)
			}
		}
		g.awaitServer(t, "hostile")
	})
	row("subscribing while the session ends", func(t *testing.T) {
		for range 20 {
			session := g.session20250618(t, "/mcp?mode=direct")
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					o := g.post("/mcp?mode=direct", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"fault://%d"}}`, i+2, i), session...)
					if o.err != nil {
						t.Errorf("subscribe: %s", o)
					}
				})
			}
			wg.Go(func() {
				req, _ := http.NewRequest("DELETE", g.url+"/mcp?mode=direct", nil)
				req.Header.Set("Mcp-Session-Id", session[1])
				if o := send(req); o.err != nil {
					t.Errorf("the end of a session: %s", o)
				}
			})
			wg.Wait()
		}
	})
	row("large bodies with small arguments", func(t *testing.T) {
		body := `{"server":"good","tool":"echo","arguments":{"text":"small"}` + strings.Repeat(" ", 15<<20) + `}`
		for range 20 { // a leak of this many would exceed the limits of check
			if o := g.post("/call_tool", body); !o.ok() {
				t.Fatalf("a large request: %s", o)
			}
		}
	})
	row("invalid UTF-8", func(t *testing.T) {
		if o := g.call("hostile", "latin1", "", 0); !o.ok() || !strings.Contains(o.body, "caf\uFFFD") {
			t.Errorf("an answer with invalid bytes: %s", o)
		}
		bad := "{\"server\":\"hostile\",\"tool\":\"echo\",\"arguments\":{\"text\":\"\xff\"}}"
		if o := g.post("/call_tool", bad); o.status != http.StatusBadRequest {
			t.Errorf("a request with invalid bytes: %s", o)
		}
		bad = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"\xff\"}}"
		if o := g.post("/mcp", bad); o.status != http.StatusBadRequest || !strings.Contains(o.body, `"id":7`) || !strings.Contains(o.body, "-32700") {
			t.Errorf("a message with invalid bytes: %s", o)
		}
		if o := g.get("/logs?limit=1000&server=hostile"); !o.ok() || !utf8.ValidString(o.body) || !strings.Contains(o.body, "caf\uFFFD") {
			t.Errorf("the call log: %s", o)
		}
	})
	row("deep nesting", func(t *testing.T) {
		if o := g.call("hostile", "deep", "", 0); o.status != http.StatusNotFound {
			t.Errorf("a tool nested too deeply: %s", o)
		}
		if o := g.get("/api/servers/hostile"); !o.ok() || !strings.Contains(o.body, `\"deep\" is left out`) {
			t.Errorf("the server does not say what is left out: %s", o)
		}
		deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
		for path, body := range map[string]string{
			"/call_tool": `{"server":"hostile","tool":"echo","arguments":` + deep + `}`,
			"/execute":   `{"provider":"anthropic","call":{"type":"tool_use","id":"1","name":"hostile__echo","input":` + deep + `}}`,
			"/mcp":       `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"x","arguments":` + deep + `}}`,
		} {
			if o := g.post(path, body); o.status != http.StatusBadRequest || path == "/mcp" && !strings.Contains(o.body, `"id":77`) {
				t.Errorf("%s with deep arguments: %s", path, o)
			}
		}
		g.awaitServer(t, "hostile")
	})
	row("waiting for a slot", func(t *testing.T) {
		// The first call uses the only slot for longer than the idle timeout;
		// queued calls must not fail.
		begun := filepath.Join(t.TempDir(), "begun")
		var wg sync.WaitGroup
		wg.Go(func() {
			if o := g.call("queued", "progress", begun, int((idleTimeout + time.Second).Milliseconds())); !o.ok() {
				t.Errorf("the call with the slot: %s", o)
			}
		})
		g.eventually(t, "the call with the slot", func() bool { _, err := os.Stat(begun); return err == nil })
		for range 4 {
			wg.Go(func() {
				if o := g.call("queued", "echo", "", 0); !o.ok() {
					t.Errorf("a call that waited: %s", o)
				}
			})
		}
		wg.Wait()
	})
	row("long calls that report progress", func(t *testing.T) {
		long := int((idleTimeout + time.Second).Milliseconds())
		var wg sync.WaitGroup
		wg.Go(func() {
			if o := g.call("reports", "progress", "", long); !o.ok() {
				t.Errorf("over /call_tool: %s", o)
			}
		})
		wg.Go(func() {
			o := g.post("/execute", fmt.Sprintf(`{"provider":"anthropic","call":{"type":"tool_use","id":"1","name":"reports__progress","input":{"text":"done","count":%d}}}`, long))
			if !o.ok() || !strings.Contains(o.body, "done") {
				t.Errorf("over /execute: %s", o)
			}
		})
		wg.Go(func() {
			session := g.session20250618(t, "/mcp")
			o := g.post("/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_tool","arguments":{"server":"reports","tool":"progress","arguments":{"text":"done","count":%d}}}}`, long), session...)
			if !o.ok() || !strings.Contains(o.body, "done") || strings.Contains(o.body, `"isError":true`) {
				t.Errorf("over MCP without a progress token: %s", o)
			}
		})
		wg.Wait()
	})
	row("circuit", g.circuit)
	row("streams that are never resumed", g.unresumed)
}

// session20250618 opens a session and returns the headers of its requests.
func (g *faultFixture) session20250618(t *testing.T, path string) []string {
	t.Helper()
	req, err := http.NewRequest("POST", g.url+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"faults","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := faultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("initialize: %s, %v", res.Status, err)
	}
	return []string{"Mcp-Session-Id", res.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-06-18"}
}

// threshold is the default number of failures that open a circuit.
const threshold = 5

// circuit checks that late failures of calls made before the circuit opened do
// not open it again, and that a pending approval does not block the trial call.
func (g *faultFixture) circuit(t *testing.T) {
	release := filepath.Join(t.TempDir(), "release")
	late := make(chan outcome, threshold)
	for range threshold {
		go func() { late <- g.call("circuit", "fail", release, 1) }()
	}
	g.eventually(t, "the calls that wait", func() bool {
		info, err := os.Stat(release + ".waiting")
		return err == nil && info.Size() == threshold
	})
	g.eventually(t, "the open circuit", func() bool {
		o := g.call("circuit", "fail", "", 1)
		return o.status == http.StatusServiceUnavailable && strings.Contains(o.body, "CIRCUIT_OPEN")
	})
	g.eventually(t, "the closed circuit", func() bool { return g.call("circuit", "fail", "", 0).ok() })
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range threshold {
		if o := <-late; o.ok() || o.err != nil {
			t.Errorf("a late call: %s", o)
		}
	}
	if o := g.call("circuit", "fail", "", 0); !o.ok() {
		t.Errorf("after the late failures of old calls: %s", o)
	}

	asked, answer := make(chan struct{}, 1), make(chan struct{})
	letAnswer := sync.OnceFunc(func() { close(answer) })
	defer letAnswer()
	silent := g.approver(t, func() {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-answer
	})
	willing := g.approver(t, func() {})
	g.eventually(t, "the open circuit of the guarded tool", func() bool {
		return strings.Contains(willing(1), "CIRCUIT_OPEN")
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for strings.Contains(silent(0), "CIRCUIT_OPEN") { // until a trial is allowed
			time.Sleep(20 * time.Millisecond)
		}
	}()
	select {
	case <-asked:
	case <-done:
		t.Fatal("a call was answered before its approval")
	}
	g.eventually(t, "a trial beside an unanswered approval", func() bool { return strings.Contains(willing(0), "trial") })
	letAnswer()
	<-done
}

// approver connects an MCP client whose calls of the guarded tool need
// approval, which decide is called for. It returns a function that makes such a
// call.
func (g *faultFixture) approver(t *testing.T, decide func()) func(count int) string {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "faults", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			decide()
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
	})
	s, err := client.Connect(ctxFor(t), &sdk.StreamableClientTransport{Endpoint: g.url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	ctx := ctxFor(t)
	return func(count int) string {
		arguments := map[string]any{"server": "circuit", "tool": "guarded", "arguments": map[string]any{"text": "trial", "count": count}}
		r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "execute_tool", Arguments: arguments})
		if err != nil {
			return err.Error()
		}
		b, err := json.Marshal(r)
		if err != nil {
			return err.Error()
		}
		return string(bytes.TrimSpace(b))
	}
}
