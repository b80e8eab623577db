package app

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"junctor/internal/configshare"
	"junctor/internal/store"
	"junctor/internal/upstream/upstreamtest"
)

// TestEditsAtOnceAreAllInForce: every edit that was answered with success is in
// the file and in force, whatever else was edited at the same time.
func TestEditsAtOnceAreAllInForce(t *testing.T) {
	server := upstreamtest.Listen(t, upstreamtest.Script{})
	r := start(t, fmt.Sprintf(`{"mcpServers":{"one":{"url":%q}}}`, server.URL), t.TempDir())
	r.connected("one")
	var wg sync.WaitGroup
	var added atomic.Int32
	for i := range 8 {
		expect := func(method, path, body string) {
			if code, answer := r.ask(method, path, body); code != 200 {
				t.Errorf("%s %s: %d %s", method, path, code, answer)
			}
		}
		wg.Go(func() {
			expect("POST", "/api/servers", fmt.Sprintf(`{"servers":{"s%d":{"command":"true","enabled":false,"env":{"TOKEN":"ghp_0123456789abcdefghij0123456789abcde%d"}}}}`, i, i))
		})
		wg.Go(func() {
			expect("PATCH", "/api/config", fmt.Sprintf(`{"set":{"profiles.p%d":{"servers":["one"]}}}`, i))
		})
		wg.Go(func() {
			if code, _ := r.ask("POST", "/api/servers", fmt.Sprintf(`{"servers":{"same":{"command":"true","enabled":false,"description":"%d"}}}`, i)); code == 200 {
				added.Add(1)
			}
		})
	}
	wg.Wait()
	cfg := r.config.Load()
	for i := range 8 {
		s, ok := cfg.Server(fmt.Sprint("s", i))
		if want := fmt.Sprint("ghp_0123456789abcdefghij0123456789abcde", i); !ok || s.Env["TOKEN"].Reveal() != want {
			t.Errorf("s%d is not in force with its own secret", i)
		}
		if _, ok := cfg.Profiles[fmt.Sprint("p", i)]; !ok {
			t.Errorf("profile p%d is not in force", i)
		}
	}
	if n := added.Load(); n != 1 {
		t.Errorf("%d requests have added a server of the same name", n)
	}
}

// TestEditOfInvalidFile: an edit of a file that somebody has made invalid is
// written, shared, and reported as not in force.
func TestEditOfInvalidFile(t *testing.T) {
	r := start(t, `{"mcpServers":{"a":{"command":"true","enabled":false}}}`, t.TempDir())
	sealer, err := store.NewSealer(make([]byte, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	r.editing.Lock()
	vault := store.NewVault(r.store, sealer)
	r.edits = configshare.New(configshare.Options{Store: r.store, Vault: vault, Config: r.opts.Reload, Editing: &r.editing, Log: r.App.log})
	r.editing.Unlock()
	r.write(`{"mcpServers":{"a":{"command":"true","enabled":false},"typo":{"comand":"x"}}}`)
	code, body := r.ask("DELETE", "/api/servers/a", "")
	if code == 200 || !strings.Contains(body, "not in force") || !strings.Contains(body, "typo") {
		t.Errorf("%d %s", code, body)
	}
	if text, err := os.ReadFile(r.config.Load().Place().Path); err != nil || strings.Contains(string(text), `"a"`) {
		t.Errorf("the file: %s, %v", text, err)
	}
	if kept, err := vault.List(t.Context()); err != nil || len(kept) != 1 {
		t.Errorf("shared: %v, %v", kept, err)
	}
}
