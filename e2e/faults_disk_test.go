//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFaultsDiskFull prevents all files of the gateway from growing, like a
// full disk: calls are refused rather than answered without a record, and
// health reports that, until there is space again.
func TestFaultsDiskFull(t *testing.T) {
	t.Parallel()
	h := newHome(t, fmt.Sprintf(`{"mcpServers":{"good":%s}}`, faultServer(t, "")))
	g := &faultFixture{gateway: h.serve()}
	g.awaitServer(t, "good")
	before := g.usage(t)
	limit := func(bytes uint64) {
		if err := unix.Prlimit(g.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(1)
	g.eventually(t, "a refused call", func() bool {
		o := g.call("good", "echo", "", 0)
		return o.err == nil && o.status >= 500
	})
	o := g.call("good", "echo", "", 0)
	if o.status < 500 || !strings.Contains(o.body, "record") {
		t.Errorf("a call without room for its record: %s", o)
	}
	g.eventually(t, "health to say so", func() bool {
		res, err := faultClient.Get(g.url + "/health/ready")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode != http.StatusOK
	})
	limit(unix.RLIM_INFINITY)
	g.awaitServer(t, "good")
	if lost := g.missing(t); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged calls have no record, such as %s", len(lost), len(g.acked), lost[0])
	}
	g.awaitBaseline(t, before)
}
