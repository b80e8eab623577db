package app

import (
	"slices"
	"sync"

	"junctor/internal/auth"
	"junctor/internal/config"
)

// gates are the authentication gates of all listeners of this process.
// Configuration changes are applied to all of them.
type gates struct {
	mu  sync.Mutex
	all []*auth.Gate
}

func (g *gates) add(gate *auth.Gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, gate)
}

func (g *gates) remove(gate *auth.Gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = slices.DeleteFunc(g.all, func(other *auth.Gate) bool { return other == gate })
}

func (g *gates) apply(cfg *config.Config) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, gate := range g.all {
		gate.SetConfig(cfg.Auth, cfg.CORS.Origins)
	}
}
