package app

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"junctor/internal/audit"
	"junctor/internal/config"
	"junctor/internal/store"
)

// hookedValues calls a function before the first value is written.
type hookedValues struct {
	store.Store
	called atomic.Bool
	hook   func()
}

func (v *hookedValues) PutValue(ctx context.Context, value store.Value, ifVersion int64) (store.Value, error) {
	if !v.called.Swap(true) {
		v.hook()
	}
	return v.Store.PutValue(ctx, value, ifVersion)
}

// TestWatcherUndoesNoEdit checks that an edit made while the watcher handles
// an earlier change of the file stays in effect.
func TestWatcherUndoesNoEdit(t *testing.T) {
	const file = `{"builtin":false,"mcpServers":{"a":{"command":"true","enabled":false,"description":"by hand"}}}`
	r := start(t, `{"builtin":false}`, t.TempDir())
	edited := make(chan error, 1)
	values := &hookedValues{Store: r.store, hook: func() {
		edited <- settings{r.App}.edit(config.Set("b", json.RawMessage(`{"command":"true","enabled":false}`)))
	}}
	r.editing.Lock() // blocks the watcher
	r.audit = audit.New(values, nil, r.App.log)
	r.editing.Unlock()
	if err := config.WriteFile(r.file, []byte(file)); err != nil {
		t.Fatal(err)
	}
	if err := <-edited; err != nil {
		t.Fatal(err)
	}
	applied := regexp.MustCompile(`configuration applied.*servers"?[=:](\d+)`)
	var counts []string
	eventually(t, "both changes", func() bool {
		counts = nil
		for _, m := range applied.FindAllStringSubmatch(r.log.String(), -1) {
			counts = append(counts, m[1])
		}
		return len(counts) >= 2
	})
	if got := strings.Join(counts, " "); got != "1 2" {
		t.Errorf("configurations with %s servers were applied, one after the other", got)
	}
}
