package app

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"junctor/internal/config"
	"junctor/internal/nodes"
	"junctor/internal/postgres/pgtest"
	"junctor/internal/store"
	"junctor/internal/telemetry"
)

// follower is as much of a gateway as follows changes to the configuration.
type follower struct {
	*App
	t    *testing.T
	file string
	said *lockedBuffer
}

func newFollower(t *testing.T, db string, key byte, content string) *follower {
	t.Helper()
	f := &follower{t: t, file: filepath.Join(t.TempDir(), "junctor.json"), said: &lockedBuffer{}}
	if err := os.WriteFile(f.file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	o := config.Options{File: f.file}
	loaded, _, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(f.said, nil))
	secret := telemetry.Secret(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{key}, store.KeySize)))
	f.App = &App{opts: Options{Reload: o, SecretKey: secret}, log: log}
	f.config.Store(loaded)
	cfg := store.DefaultConfig()
	cfg.URL = telemetry.Secret(db)
	if f.store, err = OpenStore(t.Context(), cfg, t.TempDir(), log); err != nil {
		t.Fatal(err)
	}
	f.nodes = nodes.New(nodes.Options{Store: f.store, Log: log})
	return f
}

// follow does so until the test ends.
func (f *follower) follow() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { _ = f.store.Run(ctx); done <- struct{}{} }()
	go func() { f.followEdits(ctx); done <- struct{}{} }()
	f.t.Cleanup(func() {
		cancel()
		<-done
		<-done
		_ = f.store.Close()
	})
}

// until waits for something in the file.
func (f *follower) until(what string, ok func(file string) bool) {
	f.t.Helper()
	for end := time.After(time.Minute); ; {
		b, err := os.ReadFile(f.file)
		if err != nil {
			f.t.Fatal(err)
		}
		if ok(string(b)) {
			return
		}
		select {
		case <-end:
			f.t.Fatalf("never: %s; the file: %s\n%s", what, b, f.said)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestConfigurationEditsReachOtherNodes: an edit is applied on running nodes
// and on one that starts later, but not over a newer file, and not without the
// key.
func TestConfigurationEditsReachOtherNodes(t *testing.T) {
	db := pgtest.New(t).Database(t)
	const file = `{"mcpServers":{"a":{"command":"x"}}}`
	one, two, other := newFollower(t, db, 1, file), newFollower(t, db, 1, file), newFollower(t, db, 2, file)
	two.follow()
	other.follow()
	share := func(edits ...config.Edit) {
		t.Helper()
		if err := one.shareEdits(edits); err != nil {
			t.Fatal(err)
		}
	}
	share(config.Set("b", json.RawMessage(`{"url":"https://b.example","headers":{"X":"secret-of-b"}}`)), config.Remove("gone"))
	two.until("the new server", func(f string) bool { return strings.Contains(f, "b.example") })
	share(config.Merge("b", json.RawMessage(`{"enabled":false}`)))
	two.until("it is off", func(f string) bool { return strings.Contains(f, `"enabled"`) })

	// At rest nothing can be read, and without the key nothing is believed.
	ctx := context.Background()
	kept, err := one.store.Values(ctx, store.SpaceSecrets)
	if err != nil || len(kept) != 3 {
		t.Fatalf("%d changes are kept, %v", len(kept), err)
	}
	for _, v := range kept {
		if strings.Contains(string(v.Data), "secret-of-b") || strings.Contains(string(v.Data), "b.example") {
			t.Errorf("%s is kept as it is", v.Name)
		}
	}
	forged := []byte(`{"at":"2100-01-01T00:00:00Z","edit":{"kind":0,"name":"evil","server":{"command":"evil"}}}`)
	if _, err := one.store.PutValue(ctx, store.Value{Space: store.SpaceSecrets, Name: editPrefix + "evil", Data: forged}, store.AnyVersion); err != nil {
		t.Fatal(err)
	}
	share(config.Remove("a"))
	two.until("a is gone, and nothing evil came", func(f string) bool {
		return !strings.Contains(f, `"a"`) && !strings.Contains(f, "evil") && strings.Contains(two.said.String(), "cannot be made here")
	})
	other.until("another key opens nothing", func(f string) bool {
		return f == file && strings.Count(other.said.String(), "cannot be made here") >= 4
	})

	late, newer := newFollower(t, db, 1, file), newFollower(t, db, 1, file)
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if err := os.Chtimes(late.file, past, past); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(newer.file, future, future); err != nil {
		t.Fatal(err)
	}
	late.follow()
	newer.follow()
	late.until("all that it missed", func(f string) bool {
		return strings.Contains(f, "b.example") && strings.Contains(f, `"enabled"`) && !strings.Contains(f, `"a"`)
	})
	share(config.Set("c", json.RawMessage(`{"url":"https://c.example"}`)))
	newer.until("what is made from now on, and nothing before", func(f string) bool {
		return strings.Contains(f, "c.example") && strings.Contains(f, `"a"`) && !strings.Contains(f, "b.example")
	})

	// Alone, or without a key in common, nothing is shared.
	one.opts.SecretKey = ""
	share(config.Set("d", json.RawMessage(`{"url":"https://d.example"}`)))
	if _, err := one.store.Value(ctx, store.SpaceSecrets, editPrefix+"d"); err == nil {
		t.Error("shared without a key")
	}
	one.followEdits(ctx) // returns at once
	_ = one.store.Close()
}
