package app

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/config"
	"junctor/internal/llm"
	"junctor/internal/llm/models"
)

const (
	// probeTimeout bounds listing the models of a local Ollama.
	probeTimeout = 500 * time.Millisecond
	// probeInterval is how often Ollama is probed while there are no models.
	probeInterval = 15 * time.Second
)

// modelSet holds the current models: the configured ones, otherwise those of
// the keys in the environment, otherwise those of a local Ollama.
type modelSet struct {
	app     *App
	current atomic.Pointer[llm.Set]
	probed  sync.Map    // the names of an Ollama server's models ([]string) from the last probe, by base URL
	stale   atomic.Bool // the current models are those of a probe before the last change of the settings
}

func newModelSet(a *App) *modelSet {
	m := &modelSet{app: a}
	m.current.Store(llm.NewSet())
	return m
}

// set returns the models; there may be none.
func (m *modelSet) set() *llm.Set { return m.current.Load() }

// choose updates the models. With probe it also probes for Ollama, which
// requires a request; models that were chosen in the meantime are not
// replaced. Without, the result of the last probe is used.
func (m *modelSet) choose(ctx context.Context, cfg *config.Config, probe bool) {
	before := m.set()
	remembered := false
	ollama := func(baseURL string) []string {
		remembered = true
		names, _ := m.probed.Load(baseURL)
		known, _ := names.([]string)
		return known
	}
	if probe {
		cfg = m.app.config.Load() // must be at least as recent as before
		ollama = func(baseURL string) []string {
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			names, _ := llm.ProbeOllama(ctx, http.DefaultClient, baseURL) // usually there is no server
			m.probed.Store(baseURL, names)
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
		m.app.log.ErrorContext(ctx, "cannot change the models", "err", err)
		return
	}
	if probe {
		m.current.CompareAndSwap(before, set)
		return
	}
	m.current.Store(set)
	m.stale.Store(remembered)
}

// run probes for a local Ollama while there is no model, and again after a change
// of the settings if its models are used.
func (m *modelSet) run(ctx context.Context) error {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		if stale := m.stale.Swap(false); stale || len(m.set().All()) == 0 {
			m.choose(ctx, m.app.config.Load(), true)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
