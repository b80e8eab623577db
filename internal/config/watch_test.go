package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// watch starts Watch and returns what it delivers.
func watch(t *testing.T, o Options, current *Config) chan Update {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	updates := make(chan Update, 100)
	done := make(chan error, 1)
	go func() { done <- Watch(ctx, o, current, func(u Update) { updates <- u }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return updates
}

// await returns the first update that ok accepts. Updates of half-written files
// may precede it.
func await(t *testing.T, updates chan Update, what string, ok func(Update) bool) Update {
	t.Helper()
	deadline := time.After(60 * time.Second)
	var last Update
	for {
		select {
		case last = <-updates:
			if ok(last) {
				return last
			}
		case <-deadline:
			t.Fatalf("no update with %s; the last was %+v", what, last)
		}
	}
}

func hasServer(name string) func(Update) bool {
	return func(u Update) bool {
		if u.Config == nil {
			return false
		}
		_, ok := u.Config.Server(name)
		return ok
	}
}

func failed(text string) func(Update) bool {
	return func(u Update) bool { return u.Err != nil && u.Config == nil && strings.Contains(u.Err.Error(), text) }
}

func loaded(t *testing.T, o Options) *Config {
	t.Helper()
	cfg, _, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "junctor.json")
	write(t, file, `{"mcpServers":{"a":{"command":"x"}}}`, 0o600)
	o := Options{File: file}
	updates := watch(t, o, loaded(t, o))

	write(t, file, `{"mcpServers":{"b":{"command":"x"}}}`, 0o600)
	await(t, updates, "b, written in place", hasServer("b"))

	// Editors replace the old file with a new one.
	next := filepath.Join(dir, "next")
	write(t, next, `{"mcpServers":{"c":{"command":"${C:-x}"}}}`, 0o600)
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
	await(t, updates, "c, renamed over", hasServer("c"))

	write(t, file, `{"mcpServers":`, 0o600)
	await(t, updates, "a syntax error", failed("not JSON"))

	write(t, file, `{"mcpServers":{"d":{"command":"${NAME}"}}}`, 0o600)
	await(t, updates, "a missing variable", func(u Update) bool {
		return u.Err == nil && len(u.Config.Servers) == 1 && len(u.Config.Servers[0].Unset) == 1
	})
	write(t, filepath.Join(dir, ".env"), "NAME=x\n", 0o600)
	await(t, updates, "d, after .env came", func(u Update) bool {
		return u.Err == nil && len(u.Config.Servers) == 1 && u.Config.Servers[0].Command == "x"
	})

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	await(t, updates, "the file gone", failed("no such file"))
	write(t, file, `{"mcpServers":{"e":{"command":"x"}}}`, 0o600)
	await(t, updates, "e, after it came back", hasServer("e"))
}

// TestWatchKubernetes watches a file like one of a ConfigMap: a link through a
// link to a folder, which is switched atomically.
func TestWatchKubernetes(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..1", "junctor.json"), `{"mcpServers":{"a":{"command":"x"}}}`, 0o600)
	if err := os.Symlink("..1", filepath.Join(dir, "..data")); err != nil {
		t.Skip("no symbolic links:", err)
	}
	file := filepath.Join(dir, "junctor.json")
	if err := os.Symlink(filepath.Join("..data", "junctor.json"), file); err != nil {
		t.Fatal(err)
	}
	o := Options{File: file}
	updates := watch(t, o, loaded(t, o))
	for _, next := range []string{"b", "c"} {
		write(t, filepath.Join(dir, ".."+next, "junctor.json"), `{"mcpServers":{"`+next+`":{"command":"x"}}}`, 0o600)
		if err := os.Symlink(".."+next, filepath.Join(dir, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		await(t, updates, next, hasServer(next))
	}
}

func TestWatchFollowsSymlink(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	target := filepath.Join(elsewhere, "dotfiles.json")
	write(t, target, `{}`, 0o600)
	file := filepath.Join(dir, "junctor.json")
	if err := os.Symlink(target, file); err != nil {
		t.Skip("no symbolic links:", err)
	}
	o := Options{File: file}
	updates := watch(t, o, loaded(t, o))
	write(t, target, `{"mcpServers":{"a":{"command":"x"}}}`, 0o600)
	await(t, updates, "a", hasServer("a"))
}

func TestWatchReportsNewFile(t *testing.T) {
	user := filepath.Join(t.TempDir(), "not", "yet")
	o := Options{UserDir: user}
	updates := watch(t, o, loaded(t, o))
	if _, err := Apply(o, Set("a", []byte(`{"command":"x"}`))); err != nil {
		t.Fatal(err)
	}
	await(t, updates, "a in a new file", hasServer("a"))
}

func TestWatchReportsChangeBeforeStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "junctor.json")
	write(t, file, `{}`, 0o600)
	o := Options{File: file}
	cfg := loaded(t, o)
	write(t, file, `{"mcpServers":{"a":{"command":"x"}}}`, 0o600)
	await(t, watch(t, o, cfg), "what changed before Watch began", hasServer("a"))
}

func TestWatchReportsFileMadeBeforeStart(t *testing.T) {
	o := Options{UserDir: filepath.Join(t.TempDir(), "not", "yet")}
	cfg := loaded(t, o)
	if _, err := Apply(o, Set("a", []byte(`{"command":"x"}`))); err != nil {
		t.Fatal(err)
	}
	await(t, watch(t, o, cfg), "a file made before Watch began", hasServer("a"))
}

func TestWatchReportsRemovedFile(t *testing.T) {
	work, user := t.TempDir(), t.TempDir()
	file := filepath.Join(work, "mcp.json")
	write(t, file, `{}`, 0o600)
	o := Options{WorkDir: work, UserDir: user, Trust: func(TrustRequest) (bool, error) { return true, nil }}
	cfg := loaded(t, o)
	o.Trust = nil
	updates := watch(t, o, cfg)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	await(t, updates, "the file gone", failed("the running configuration stays"))
	// The content changes and no one can be asked, so the old configuration
	// remains.
	write(t, file, `{"mcpServers":{"evil":{"command":"x"}}}`, 0o600)
	u := await(t, updates, "a refusal", failed("is not trusted yet"))
	var untrusted *UntrustedError
	if !errors.As(u.Err, &untrusted) {
		t.Errorf("err = %T", u.Err)
	}
}

func TestWatchReportsEnvFileChange(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "junctor.json")
	write(t, file, `{"mcpServers":{"a":{"command":"x","envFile":"sub/a.env"}}}`, 0o600)
	write(t, filepath.Join(dir, "sub", "a.env"), "K=1\n", 0o600)
	o := Options{File: file}
	updates := watch(t, o, loaded(t, o))
	write(t, filepath.Join(dir, "sub", "a.env"), "K=2\n", 0o600)
	await(t, updates, "the new variable", func(u Update) bool {
		return u.Config != nil && u.Config.Servers[0].Env["K"].Reveal() == "2"
	})
}

// TestWatchReportsFixedEnvFile checks that an env file with any error continues
// to be watched.
func TestWatchReportsFixedEnvFile(t *testing.T) {
	dir := t.TempDir()
	file, env := filepath.Join(dir, "junctor.json"), filepath.Join(dir, "sub", "a.env")
	write(t, file, `{"mcpServers":{"a":{"command":"x","envFile":"sub/a.env"}}}`, 0o600)
	write(t, env, "K=1\n", 0o600)
	o := Options{File: file}
	updates := watch(t, o, loaded(t, o))
	hasK := func(value string) func(Update) bool {
		return func(u Update) bool { return u.Config != nil && u.Config.Servers[0].Env["K"].Reveal() == value }
	}
	write(t, env, "K\n", 0o600)
	await(t, updates, "a line that is no variable", failed("a.env"))
	write(t, env, "K=2\n", 0o600)
	await(t, updates, "the corrected variable", hasK("2"))

	if err := os.Remove(env); err != nil {
		t.Fatal(err)
	}
	await(t, updates, "the env file gone", failed("no such file"))
	write(t, env, "K=3\n", 0o600)
	await(t, updates, "the env file back", hasK("3"))

	write(t, file, `{"mcpServers":{"a":{"command":"x","envFile":"new/b.env"}}}`, 0o600)
	await(t, updates, "an env file that is not there yet", failed("no such file"))
	write(t, filepath.Join(dir, "new", "b.env"), "K=4\n", 0o600)
	await(t, updates, "the new env file", hasK("4"))
}
