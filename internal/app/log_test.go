package app

import (
	"fmt"
	"strings"
	"testing"

	"junctor/internal/upstream/upstreamtest"
)

// TestDebugAndTraceLogs checks the log of a call at the levels debug and
// trace, and that there is none at info.
func TestDebugAndTraceLogs(t *testing.T) {
	remote := upstreamtest.Listen(t, upstreamtest.Script{})
	local := upstreamtest.Stdio(t, "local", upstreamtest.Script{Stderr: []string{"warming up the cache"}})
	config := func(level string) string {
		return fmt.Sprintf(`{"mcpServers":{"remote":%s,"local":%s},"log":{"level":%q}}`, entry(t, remote.Config("remote")), entry(t, local), level)
	}
	r := start(t, config("trace"), t.TempDir())
	call := func(server, tool, argument string) string {
		code, body := r.ask("POST", "/api/call", fmt.Sprintf(`{"server":%q,"tool":%q,"arguments":{"text":%q}}`, server, tool, argument))
		if code != 200 {
			t.Fatalf("call: %d %s", code, body)
		}
		return body
	}
	if body := call("remote", "headers", ""); !strings.Contains(body, "junctor/test") {
		t.Errorf("no User-Agent towards the server: %s", body)
	}
	long := strings.Repeat("x", 20<<10)
	call("local", "echo", "hello api_key=sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "+long)
	eventually(t, "the server's stderr", func() bool { return strings.Contains(r.log.String(), "warming up the cache") })
	log := r.log.String()
	for _, want := range []string{
		`"connecting"`, `"connection made"`, `"call step"`, `"step":"resolve"`, `"step":"dispatch"`, `"client connection new"`,
		`"message sent"`, `"message received"`, `"method":"tools/list"`, `"method":"tools/call"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s", want)
		}
	}
	if strings.Contains(log, "sk-ant-api03-aaaa") {
		t.Error("the log has a secret")
	}
	if strings.Contains(log, long) {
		t.Error("the log has a whole long message")
	}
	if t.Failed() {
		t.Logf("%.4000s", log)
	}

	r.write(config("info"))
	eventually(t, "the level info", func() bool { return r.opts.Level.Level() == 0 })
	before := len(r.log.String())
	call("local", "echo", "quiet")
	if after := r.log.String()[before:]; strings.Contains(after, "call step") || strings.Contains(after, "message sent") {
		t.Errorf("at info: %s", after)
	}
}
