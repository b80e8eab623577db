package e2e

import (
	"fmt"
	"strings"
	"testing"

	"junctor/internal/upstream/upstreamtest"
)

// TestServersOfARunningGateway: disable, enable, restart and logs act on the
// running gateway, and are in effect when the command returns.
func TestServersOfARunningGateway(t *testing.T) {
	t.Parallel()
	tools := upstreamtest.Listen(t, upstreamtest.Script{})
	h := newHome(t, fmt.Sprintf(`{"mcpServers": {"tools": {"url": %q}}}`, tools.URL))
	g := h.serve()
	ctx := ctxFor(t)
	call := func() int {
		status, _, err := try(ctx, "POST", g.url+"/call_tool", "", callEcho)
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	servers := func(args ...string) string {
		return h.mustRun(nil, junctor(t), append(append([]string{"servers"}, args...), "--config", h.config)...)
	}
	eventually(t, "a call", func() bool { return call() == 200 })
	if out := servers("disable", "tools"); !strings.Contains(out, `Disabled "tools"`) {
		t.Error(out)
	}
	if status := call(); status == 200 {
		t.Error("a disabled server answers")
	}
	if out := servers("enable", "tools"); !strings.Contains(out, `Enabled "tools"`) {
		t.Error(out)
	}
	eventually(t, "a call after enabling", func() bool { return call() == 200 })
	if out := servers("restart", "tools"); !strings.Contains(out, `Restarting "tools"`) {
		t.Error(out)
	}
	eventually(t, "a call after restarting", func() bool { return call() == 200 })
	if out := servers("logs", "tools"); !strings.Contains(out, "not a program that junctor starts") {
		t.Error(out)
	}
	if _, errs, err := h.run(nil, nil, junctor(t), "servers", "restart", "toools", "--config", h.config); err == nil || !strings.Contains(errs, "tools") {
		t.Errorf("restart of an unknown server: %v %s", err, errs)
	}
}
