package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"junctor/internal/config"
	"junctor/internal/secretkey"
	"junctor/internal/store"
)

// editPrefix begins the names under which changes to the configuration wait
// for other nodes. They are sealed: an entry may hold a secret and may start a
// program, so that whoever can write to the database must not be able to make
// one up.
const editPrefix = "config-edit/"

// editWithin bounds how long an administrator waits until a change is
// published.
const editWithin = 10 * time.Second

// sharedEdit is a change that an administrator made on some node.
type sharedEdit struct {
	At   time.Time   `json:"at"`
	Edit config.Edit `json:"edit"`
}

// editVault holds the changes; nil where they are not shared, because the
// gateway is alone or the nodes have no key in common.
func (a *App) editVault() (*store.Vault, error) {
	if a.nodes == nil || a.opts.SecretKey == "" {
		return nil, nil
	}
	sealer, err := secretkey.Sealer(a.opts.SecretKey, a.opts.DataDir, false)()
	if err != nil {
		return nil, err
	}
	return store.NewVault(a.store, sealer), nil
}

// shareEdits lets the other nodes make changes that were made here.
func (a *App) shareEdits(edits []config.Edit) error {
	vault, err := a.editVault()
	if vault == nil || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), editWithin)
	defer cancel()
	for _, e := range edits {
		data, err := json.Marshal(sharedEdit{time.Now(), e})
		if err != nil {
			return err
		}
		// What was said of a server before holds beside a change to parts of
		// it, and not beside one of the whole.
		name, part := editPrefix+e.Server(), editPrefix+e.Server()+"/part"
		if !e.Whole() {
			name = part
		} else if err := vault.Delete(ctx, part); err != nil {
			return notShared(err)
		}
		if _, err := vault.Put(ctx, name, data, store.AnyVersion); err != nil {
			return notShared(err)
		}
	}
	return nil
}

func notShared(err error) error {
	return fmt.Errorf("the change was applied on this node only; repeat it when the database is available: %w", err)
}

// followEdits makes the changes here that are made on other nodes. Of those
// that were made before it makes the ones that are newer than this node's file:
// a node that was away catches up, and a file put in place later wins.
func (a *App) followEdits(ctx context.Context) {
	vault, err := a.editVault()
	if vault == nil || err != nil { // Open has tried the key already
		return
	}
	var file time.Time
	if info, err := os.Stat(a.config.Load().Place().Path); err == nil {
		file = info.ModTime()
	}
	f := &editFollower{app: a, vault: vault, seen: map[string]seenEdit{}}
	changed := a.store.Watch(ctx, store.TopicValues(store.SpaceSecrets))
	for {
		if err := f.applyNew(ctx, file); err != nil && ctx.Err() == nil {
			a.log.DebugContext(ctx, "changes to the configuration on other nodes not read", "err", err)
		} else {
			file = time.Time{} // from now on all that is new
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// editFollower knows which changes it has seen.
type editFollower struct {
	app   *App
	vault *store.Vault
	seen  map[string]seenEdit
}

// seenEdit distinguishes a change from one that was only re-encrypted with
// another key.
type seenEdit struct{ written, made time.Time }

// applyNew makes the changes that it has not seen and that were made after a
// moment, in the order in which they were written.
func (f *editFollower) applyNew(ctx context.Context, after time.Time) error {
	all, err := f.vault.List(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(x, y store.SecretInfo) int { return x.Updated.Compare(y.Updated) })
	for _, info := range all {
		before := f.seen[info.Name]
		if !strings.HasPrefix(info.Name, editPrefix) || before.written.Equal(info.Updated) {
			continue
		}
		plain, _, err := f.vault.Get(ctx, info.Name)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnavailable) {
			return err // it goes, or comes, with the next look
		}
		var e sharedEdit
		if err == nil {
			err = json.Unmarshal(plain, &e)
		}
		f.seen[info.Name] = seenEdit{info.Updated, e.At}
		if err == nil && e.At.After(after) && !e.At.Equal(before.made) {
			_, err = config.Apply(f.app.opts.Reload, e.Edit) // its watcher puts it into force
		}
		if err != nil && !errors.Is(err, config.ErrNoServer) { // which is gone here already
			f.app.log.WarnContext(ctx, "a change to the configuration that was made on another node cannot be made here", "change", info.Name, "err", err)
		}
	}
	return nil
}
