// Package guard detects tool definitions that changed after they were first
// seen, and definitions that look like prompt injection.
//
// The store has a fingerprint of each approved definition, by default the first
// one seen ([Guard.Observe]). A definition with another fingerprint is reported
// as changed until it is approved ([Guard.Approve]). [Inspect] looks for
// invisible characters, encoded sentences and known forms of prompt injection.
//
// The package reports its result as a [catalog.Review]; the catalogue acts on
// it.
package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"junctor/internal/catalog"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Store stores fingerprints and reports approvals by other processes.
type Store interface {
	store.Fingerprints
	Watch(ctx context.Context, topic string) <-chan struct{}
}

// Guard tracks which definitions are approved.
type Guard struct {
	store Store
	log   *slog.Logger

	mu    sync.RWMutex
	block bool
	tools map[tool.Name]*trackedTool

	// inspectedAtStart counts definitions inspected by ObserveStored.
	inspectedAtStart int
}

// trackedTool is the current definition of a tool and its review.
type trackedTool struct {
	definition  tool.Definition
	fingerprint string // of the definition
	approved    string // the approved fingerprint
	inspected   bool
	flags       []string
	missing     bool // from the last list of the server
}

func (k *trackedTool) changed() bool { return k.fingerprint != k.approved }

// New returns a Guard that stores fingerprints in s.
func New(s Store, cfg catalog.SecurityConfig, log *slog.Logger) *Guard {
	g := &Guard{store: s, log: log.With(telemetry.KeyComponent, "guard"), tools: map[tool.Name]*trackedTool{}}
	g.SetConfig(cfg)
	return g
}

// SetConfig sets how changed tools are handled.
func (g *Guard) SetConfig(cfg catalog.SecurityConfig) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.block = cfg.OnToolChange == catalog.BlockOnChange
}

// CurrentConfig returns the settings in effect.
func (g *Guard) CurrentConfig() catalog.SecurityConfig {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.block {
		return catalog.SecurityConfig{OnToolChange: catalog.BlockOnChange}
	}
	return catalog.SecurityConfig{OnToolChange: catalog.WarnOnChange}
}

// Observe records the current definitions of a server, which must be all of
// them, and logs a warning for those that changed or look unsafe. It must be
// called before Review.
func (g *Guard) Observe(ctx context.Context, server string, definitions []tool.Definition) error {
	fresh, err := g.record(ctx, server, definitions)
	if err == nil {
		g.removeMissing(server, definitions)
	}
	for _, k := range fresh {
		g.inspect(ctx, k)
		if changed, blocked := g.verdict(k); changed {
			g.log.WarnContext(ctx, "tool definition changed; see junctor servers diff "+server,
				"server", server, "tool", k.definition.Name.Tool, "blocked", blocked)
		}
	}
	return err
}

// maxInspectedAtStart bounds the number of definitions that ObserveStored
// inspects, which takes a few milliseconds.
const maxInspectedAtStart = 64

// ObserveStored is Observe for the definitions that the store has for a server. If
// there are many, Run inspects the rest, so that thousands of definitions do not
// delay the start.
func (g *Guard) ObserveStored(ctx context.Context, server string, definitions []tool.Definition) error {
	fresh, err := g.record(ctx, server, definitions)
	g.mu.Lock()
	n := min(len(fresh), maxInspectedAtStart-g.inspectedAtStart)
	g.inspectedAtStart += n
	g.mu.Unlock()
	for _, k := range fresh[:n] {
		g.inspect(ctx, k)
	}
	return err
}

// record stores the definitions and returns those that this process has not
// seen before.
func (g *Guard) record(ctx context.Context, server string, definitions []tool.Definition) (fresh []*trackedTool, err error) {
	seen := make([]store.Observation, len(definitions))
	now := make([]*trackedTool, len(definitions))
	for i, d := range definitions {
		k := g.lookup(d)
		if k == nil {
			k = &trackedTool{definition: d, fingerprint: d.Fingerprint()}
			k.approved = k.fingerprint
			fresh = append(fresh, k)
		}
		now[i] = k
		seen[i] = k.observation()
	}
	prints, err := g.store.Observe(ctx, server, seen)
	if err != nil {
		err = fmt.Errorf("record the tools of %s: %w", server, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, k := range now {
		if i < len(prints) {
			k.approved = prints[i].Approved
		}
		g.tools[k.definition.Name] = k
	}
	return fresh, err
}

// removeMissing removes the tools of a server that are neither in its current
// list nor in the one before, because a server can generate any number of names.
// Those of the list before stay, because the catalogue may not have replaced it
// yet. The store keeps the approved fingerprints of all tools.
func (g *Guard) removeMissing(server string, definitions []tool.Definition) {
	listed := make(map[tool.Name]bool, len(definitions))
	for _, d := range definitions {
		listed[d.Name] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, k := range g.tools {
		switch {
		case name.Server != server:
		case listed[name]:
			k.missing = false
		case k.missing:
			delete(g.tools, name)
		default:
			k.missing = true
		}
	}
}

// Remove removes the tools of a server that was removed.
func (g *Guard) Remove(server string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.tools, func(name tool.Name, _ *trackedTool) bool { return name.Server == server })
}

// lookup returns the tracked tool with exactly this definition, or nil.
func (g *Guard) lookup(d tool.Definition) *trackedTool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if k := g.tools[d.Name]; k != nil && bytes.Equal(k.definition.Raw, d.Raw) {
		return k
	}
	return nil
}

func (k *trackedTool) observation() store.Observation {
	return store.Observation{Tool: k.definition.Name.Tool, Fingerprint: k.fingerprint, Definition: k.definition.Raw}
}

// inspect inspects a definition once and logs its flags.
func (g *Guard) inspect(ctx context.Context, k *trackedTool) {
	g.mu.RLock()
	done := k.inspected
	g.mu.RUnlock()
	if done {
		return
	}
	var flags []string
	for _, f := range Inspect(k.definition) {
		flags = append(flags, f.String())
	}
	g.mu.Lock()
	k.inspected, k.flags = true, flags
	g.mu.Unlock()
	if len(flags) > 0 {
		g.log.WarnContext(ctx, "possible prompt injection in a tool definition; see junctor tools show "+k.definition.Name.String(),
			"server", k.definition.Name.Server, "tool", k.definition.Name.Tool, "flags", flags)
	}
}

func (g *Guard) verdict(k *trackedTool) (changed, blocked bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return k.changed(), k.changed() && g.block
}

// Review returns the review of a definition.
func (g *Guard) Review(d tool.Definition) catalog.Review {
	g.mu.RLock()
	defer g.mu.RUnlock()
	k := g.tools[d.Name]
	if k == nil {
		return catalog.Review{}
	}
	changed := k.changed()
	flags := k.flags
	if !bytes.Equal(k.definition.Raw, d.Raw) {
		changed, flags = k.approved != d.Fingerprint(), nil
	}
	return catalog.Review{Changed: changed, Blocked: changed && g.block, Flags: flags}
}

// Run inspects the definitions that ObserveStored did not, and applies
// approvals of other processes on the same store, until ctx is done. It calls
// refresh when reviews have changed.
func (g *Guard) Run(ctx context.Context, refresh func()) error {
	changes := g.store.Watch(ctx, store.TopicCatalogues)
	if g.inspectAll(ctx) {
		refresh()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		}
		changed, err := g.reload(ctx)
		if err != nil && ctx.Err() == nil {
			g.log.WarnContext(ctx, "cannot read approvals; retrying at the next change", "err", err)
		}
		if changed {
			refresh()
		}
	}
}

// inspectAll inspects the definitions that are not inspected yet, and reports
// whether any has flags.
func (g *Guard) inspectAll(ctx context.Context) (found bool) {
	g.mu.RLock()
	var waiting []*trackedTool
	for _, k := range g.tools {
		if !k.inspected {
			waiting = append(waiting, k)
		}
	}
	g.mu.RUnlock()
	for _, k := range waiting {
		if ctx.Err() != nil {
			return found
		}
		g.inspect(ctx, k)
		g.mu.RLock()
		found = found || len(k.flags) > 0
		g.mu.RUnlock()
	}
	return found
}

// reload reads the approvals of the servers that have changed tools; approvals
// of other servers make no difference.
func (g *Guard) reload(ctx context.Context) (changed bool, err error) {
	g.mu.RLock()
	servers := map[string]bool{}
	for name, k := range g.tools {
		if k.changed() {
			servers[name.Server] = true
		}
	}
	g.mu.RUnlock()
	for server := range servers {
		prints, err := g.store.Fingerprints(ctx, server)
		if err != nil {
			return changed, err
		}
		g.mu.Lock()
		for _, p := range prints {
			k := g.tools[tool.Name{Server: p.Server, Tool: p.Tool}]
			if k != nil && k.approved != p.Approved {
				k.approved = p.Approved
				changed = true
			}
		}
		g.mu.Unlock()
	}
	return changed, nil
}

// Approve records the approval of a definition by the given caller.
func (g *Guard) Approve(ctx context.Context, d tool.Definition, by string) error {
	o := store.Observation{Tool: d.Name.Tool, Fingerprint: d.Fingerprint(), Definition: d.Raw}
	if err := g.store.Approve(ctx, d.Name.Server, o, by); err != nil {
		return fmt.Errorf("approve %s: %w", d.Name, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if k := g.tools[d.Name]; k != nil {
		k.approved = o.Fingerprint
	}
	return nil
}

// Change is a tool whose definition is not the approved one.
type Change struct {
	Name   tool.Name
	Print  store.Fingerprint
	Before json.RawMessage // the approved definition
	After  json.RawMessage // the current one; nil if this process does not track it
}

// Changes returns the tools of a server (of all if server is empty) whose
// definition is not the approved one, ordered by name.
func (g *Guard) Changes(ctx context.Context, server string) ([]Change, error) {
	prints, err := g.store.Fingerprints(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("read fingerprints: %w", err)
	}
	var out []Change
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, p := range prints {
		if !p.Changed() {
			continue
		}
		c := Change{Name: tool.Name{Server: p.Server, Tool: p.Tool}, Print: p, Before: p.Definition}
		if k := g.tools[c.Name]; k != nil && k.fingerprint == p.Current {
			c.After = k.definition.Raw
		}
		out = append(out, c)
	}
	return out, nil
}
