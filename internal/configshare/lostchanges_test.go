package configshare

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/config"
	"junctor/internal/sqlite"
	"junctor/internal/store"
)

func openStore(t *testing.T) store.Store {
	t.Helper()
	db, err := sqlite.Open(context.Background(), store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// old sets the file's time back, so that all changes are newer.
func (n *node) old() {
	n.t.Helper()
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(n.file, past, past); err != nil {
		n.t.Fatal(err)
	}
}

// TestPatchesPublishedAtOnce checks that changes of different keys that several
// nodes publish concurrently all reach a node that starts later.
func TestPatchesPublishedAtOnce(t *testing.T) {
	db := openStore(t)
	var wg sync.WaitGroup
	for i := range 8 {
		n := newNode(t, db, 1, `{}`)
		wg.Go(func() {
			if err := n.Publish([]config.Edit{config.Merge("a", json.RawMessage(fmt.Sprintf(`{"env":null,"x%d":%d}`, i, i)))}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	late := newNode(t, db, 1, `{}`)
	plain, _, err := late.opts.Vault.Get(context.Background(), prefix+"a/part")
	if err != nil {
		t.Fatal(err)
	}
	var c change
	if err := json.Unmarshal(plain, &c); err != nil {
		t.Fatal(err)
	}
	text := `{"mcpServers":{"a":{"command":"x","env":{}}}}`
	for _, p := range c.parts() {
		b, err := config.EditBytes([]byte(text), p.Edit)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	for i := range 8 {
		if !strings.Contains(text, fmt.Sprintf(`"x%d"`, i)) {
			t.Errorf("change %d is lost: %s", i, text)
		}
	}
}

// TestRulesOfSimilarNames checks that a change of a tool's rule does not affect
// the rules of tools whose names begin with its name.
func TestRulesOfSimilarNames(t *testing.T) {
	db := openStore(t)
	one, late := newNode(t, db, 1, `{}`), newNode(t, db, 1, `{}`)
	late.old()
	for _, pattern := range []string{"a:t/part", "a:t.x", "a:t"} {
		if err := one.Publish([]config.Edit{config.Rule(pattern, json.RawMessage(`{"enabled":false}`))}); err != nil {
			t.Fatal(err)
		}
	}
	late.run()
	late.awaitFile("all three", func(f string) bool { return strings.Count(f, "false") == 3 })
}

// TestChangeOfOneKeyLeavesTheOthers checks that a key that was edited by hand
// on a node after a change was applied there is kept when another key is
// changed on another node.
func TestChangeOfOneKeyLeavesTheOthers(t *testing.T) {
	db := openStore(t)
	one, two := newNode(t, db, 1, `{}`), newNode(t, db, 1, `{}`)
	two.run()
	publish := func(patch string) {
		t.Helper()
		if err := one.Publish([]config.Edit{config.Rule("a:t", json.RawMessage(patch))}); err != nil {
			t.Fatal(err)
		}
	}
	publish(`{"enabled":false}`)
	two.awaitFile("it is off", func(f string) bool { return strings.Contains(f, "false") })
	if _, err := config.Apply(two.opts.Config, config.Rule("a:t", json.RawMessage(`{"enabled":true}`))); err != nil {
		t.Fatal(err)
	}
	publish(`{"approval":"ask"}`)
	two.awaitFile("it asks", func(f string) bool { return strings.Contains(f, "ask") })
	two.awaitFile("and is still on", func(f string) bool { return strings.Contains(f, "true") && !strings.Contains(f, "false") })
}

// unreadable is a store that can list its values but not read a single one.
type unreadable struct{ store.Store }

func (unreadable) Value(context.Context, string, string) (store.Value, error) {
	return store.Value{}, store.ErrUnavailable
}

// TestNodeThatStopsWhileItCatchesUp checks that a node that loses the database
// after it has listed the changes that it missed applies all of them. A change
// that was not applied would be lost, because the file would be newer.
func TestNodeThatStopsWhileItCatchesUp(t *testing.T) {
	db := openStore(t)
	one, late := newNode(t, db, 1, `{}`), newNode(t, db, 1, `{}`)
	for _, name := range []string{"a", "b"} {
		if err := one.Publish([]config.Edit{config.Set(name, json.RawMessage(`{"command":"x"}`))}); err != nil {
			t.Fatal(err)
		}
	}
	sealer, err := store.NewSealer([]byte(strings.Repeat("\x01", store.KeySize)))
	if err != nil {
		t.Fatal(err)
	}
	late.opts.Vault = store.NewVault(unreadable{db}, sealer)
	if err := late.applyNew(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	late.awaitFile("both changes", func(f string) bool { return strings.Contains(f, `"a"`) && strings.Contains(f, `"b"`) })
}

// TestOwnChangeAfterOneOfTheWhole checks that a node that changes a part of a
// server or setting just after another node has replaced the whole keeps its
// own change, which the other nodes apply too.
func TestOwnChangeAfterOneOfTheWhole(t *testing.T) {
	for name, edits := range map[string]struct{ whole, part config.Edit }{
		"server":  {config.Set("a", json.RawMessage(`{"command":"new"}`)), config.Merge("a", json.RawMessage(`{"enabled":false}`))},
		"setting": {config.SetValue("limits", json.RawMessage(`{"maxBodyBytes":2000}`)), config.SetValue("limits.maxSessions", json.RawMessage("5"))},
		"rules":   {config.SetValue("toolRules", json.RawMessage(`[{"pattern":"b:*","tags":["x"]}]`)), config.Rule("a:t", json.RawMessage(`{"enabled":false}`))},
	} {
		t.Run(name, func(t *testing.T) {
			db := openStore(t)
			const file = `{"mcpServers":{"a":{"command":"old"}}}`
			one, two, other := newNode(t, db, 1, file), newNode(t, db, 1, file), newNode(t, db, 1, file)
			if err := two.Publish([]config.Edit{edits.whole}); err != nil {
				t.Fatal(err)
			}
			if _, err := config.Apply(one.opts.Config, edits.part); err != nil {
				t.Fatal(err)
			}
			if err := one.Publish([]config.Edit{edits.part}); err != nil {
				t.Fatal(err)
			}
			var settings, files [2]string
			for i, n := range []*node{one, other} {
				if err := n.applyNew(t.Context(), time.Time{}); err != nil {
					t.Fatal(err)
				}
				cfg, _, err := config.Load(n.opts.Config)
				if err != nil {
					t.Fatal(err)
				}
				s, _ := cfg.Server("a")
				shown, err := json.Marshal([]any{s.Command, s.Enabled, cfg.Limits, cfg.ToolRules})
				if err != nil {
					t.Fatal(err)
				}
				settings[i] = string(shown)
				text, err := os.ReadFile(n.file)
				if err != nil {
					t.Fatal(err)
				}
				files[i] = string(text)
			}
			if settings[0] != settings[1] {
				t.Errorf("the nodes differ: %s and %s", files[0], files[1])
			}
		})
	}
}

// TestOwnChangesAreNotMadeAgain checks that a node does not apply a change that
// it has published itself, which would overwrite later edits.
func TestOwnChangesAreNotMadeAgain(t *testing.T) {
	db := openStore(t)
	one, two := newNode(t, db, 1, `{"mcpServers":{"a":{"command":"by hand"}}}`), newNode(t, db, 1, `{}`)
	if err := one.Publish([]config.Edit{config.Set("a", json.RawMessage(`{"command":"published"}`))}); err != nil {
		t.Fatal(err)
	}
	if err := two.Publish([]config.Edit{config.Set("b", json.RawMessage(`{"command":"x"}`))}); err != nil {
		t.Fatal(err)
	}
	one.run()
	one.awaitFile("the change of another", func(f string) bool { return strings.Contains(f, `"b"`) })
	one.awaitFile("its own edit stays", func(f string) bool { return strings.Contains(f, "by hand") })
	if err := two.Publish([]config.Edit{config.Set("a", json.RawMessage(`{"command":"of another"}`))}); err != nil {
		t.Fatal(err)
	}
	one.awaitFile("a change of the same server on another", func(f string) bool { return strings.Contains(f, "of another") })
}

// TestSecretsOfChanges checks that all nodes store the secrets of a change
// under the same variable, so that a later change with the variable applies on
// all of them.
func TestSecretsOfChanges(t *testing.T) {
	db := openStore(t)
	one, two := newNode(t, db, 1, `{}`), newNode(t, db, 1, `{}`)
	two.run()
	const secret = "ghp_0123456789abcdefghij0123456789abcdef"
	publish := func(edits ...config.Edit) {
		t.Helper()
		if err := one.Publish(edits); err != nil {
			t.Fatal(err)
		}
	}
	publish(config.Set("bad", json.RawMessage(`{"url":"ftp://x","headers":{"Authorization":"Bearer `+secret+`"}}`)))
	publish(config.Set("hub", json.RawMessage(`{"command":"x","env":{"HUB_TOKEN":"`+secret+`"}}`)),
		config.SetValue("llm", json.RawMessage(`[{"provider":"openai","model":"m","apiKey":"sk-0123456789"}]`)))
	two.awaitFile("variables", func(f string) bool {
		return strings.Contains(f, "${HUB_TOKEN}") && strings.Contains(f, "${OPENAI_API_KEY}") && !strings.Contains(f, secret)
	})
	publish(config.Set("hub", json.RawMessage(`{"command":"y","env":{"HUB_TOKEN":"${HUB_TOKEN}"}}`)))
	two.awaitFile("the later change", func(f string) bool { return strings.Contains(f, `"y"`) })
	cfg, _, err := config.Load(two.opts.Config)
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := cfg.Server("hub"); s.Env["HUB_TOKEN"].Reveal() != secret || cfg.LLM[0].APIKey.Reveal() != "sk-0123456789" {
		t.Error("a secret is lost")
	}
	if text, err := os.ReadFile(filepath.Join(filepath.Dir(two.file), ".env")); err != nil || strings.Contains(string(text), "BAD_TOKEN") {
		t.Errorf("a refused change wrote its secret: %v", err)
	}
}

// TestLaterSettingWins checks that a later change of a part of a setting is not
// reverted by an earlier change of the whole, also after the changes were stored
// again.
func TestLaterSettingWins(t *testing.T) {
	db := openStore(t)
	one, late := newNode(t, db, 1, `{}`), newNode(t, db, 1, `{}`)
	late.old()
	for _, edit := range []config.Edit{
		config.SetValue("limits.maxSessions", json.RawMessage("5")),
		config.SetValue("limits", json.RawMessage(`{"maxSessions":9}`)),
	} {
		if err := one.Publish([]config.Edit{edit}); err != nil {
			t.Fatal(err)
		}
	}
	oldKey, newKey := strings.Repeat("\x01", store.KeySize), strings.Repeat("\x02", store.KeySize)
	sealer, err := store.NewSealer([]byte(newKey), []byte(oldKey))
	if err != nil {
		t.Fatal(err)
	}
	late.opts.Vault = store.NewVault(db, sealer)
	if n, err := late.opts.Vault.Reseal(context.Background()); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	late.run()
	late.awaitFile("the later one", func(f string) bool { return strings.Contains(f, "9") && !strings.Contains(f, "5") })
}
