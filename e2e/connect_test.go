package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestConnectedClients: Junctor adds itself to the configuration of real
// clients, and the clients list it.
func TestConnectedClients(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		client  string
		list    []string
		sees    []string // in the client's list if it sees Junctor
		prepare map[string]string
	}{
		"claude": {client: "claude-code", list: []string{"mcp", "list"}, sees: []string{"junctor", "Connected"}},
		"gemini": {
			client: "gemini-cli", list: []string{"mcp", "list"}, sees: []string{"junctor", "Connected"},
			prepare: map[string]string{".gemini/settings.json": "{\n  // kept\n  \"security\": {\"folderTrust\": {\"enabled\": false}}\n}\n"},
		},
		"codex": {
			client: "codex", list: []string{"mcp", "list"}, sees: []string{"junctor", "mcp", "enabled"},
			prepare: map[string]string{".codex/config.toml": "# kept\nmodel = \"x\"\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			program := npm(t, name)
			h := newHome(t, stdioConfig(t))
			env := []string{"CODEX_HOME=" + filepath.Join(h.dir, ".codex"), "XDG_CONFIG_HOME=" + filepath.Join(h.dir, ".config"), "XDG_DATA_HOME=" + filepath.Join(h.dir, ".data"), "MCP_TIMEOUT=120000"} // the last is of Claude Code
			for path, text := range tt.prepare {
				h.write(path, text)
			}
			said := h.mustRun(env, junctor(t), "--config", h.config, "connect", tt.client)
			if !strings.Contains(said, "junctor was written into") {
				t.Errorf("junctor connect: %s", said)
			}
			// Gemini CLI waits only 5 s for a connection, which may be too
			// short on a busy machine.
			var out string
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the last output of %s %s, want %q:\n%s", name, strings.Join(tt.list, " "), tt.sees, out)
				}
			})
			eventually(t, "Junctor in the client's list", func() bool {
				out = h.mustRun(env, program, tt.list...)
				return !slices.ContainsFunc(tt.sees, func(words string) bool { return !strings.Contains(out, words) })
			})
			for path := range tt.prepare {
				data, err := os.ReadFile(filepath.Join(h.dir, path))
				if err != nil || !strings.Contains(string(data), "kept") {
					t.Errorf("%s lost its comment: %v\n%s", path, err, data)
				}
			}

			h.mustRun(env, junctor(t), "--config", h.config, "connect", tt.client, "--undo")
			if out := h.mustRun(env, program, tt.list...); strings.Contains(out, "junctor mcp") || strings.Contains(out, "Connected") {
				t.Errorf("after --undo the client still sees it:\n%s", out)
			}
			for path := range tt.prepare {
				data, err := os.ReadFile(filepath.Join(h.dir, path))
				if err != nil || strings.Contains(string(data), "junctor") || !strings.Contains(string(data), "kept") {
					t.Errorf("after --undo %s is not what it was: %v\n%s", path, err, data)
				}
			}
		})
	}
}
