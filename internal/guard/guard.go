// Package guard watches what tools say of themselves. It remembers the
// definition that each tool had when it was first seen and tells when it is
// another one: a tool that changes after it was trusted is how a server turns
// on its users. And it reads definitions for what is hidden in them and for
// text that speaks to the model ([Inspect]).
//
// It keeps its memory in the store and decides nothing but what
// [catalog.Review] says; the catalogue acts on that.
package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"junctor/internal/catalog"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Store is where fingerprints are kept, and which tells when another process
// approved one.
type Store interface {
	store.Fingerprints
	Watch(ctx context.Context, topic string) <-chan struct{}
}

// Guard knows which definitions were agreed to.
type Guard struct {
	store Store
	log   *slog.Logger

	mu    sync.RWMutex
	block bool
	known map[tool.Name]*known
	read  int // of the recalled definitions
}

// known is what the guard thinks of the definition that a tool has now.
type known struct {
	definition tool.Definition
	print      string // of the definition
	agreed     string // the fingerprint that was agreed to
	inspected  bool
	flags      []string
}

func (k *known) changed() bool { return k.print != k.agreed }

// New returns a Guard that remembers in s.
func New(s Store, cfg catalog.SecurityConfig, log *slog.Logger) *Guard {
	g := &Guard{store: s, log: log.With(telemetry.KeyComponent, "guard"), known: map[tool.Name]*known{}}
	g.SetConfig(cfg)
	return g
}

// SetConfig says what happens to tools that changed.
func (g *Guard) SetConfig(cfg catalog.SecurityConfig) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.block = cfg.OnToolChange == catalog.BlockOnChange
}

// Observe notes what a server offers now, and warns of what it finds in new
// definitions. It must come before the definitions are reviewed.
func (g *Guard) Observe(ctx context.Context, server string, definitions []tool.Definition) error {
	fresh, err := g.note(ctx, server, definitions)
	for _, k := range fresh {
		g.inspect(ctx, k)
		if changed, blocked := g.verdict(k); changed {
			g.log.WarnContext(ctx, "a tool is not what it was; look at it with junctor servers diff "+server,
				"server", server, "tool", k.definition.Name.Tool, "blocked", blocked)
		}
	}
	return err
}

// readAtOnce is how many recalled definitions are read before the start goes
// on: a few milliseconds' worth.
const readAtOnce = 64

// Recall notes what a server offered when it was last seen. Where there are
// many definitions, what Observe would find in them is found when Run has
// begun: reading thousands must not delay the start.
func (g *Guard) Recall(ctx context.Context, server string, definitions []tool.Definition) error {
	fresh, err := g.note(ctx, server, definitions)
	g.mu.Lock()
	n := min(len(fresh), readAtOnce-g.read)
	g.read += n
	g.mu.Unlock()
	for _, k := range fresh[:n] {
		g.inspect(ctx, k)
	}
	return err
}

// note remembers definitions and returns those that it had not seen.
func (g *Guard) note(ctx context.Context, server string, definitions []tool.Definition) (fresh []*known, err error) {
	seen := make([]store.Observation, len(definitions))
	now := make([]*known, len(definitions))
	for i, d := range definitions {
		k := g.lookup(d)
		if k == nil {
			k = &known{definition: d, print: d.Fingerprint()}
			k.agreed = k.print
			fresh = append(fresh, k)
		}
		now[i] = k
		seen[i] = k.observation()
	}
	prints, err := g.store.Observe(ctx, server, seen)
	if err != nil {
		err = fmt.Errorf("note the tools of %s: %w", server, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, k := range now {
		if i < len(prints) {
			k.agreed = prints[i].Approved
		}
		g.known[k.definition.Name] = k
	}
	return fresh, err
}

// lookup returns what is known of exactly this definition, or nil.
func (g *Guard) lookup(d tool.Definition) *known {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if k := g.known[d.Name]; k != nil && bytes.Equal(k.definition.Raw, d.Raw) {
		return k
	}
	return nil
}

func (k *known) observation() store.Observation {
	return store.Observation{Tool: k.definition.Name.Tool, Fingerprint: k.print, Definition: k.definition.Raw}
}

// inspect reads a definition, once, and warns of what it finds.
func (g *Guard) inspect(ctx context.Context, k *known) {
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
		g.log.WarnContext(ctx, "the definition of a tool looks unsafe; look at it with junctor tools show "+k.definition.Name.String(),
			"server", k.definition.Name.Server, "tool", k.definition.Name.Tool, "flags", flags)
	}
}

func (g *Guard) verdict(k *known) (changed, blocked bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return k.changed(), k.changed() && g.block
}

// Review says what is to be thought of a definition.
func (g *Guard) Review(d tool.Definition) catalog.Review {
	g.mu.RLock()
	defer g.mu.RUnlock()
	k := g.known[d.Name]
	if k == nil {
		return catalog.Review{}
	}
	changed := k.changed()
	flags := k.flags
	if !bytes.Equal(k.definition.Raw, d.Raw) {
		changed, flags = k.agreed != d.Fingerprint(), nil
	}
	return catalog.Review{Changed: changed, Blocked: changed && g.block, Flags: flags}
}

// Run keeps the guard's view true until ctx is done: it reads the definitions
// that were recalled, and hears of approvals given by other processes on the
// same store. refresh is called when reviews have changed.
func (g *Guard) Run(ctx context.Context, refresh func()) error {
	news := g.store.Watch(ctx, store.TopicCatalogues)
	if g.inspectAll(ctx) {
		refresh()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		}
		changed, err := g.reload(ctx)
		if err != nil && ctx.Err() == nil {
			g.log.WarnContext(ctx, "approvals not read; the next change tries again", "err", err)
		}
		if changed {
			refresh()
		}
	}
}

// inspectAll reads what was only recalled, and reports whether it found
// anything.
func (g *Guard) inspectAll(ctx context.Context) (found bool) {
	g.mu.RLock()
	var waiting []*known
	for _, k := range g.known {
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

// reload reads the approvals of the servers that have changed tools: only
// there can an approval make a difference.
func (g *Guard) reload(ctx context.Context) (changed bool, err error) {
	g.mu.RLock()
	servers := map[string]bool{}
	for name, k := range g.known {
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
			k := g.known[tool.Name{Server: p.Server, Tool: p.Tool}]
			if k != nil && k.agreed != p.Approved {
				k.agreed = p.Approved
				changed = true
			}
		}
		g.mu.Unlock()
	}
	return changed, nil
}

// Approve agrees to the definition as it is now, on behalf of by.
func (g *Guard) Approve(ctx context.Context, d tool.Definition, by string) error {
	o := store.Observation{Tool: d.Name.Tool, Fingerprint: d.Fingerprint(), Definition: d.Raw}
	if err := g.store.Approve(ctx, d.Name.Server, o, by); err != nil {
		return fmt.Errorf("approve %s: %w", d.Name, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if k := g.known[d.Name]; k != nil {
		k.agreed = o.Fingerprint
	}
	return nil
}

// Change is a tool that is not what was agreed to.
type Change struct {
	Name   tool.Name
	Print  store.Fingerprint
	Before json.RawMessage // the definition that was agreed to
	After  json.RawMessage // the one there is now; nil when it is not known here
}

// Changes returns the tools of a server, or of all, that are not what was
// agreed to, by name.
func (g *Guard) Changes(ctx context.Context, server string) ([]Change, error) {
	prints, err := g.store.Fingerprints(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("read the fingerprints: %w", err)
	}
	var out []Change
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, p := range prints {
		if !p.Changed() {
			continue
		}
		c := Change{Name: tool.Name{Server: p.Server, Tool: p.Tool}, Print: p, Before: p.Definition}
		if k := g.known[c.Name]; k != nil && k.print == p.Current {
			c.After = k.definition.Raw
		}
		out = append(out, c)
	}
	return out, nil
}
