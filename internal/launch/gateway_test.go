package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/config"
)

// The gateway of a chat applies a server that is added to its file, and the
// command that added it can wait for that.
func TestSharedGatewayFollowsItsFile(t *testing.T) {
	dir, err := os.MkdirTemp("", "j") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := process{file: filepath.Join(dir, "junctor.json"), dir: dir, userDir: dir, dataDir: dir, lookup: func(string) (string, bool) { return "", false }}
	write := func(text string) (*Launcher, *config.Config) {
		if err := os.WriteFile(p.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p.load(t)
	}
	_, before := write(`{"mcpServers":{}}`)
	var log bytes.Buffer // read after stop
	_, stop, err := p.launcher(&log).Share(t.Context(), before, p.options())
	if err != nil {
		t.Fatal(err)
	}
	l, after := write(`{"mcpServers":{"late":{"command":"no-such-program"}}}`)
	if g := l.Attach(l.Running(t.Context(), before)); g.has(t.Context(), "never") {
		t.Error("the gateway has a server that is not in its file")
	}
	if l.AwaitServer(t.Context(), before, after, "late") == nil {
		t.Error("the gateway does not have the server that was added to its file")
	}
	stop()
	if strings.Contains(log.String(), "request rejected") {
		t.Errorf("waiting for the server is logged as rejected requests: %s", log.String())
	}
	if l.AwaitServer(t.Context(), before, after, "late") != nil {
		t.Error("found a gateway that has ended")
	}
}
