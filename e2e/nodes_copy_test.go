package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/llm/llmtest"
	"junctor/internal/upstream/upstreamtest"
)

// TestCopyFromSQLiteToPostgres: the store of a gateway is copied from its file
// to a database, with which another gateway continues: calls, a chat, a key.
func TestCopyFromSQLiteToPostgres(t *testing.T) {
	t.Parallel()
	db := databases.Database(t)
	tools := upstreamtest.Listen(t, upstreamtest.Script{})
	model := llmtest.Start(t, llmtest.Script{Rules: []llmtest.Rule{{When: llmtest.When{User: "hello"}, Reply: llmtest.Reply{Text: "Hello from the model."}}}})
	config := func(kept string) string {
		return fmt.Sprintf(`{%s"auth": {"loopback": "key", "keys": [{"name": "root", "key": %q, "admin": true}]},
	"llm": {"provider": "openai", "model": "scripted", "baseUrl": %q, "apiKey": "x"}, "mcpServers": {"tools": {"url": %q}}}`,
			kept, rootKey, model.URL+"/v1", tools.URL)
	}
	h := newHome(t, config(""))
	one := h.serve()
	ctx := ctxFor(t)
	call := func(g *gateway, key, id string) {
		t.Helper()
		eventually(t, "a call", func() bool {
			status, _, _ := try(ctx, "POST", g.url+"/call_tool", key, callEcho, "X-Request-Id", id)
			return status == 200
		})
	}
	key := strings.TrimSpace(firstLine(h.mustRun(nil, junctor(t), "keys", "add", "guest", "--config", h.config)))
	for i := range 5 {
		call(one, key, fmt.Sprintf("before-%d", i))
	}
	k := one.dialChat(t, "")
	k.sendText("hello")
	k.readUntil("a reply", complete)

	copying := []string{"store", "copy", "--to", db, "--config", h.config}
	if _, errs, err := h.run(nil, nil, junctor(t), copying...); err == nil || !strings.Contains(errs, "stop it first") {
		t.Errorf("a copy of a store in use: %v %s", err, errs)
	}
	one.end()
	for range 2 { // it may be repeated
		out := h.mustRun(nil, junctor(t), copying...)
		if !strings.Contains(out, "Copied 5 calls, 1 chats, 1 keys, 1 catalogues, 14 fingerprints") || !strings.Contains(out, "Set store.url") {
			t.Errorf("the copy says %s", out)
		}
	}

	many := newHome(t, config(fmt.Sprintf(`"store": {"url": %q}, `, db))).serve()
	call(many, key, "after")
	status, body, err := try(ctx, "GET", many.url+"/logs", rootKey, "", "Accept", "application/json")
	for i, id := range []string{"before-0", "before-1", "before-2", "before-3", "before-4", "after"} {
		if !strings.Contains(body, fmt.Sprintf(`"seq":%d,`, i+1)) || !strings.Contains(body, `"requestId":"`+id+`"`) {
			t.Errorf("no call %d with id %s: %d %v %s", i+1, id, status, err, body)
		}
	}
	d := many.dialChat(t, "?sessionId="+k.id)
	d.readUntil("the history", func(m chatMessage) bool { return m.Type == "history" && len(m.Payload.Messages) == 2 })
	d.sendText("hello again")
	d.readUntil("a reply", complete)

	// A backup of the database in use is restored into another database.
	kept := filepath.Join(t.TempDir(), "kept.backup")
	if out := many.homeFolder.mustRun(nil, junctor(t), "store", "backup", kept, "--config", many.homeFolder.config); !strings.Contains(out, "Backed up 6 calls, 1 chats, 1 keys") {
		t.Errorf("the backup says %s", out)
	}
	restoring := []string{"store", "restore", kept, "--config"}
	if _, errs, err := h.run(nil, nil, junctor(t), append(restoring, many.homeFolder.config)...); err == nil || !strings.Contains(errs, "not empty") && !strings.Contains(errs, "stop it") {
		t.Errorf("a restore into a store in use: %v %s", err, errs)
	}
	other := newHome(t, config(fmt.Sprintf(`"store": {"url": %q}, `, databases.Database(t))))
	if out := other.mustRun(nil, junctor(t), append(restoring, other.config)...); !strings.Contains(out, "Restored 6 calls, 1 chats, 1 keys") {
		t.Errorf("the restore says %s", out)
	}

	// The stores have diverged, so the same numbers mean different calls.
	if _, errs, err := h.run(nil, nil, junctor(t), copying...); err == nil || !strings.Contains(errs, "records of its own") {
		t.Errorf("a copy over a store that went its own way: %v %s", err, errs)
	}
}
