package app

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"junctor/internal/config"
	"junctor/internal/llm"
	"junctor/internal/llm/models"
)

const (
	// probeTimeout is the timeout for listing the models of a local Ollama.
	probeTimeout = 500 * time.Millisecond
	// probeInterval is how often it is looked for while there is no model at all.
	probeInterval = 15 * time.Second
)

// modelSet holds the current models: those configured, else those of the keys
// in the environment, else those of a local Ollama.
type modelSet struct {
	app     *App
	current atomic.Pointer[llm.Set]
}

func newModelSet(a *App) *modelSet {
	m := &modelSet{app: a}
	m.current.Store(llm.NewSet())
	return m
}

// set returns the models; there may be none.
func (m *modelSet) set() *llm.Set { return m.current.Load() }

// choose chooses the models again. With probe it also looks for Ollama, which
// takes a request; models that were chosen meanwhile are kept.
func (m *modelSet) choose(ctx context.Context, cfg *config.Config, probe bool) {
	before := m.set()
	var ollama func(string) []string
	if probe {
		cfg = m.app.config.Load() // not older than before
		ollama = func(baseURL string) []string {
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			names, err := llm.ProbeOllama(ctx, http.DefaultClient, baseURL)
			if err != nil { // there is none, as a rule
				return nil
			}
			return names
		}
	}
	lookup := func(name string) string { v, _ := cfg.Lookup(name); return v }
	chosen := llm.Choose(cfg.LLM, lookup, ollama)
	for _, c := range chosen {
		m.app.opts.Redactor.Add(c.APIKey)
	}
	set, err := models.NewSet(chosen, nil, m.app.log)
	if err != nil {
		m.app.log.ErrorContext(ctx, "models not changed", "err", err)
		return
	}
	if probe {
		m.current.CompareAndSwap(before, set)
		return
	}
	m.current.Store(set)
}

// run looks for a local Ollama while there is no other model.
func (m *modelSet) run(ctx context.Context) error {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		if len(m.set().All()) == 0 {
			m.choose(ctx, m.app.config.Load(), true)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
