package app

import (
	"context"
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

// TestEditsAtOnceAreAllInForce checks that of concurrent edits every
// successful one is in the file and in effect.
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

// TestEditOfInvalidFile checks that an edit of an invalid file is written,
// shared, audited, and reported as not in effect.
func TestEditOfInvalidFile(t *testing.T) {
	up := upstreamtest.Listen(t, upstreamtest.Script{})
	servers := fmt.Sprintf(`"up":{"url":%q},"a":{"command":"true","enabled":false}`, up.URL)
	r := start(t, `{"mcpServers":{`+servers+`},"profiles":{"old":{}}}`, t.TempDir())
	r.connected("up")
	sealer, err := store.NewSealer(make([]byte, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	r.editing.Lock()
	vault := store.NewVault(r.store, sealer)
	r.edits = configshare.New(configshare.Options{Store: r.store, Vault: vault, Config: r.opts.Reload, Editing: &r.editing, Log: r.App.log})
	r.editing.Unlock()
	r.write(`{"mcpServers":{` + servers + `,"typo":{"comand":"x"}},"profiles":{"old":{}}}`)
	edit := func(action, target, method, path, request string) {
		t.Helper()
		code, body := r.ask(method, path, request)
		if code == 200 || !strings.Contains(body, "takes effect only when the file is valid") || !strings.Contains(body, "typo") {
			t.Errorf("%s: %d %s", action, code, body)
		}
		if _, body := r.ask("GET", "/api/audit?action="+action, ""); !strings.Contains(body, fmt.Sprintf(`"target":%q`, target)) {
			t.Errorf("%s of %s is not in the audit log: %s", action, target, body)
		}
	}
	edit("server.remove", "a", "DELETE", "/api/servers/a", "")
	if text, err := os.ReadFile(r.config.Load().Place().Path); err != nil || strings.Contains(string(text), `"a"`) {
		t.Errorf("the file: %s, %v", text, err)
	}
	if kept, err := vault.List(t.Context()); err != nil || len(kept) != 1 {
		t.Errorf("shared: %v, %v", kept, err)
	}
	edit("server.add", "b", "POST", "/api/servers", `{"servers":{"b":{"command":"true"}}}`)
	edit("server.change", "up", "PUT", "/api/servers/up", `{"server":{"command":"true"}}`)
	edit("tool.change", "up:echo", "PATCH", "/api/tools/up/echo", `{"enabled":false}`)
	edit("config.change", "log.level", "PATCH", "/api/config", `{"set":{"log.level":"error"}}`)
	edit("profile.add", "new", "PUT", "/api/profiles/new", `{"servers":["up"]}`)
	edit("profile.remove", "old", "DELETE", "/api/profiles/old", "")
}

// unavailable is a store whose values cannot be listed.
type unavailable struct{ store.Store }

func (unavailable) Values(context.Context, string) ([]store.Value, error) {
	return nil, store.ErrUnavailable
}

// TestEditThatIsNotShared checks that an edit that could not be shared with
// other nodes is in effect, audited and reported.
func TestEditThatIsNotShared(t *testing.T) {
	r := start(t, `{"mcpServers":{"a":{"command":"true","enabled":false}}}`, t.TempDir())
	sealer, err := store.NewSealer(make([]byte, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	r.editing.Lock()
	r.edits = configshare.New(configshare.Options{Store: r.store, Vault: store.NewVault(unavailable{r.store}, sealer), Config: r.opts.Reload, Editing: &r.editing, Log: r.App.log})
	r.editing.Unlock()
	if code, body := r.ask("DELETE", "/api/servers/a", ""); code == 200 || !strings.Contains(body, "written to the file of this node only") {
		t.Errorf("%d %s", code, body)
	}
	if _, ok := r.config.Load().Server("a"); ok {
		t.Error("it is not in force")
	}
	if _, body := r.ask("GET", "/api/audit?action=server.remove", ""); !strings.Contains(body, `"target":"a"`) {
		t.Errorf("the audit log: %s", body)
	}
}
