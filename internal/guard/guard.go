// Package guard watches what tools say of themselves. It remembers the
// definition that each tool had when it was first seen and tells when it is
// another one: a tool that changes after it was trusted is how a server turns
// on its users.
//
// It keeps its memory in the store and decides nothing but what
// [catalog.Review] says; the catalogue acts on that.
package guard

import (
	"context"
	"fmt"
	"sync"

	"junctor/internal/catalog"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// Guard knows which definitions were agreed to.
type Guard struct {
	prints store.Fingerprints

	mu    sync.RWMutex
	block bool
	known map[tool.Name]string // the agreed fingerprint
}

// New returns a Guard that remembers in prints.
func New(prints store.Fingerprints, cfg catalog.SecurityConfig) *Guard {
	g := &Guard{prints: prints, known: map[tool.Name]string{}}
	g.SetConfig(cfg)
	return g
}

// SetConfig says what happens to tools that changed.
func (g *Guard) SetConfig(cfg catalog.SecurityConfig) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.block = cfg.OnToolChange == catalog.BlockOnChange
}

// Observe notes what a server offers now. It must come before the definitions
// are reviewed.
func (g *Guard) Observe(ctx context.Context, server string, definitions []tool.Definition) error {
	seen := make([]store.Observation, len(definitions))
	for i, d := range definitions {
		seen[i] = observation(d)
	}
	prints, err := g.prints.Observe(ctx, server, seen)
	if err != nil {
		return fmt.Errorf("note the tools of %s: %w", server, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range prints {
		g.known[tool.Name{Server: p.Server, Tool: p.Tool}] = p.Approved
	}
	return nil
}

func observation(d tool.Definition) store.Observation {
	return store.Observation{Tool: d.Name.Tool, Fingerprint: d.Fingerprint(), Definition: d.Raw}
}

// Review says what is to be thought of a definition.
func (g *Guard) Review(d tool.Definition) catalog.Review {
	g.mu.RLock()
	defer g.mu.RUnlock()
	agreed, ok := g.known[d.Name]
	changed := ok && agreed != d.Fingerprint()
	return catalog.Review{Changed: changed, Blocked: changed && g.block}
}

// Approve agrees to the definition as it is now, on behalf of by.
func (g *Guard) Approve(ctx context.Context, d tool.Definition, by string) error {
	o := observation(d)
	if err := g.prints.Approve(ctx, d.Name.Server, o, by); err != nil {
		return fmt.Errorf("approve %s: %w", d.Name, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known[d.Name] = o.Fingerprint
	return nil
}
