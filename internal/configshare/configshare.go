// Package configshare applies changes to the configuration that an administrator
// makes on one node in the configuration files of all nodes.
//
// The changes are stored encrypted: an entry may hold a secret and may start a
// program, so that write access to the database must not be enough to make one
// up. Every node edits its own file; a file that is newer than a change wins.
package configshare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"junctor/internal/config"
	"junctor/internal/store"
)

// prefix begins the names under which changes are stored.
const prefix = "config-edit/"

// publishTimeout bounds how long an administrator waits until a change is
// published.
const publishTimeout = 10 * time.Second

// change is a change that an administrator made on some node.
type change struct {
	At   time.Time   `json:"at"`
	Edit config.Edit `json:"edit"`
}

// Options are what a Sharer is made of.
type Options struct {
	Store  store.Changes
	Vault  *store.Vault   // with a key that all nodes have
	Config config.Options // of this node's file
	Log    *slog.Logger
}

// Sharer shares the changes of one node with the others. A nil Sharer is that
// of a gateway that shares nothing.
type Sharer struct {
	opts Options
	seen map[string]seenChange // of Run
}

// seenChange distinguishes a change from one that was only re-encrypted with
// another key.
type seenChange struct{ written, made time.Time }

// New returns a Sharer; it starts nothing.
func New(o Options) *Sharer { return &Sharer{opts: o, seen: map[string]seenChange{}} }

// Publish stores changes that were made on this node for the others.
func (s *Sharer) Publish(edits []config.Edit) error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), publishTimeout)
	defer cancel()
	for _, e := range edits {
		data, err := json.Marshal(change{time.Now(), e})
		if err != nil {
			return err
		}
		// A change of a whole entry replaces the earlier changes of its parts.
		name, part := prefix+e.Server(), prefix+e.Server()+"/part"
		if !e.Whole() {
			name = part
		} else {
			err = s.opts.Vault.Delete(ctx, part)
		}
		if err == nil {
			_, err = s.opts.Vault.Put(ctx, name, data, store.AnyVersion)
		}
		if err != nil {
			return fmt.Errorf("the change was applied on this node only; repeat it when the database is available: %w", err)
		}
	}
	return nil
}

// Run applies the changes of other nodes to the file at path until ctx is done.
// Of the changes made before it started it applies those that are newer than
// the file: a node that was away catches up, and a file put in place later
// wins.
func (s *Sharer) Run(ctx context.Context, path string) {
	if s == nil {
		return
	}
	var after time.Time
	if info, err := os.Stat(path); err == nil {
		after = info.ModTime()
	}
	changed := s.opts.Store.Watch(ctx, store.TopicValues(store.SpaceSecrets))
	for {
		if err := s.applyNew(ctx, after); err != nil && ctx.Err() == nil {
			s.opts.Log.DebugContext(ctx, "cannot read the configuration changes of other nodes", "err", err)
		} else {
			after = time.Time{} // from now on all that is new
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// applyNew applies the changes that it has not seen and that were made after a
// moment, in the order in which they were stored.
func (s *Sharer) applyNew(ctx context.Context, after time.Time) error {
	all, err := s.opts.Vault.List(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(x, y store.SecretInfo) int { return x.Updated.Compare(y.Updated) })
	for _, info := range all {
		before := s.seen[info.Name]
		if !strings.HasPrefix(info.Name, prefix) || before.written.Equal(info.Updated) {
			continue
		}
		plain, _, err := s.opts.Vault.Get(ctx, info.Name)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnavailable) {
			return err // the next call sees it, or that it is gone
		}
		var c change
		if err == nil {
			err = json.Unmarshal(plain, &c)
		}
		s.seen[info.Name] = seenChange{info.Updated, c.At}
		if err == nil && c.At.After(after) && !c.At.Equal(before.made) {
			_, err = config.Apply(s.opts.Config, c.Edit) // the watcher of the file applies it
		}
		if err != nil && !errors.Is(err, config.ErrNoServer) { // which is gone here already
			s.opts.Log.WarnContext(ctx, "cannot apply a configuration change of another node", "change", info.Name, "err", err)
		}
	}
	return nil
}
