// Package configshare applies configuration changes that an administrator makes
// on one node to the configuration files of all nodes.
//
// The changes are stored encrypted, because they may contain secrets and may
// start programs: write access to the database must not suffice to forge one.
// Every node edits its own file; a change that is older than the file is not
// applied when the node starts.
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
	"sync"
	"time"

	"junctor/internal/config"
	"junctor/internal/store"
)

// prefix is the prefix of the names under which changes are stored.
const prefix = "config-edit/"

// storeTimeout is the timeout for publishing a change and for reading those of
// other nodes; an administrator may be waiting.
const storeTimeout = 10 * time.Second

// change is a change that an administrator made on some node.
type change struct {
	At   time.Time   `json:"at"`
	Edit config.Edit `json:"edit"`

	// Earlier are the changes of other keys of the same server or rule, oldest
	// first, which some nodes may not have applied yet.
	Earlier []change `json:"earlier,omitempty"`
}

// parts returns all changes, oldest first.
func (c change) parts() []change {
	return append(slices.Clone(c.Earlier), change{At: c.At, Edit: c.Edit})
}

// Options are the settings and dependencies of a Sharer.
type Options struct {
	Store  store.Changes
	Vault  *store.Vault   // with a key that all nodes have
	Config config.Options // of this node's file
	// Editing is held by Run while it applies changes. Callers of Publish must
	// acquire it before they make a change on this node, so that changes are
	// made here in the order in which they are stored. Default: a new one.
	Editing sync.Locker
	// KeepSecrets stores the secrets of edits in this node's own place for
	// secrets, and returns the edits with variables instead. If it is nil,
	// edits keep their secrets.
	KeepSecrets func(config.Options, []config.Edit) ([]config.Edit, error)
	Log         *slog.Logger
}

// Sharer shares configuration changes between a node and the others. The
// methods of a nil Sharer do nothing.
type Sharer struct {
	opts Options
	seen map[string]seenChange // guarded by Options.Editing
}

// seenChange is the state of a stored change that was already applied. It
// distinguishes new changes from those that were only stored again: encrypted
// with another key, or together with a later one.
type seenChange struct {
	written time.Time
	made    []time.Time // the times of all parts
}

func (c seenChange) has(at time.Time) bool { return slices.ContainsFunc(c.made, at.Equal) }

// New returns a Sharer. It does nothing until Run or Publish is called.
func New(o Options) *Sharer {
	if o.Editing == nil {
		o.Editing = &sync.Mutex{}
	}
	return &Sharer{opts: o, seen: map[string]seenChange{}}
}

// Publish publishes changes that were made on this node to the others.
func (s *Sharer) Publish(edits []config.Edit) error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	for _, e := range edits {
		name := prefix + e.Key()
		var err error
		if e.Whole() {
			err = s.deleteParts(ctx, name)
		} else {
			name += "/part"
		}
		if err == nil {
			err = s.put(ctx, name, e)
		}
		if err != nil {
			return fmt.Errorf("publish the change of %s: %w", e.Key(), err)
		}
	}
	return nil
}

// deleteParts deletes the changes of parts of a server or a setting, because a
// change of the whole replaces them.
func (s *Sharer) deleteParts(ctx context.Context, name string) error {
	all, err := s.opts.Vault.List(ctx)
	for _, info := range all {
		if err == nil && isPart(info.Name, name) {
			err = s.opts.Vault.Delete(ctx, info.Name)
		}
	}
	return err
}

// isPart reports whether name is a change of a part of the server or setting
// that the change whole replaces.
func isPart(name, whole string) bool {
	return name == whole+"/part" || strings.HasPrefix(name, whole+".") ||
		whole == prefix+".toolRules" && strings.Contains(name, ":") && strings.HasSuffix(name, "/part") // names of tools
}

// put stores a change, together with the parts of the stored changes that it
// does not override.
func (s *Sharer) put(ctx context.Context, name string, e config.Edit) error {
	for {
		plain, version, err := s.opts.Vault.Get(ctx, name)
		var old change
		switch {
		case errors.Is(err, store.ErrNotFound):
			version = 0
		case err == nil:
			err = json.Unmarshal(plain, &old)
		case !errors.Is(err, store.ErrSealed):
			return err
		}
		c := change{At: time.Now(), Edit: e}
		if err == nil { // a change that cannot be read is replaced: no node can have applied it
			for _, p := range old.parts() {
				if rest, some := p.Edit.Without(e); some {
					c.Earlier = append(c.Earlier, change{At: p.At, Edit: rest})
				}
			}
		}
		if plain, err = json.Marshal(c); err != nil {
			return err
		}
		if _, err = s.opts.Vault.Put(ctx, name, plain, version); errors.Is(err, store.ErrConflict) {
			continue // another node has stored a change: merge with it
		}
		if err == nil { // it is already applied on this node
			seen := s.seen[name]
			seen.made = append(slices.Clone(seen.made), c.At)
			s.seen[name] = seen
		}
		return err
	}
}

// Run applies the changes of other nodes to the file at path until ctx is done.
// Of the changes made before it started, it applies only those that are newer
// than the file, so that a node that was offline catches up and a file that was
// replaced later takes precedence.
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
			after = time.Time{} // from now on apply all new changes
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// applyNew applies the new changes that were made after the given time, in the
// order in which they were stored. It reads all of them before it applies any:
// if reads could fail in between, the file would be newer than the changes that
// were not read, and they would be lost at the next start.
func (s *Sharer) applyNew(ctx context.Context, after time.Time) error {
	s.opts.Editing.Lock()
	defer s.opts.Editing.Unlock()
	reading, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	all, err := s.opts.Vault.List(reading)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(x, y store.SecretInfo) int { return x.Updated.Compare(y.Updated) })
	for i, info := range all {
		if !strings.HasPrefix(info.Name, prefix) || s.seen[info.Name].written.Equal(info.Updated) {
			continue
		}
		var c change
		plain, err := s.opts.Vault.Open(info)
		if err == nil {
			err = json.Unmarshal(plain, &c)
		}
		now := seenChange{written: info.Updated}
		var edits []config.Edit
		for _, p := range c.parts() {
			now.made = append(now.made, p.At)
			if p.At.After(after) && !s.seen[info.Name].has(p.At) {
				edits = append(edits, p.Edit)
			}
		}
		s.seen[info.Name] = now
		if err == nil && len(edits) > 0 {
			err = s.apply(edits)
			if err == nil && c.Edit.Whole() { // apply later changes of parts again, which may have been made here before
				for _, later := range all[i+1:] {
					if isPart(later.Name, info.Name) {
						delete(s.seen, later.Name)
					}
				}
			}
		}
		if err != nil && !errors.Is(err, config.ErrNoServer) { // already removed on this node
			s.opts.Log.WarnContext(ctx, "cannot apply a configuration change of another node", "change", info.Name, "err", err)
		}
	}
	return nil
}

// apply applies edits to the file, which the gateway's watcher then reloads.
func (s *Sharer) apply(edits []config.Edit) error {
	if s.opts.KeepSecrets != nil {
		err := config.Check(s.opts.Config, edits...) // before a secret is stored
		if err == nil {
			edits, err = s.opts.KeepSecrets(s.opts.Config, edits)
		}
		if err != nil {
			return err
		}
	}
	_, err := config.Apply(s.opts.Config, edits...)
	return err
}
