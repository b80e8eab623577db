package configshare

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/clients"
	"junctor/internal/config"
	"junctor/internal/sqlite"
	"junctor/internal/store"
)

// node is a node with its own configuration file and a shared store.
type node struct {
	*Sharer
	t    *testing.T
	file string
	log  *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newNode(t *testing.T, s store.Store, key byte, content string) *node {
	t.Helper()
	n := &node{t: t, file: filepath.Join(t.TempDir(), "junctor.json"), log: &lockedBuffer{}}
	if err := os.WriteFile(n.file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	sealer, err := store.NewSealer(bytes.Repeat([]byte{key}, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	n.Sharer = New(Options{
		Store: s, Vault: store.NewVault(s, sealer), Config: config.Options{File: n.file},
		KeepSecrets: clients.KeepEdits, Log: slog.New(slog.NewTextHandler(n.log, nil)),
	})
	return n
}

// run applies changes until the test ends.
func (n *node) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { n.Run(ctx, n.file); close(done) }()
	n.t.Cleanup(func() { cancel(); <-done })
}

// awaitFile waits until ok accepts the content of the file.
func (n *node) awaitFile(what string, ok func(file string) bool) {
	n.t.Helper()
	for end := time.After(time.Minute); ; {
		b, err := os.ReadFile(n.file)
		if err != nil {
			n.t.Fatal(err)
		}
		if ok(string(b)) {
			return
		}
		select {
		case <-end:
			n.t.Fatalf("never: %s; the file: %s\n%s", what, b, n.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestConfigurationEditsReachOtherNodes checks that an edit is applied on
// running nodes and on one that starts later, but not to a newer file and not
// without the key.
func TestConfigurationEditsReachOtherNodes(t *testing.T) {
	db, err := sqlite.Open(context.Background(), store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	const file = `{"mcpServers":{"a":{"command":"x"}}}`
	one, two, other := newNode(t, db, 1, file), newNode(t, db, 1, file), newNode(t, db, 2, file)
	two.run()
	other.run()
	share := func(edits ...config.Edit) {
		t.Helper()
		if err := one.Publish(edits); err != nil {
			t.Fatal(err)
		}
	}
	share(config.Set("b", json.RawMessage(`{"url":"https://b.example","headers":{"X":"secret-of-b"}}`)), config.Remove("gone"))
	two.awaitFile("the new server", func(f string) bool { return strings.Contains(f, "b.example") })
	share(config.Merge("b", json.RawMessage(`{"enabled":false}`)))
	two.awaitFile("it is off", func(f string) bool { return strings.Contains(f, `"enabled"`) })

	// Stored changes are encrypted, and those without the key are rejected.
	ctx := context.Background()
	kept, err := db.Values(ctx, store.SpaceSecrets)
	if err != nil || len(kept) != 3 {
		t.Fatalf("%d changes are kept, %v", len(kept), err)
	}
	for _, v := range kept {
		if strings.Contains(string(v.Data), "secret-of-b") || strings.Contains(string(v.Data), "b.example") {
			t.Errorf("%s is kept as it is", v.Name)
		}
	}
	forged := []byte(`{"at":"2100-01-01T00:00:00Z","edit":{"kind":0,"name":"evil","server":{"command":"evil"}}}`)
	if _, err := db.PutValue(ctx, store.Value{Space: store.SpaceSecrets, Name: prefix + "evil", Data: forged}, store.AnyVersion); err != nil {
		t.Fatal(err)
	}
	share(config.Remove("a"))
	two.awaitFile("a is gone, and nothing evil came", func(f string) bool {
		return !strings.Contains(f, `"a"`) && !strings.Contains(f, "evil") && strings.Contains(two.log.String(), "cannot apply a configuration change")
	})
	other.awaitFile("another key opens nothing", func(f string) bool {
		return f == file && strings.Count(other.log.String(), "cannot apply a configuration change") >= 4
	})

	// A change of a rule or of a server keeps the other keys of an earlier one.
	share(config.Rule("a:t", json.RawMessage(`{"enabled":false,"timeoutMs":5}`)))
	share(config.Rule("a:t", json.RawMessage(`{"approval":"ask","timeoutMs":null}`)))
	share(config.Merge("b", json.RawMessage(`{"description":"of b"}`)))

	late, newer := newNode(t, db, 1, file), newNode(t, db, 1, file)
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if err := os.Chtimes(late.file, past, past); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(newer.file, future, future); err != nil {
		t.Fatal(err)
	}
	late.run()
	newer.run()
	late.awaitFile("all that it missed", func(f string) bool {
		return strings.Contains(f, "b.example") && strings.Count(f, `"enabled"`) == 2 && !strings.Contains(f, `"a"`) &&
			strings.Contains(f, "of b") && strings.Contains(f, `"approval"`) && !strings.Contains(f, "timeoutMs")
	})
	newer.awaitFile("its first look, which meets the forged one", func(string) bool { return strings.Contains(newer.log.String(), "cannot apply a configuration change") })
	share(config.Set("c", json.RawMessage(`{"url":"https://c.example"}`)))
	newer.awaitFile("what is made from now on, and nothing before", func(f string) bool {
		return strings.Contains(f, "c.example") && strings.Contains(f, `"a"`) && !strings.Contains(f, "b.example")
	})

	// A gateway that shares nothing.
	var none *Sharer
	none.Run(ctx, one.file) // returns immediately
	if err := none.Publish([]config.Edit{config.Remove("c")}); err != nil {
		t.Error(err)
	}
}
