package app

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/config"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// storeTimeout bounds storing the tools of an upstream.
const storeTimeout = 10 * time.Second

// sink passes the tools of upstreams to the catalogue, to search, and to the
// store, from which they are loaded at the next start.
type sink struct {
	app *App
	wg  sync.WaitGroup // writes in progress

	mu        sync.Mutex
	listeners []func(server, caller, method string, params json.RawMessage)
}

func newSink(a *App) *sink { return &sink{app: a} }

// onNotification adds a receiver for notifications that do not belong to a
// call. All receivers must be added before Run.
func (s *sink) onNotification(f func(server, caller, method string, params json.RawMessage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, f)
}

// ToolsChanged publishes an upstream's tools in the catalogue and in search.
func (s *sink) ToolsChanged(o upstream.ToolSet) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := s.app.guard.Observe(ctx, o.Config.Name, o.Tools); err != nil {
		s.app.log.WarnContext(ctx, "cannot check the tools for changes", "server", o.Config.Name, "err", err)
	}
	s.publish(o)
	s.wg.Go(func() { s.storeTools(o) })
}

func (s *sink) publish(o upstream.ToolSet) {
	s.app.catalog.Put(catalog.Server{
		Name: o.Config.Name, Title: o.Info.Title, Instructions: o.Info.Instructions, Guidance: o.Guidance,
		Callers: o.Callers,
	}, o.Tools)
}

// storeTools stores a server's tools for the next start.
func (s *sink) storeTools(o upstream.ToolSet) {
	if o.Config.Transport == upstream.InProcess || o.Config.PersonalLogins() { // tools are listed again for each caller
		return
	}
	info, err := json.Marshal(o.Info)
	if err != nil {
		return
	}
	c := store.Catalogue{Server: o.Config.Name, Config: o.Config.Fingerprint(), Info: info, Guidance: o.Guidance, Seen: time.Now()}
	for _, t := range o.Tools {
		c.Tools = append(c.Tools, t.Raw)
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := s.app.store.PutCatalogue(ctx, c); err != nil {
		s.app.log.WarnContext(ctx, "cannot store the tool list", "server", o.Config.Name, "err", err)
	}
}

// Removed removes an upstream that was disabled or removed from the catalogue and
// the metrics. The guard still knows the tools of a disabled one, so that their
// changes can be shown.
func (s *sink) Removed(server string) {
	s.app.catalog.Remove(server)
	if !s.app.upstreams.Has(server) {
		s.app.guard.Remove(server)
	}
	s.app.metrics.Forget(server)
}

// StatusChanged updates the metrics of an upstream.
func (s *sink) StatusChanged(st upstream.Status) {
	s.app.metrics.Upstream(st.Name, string(st.State), st.Tools)
	if st.State == upstream.Connected {
		s.app.metrics.Connected(st.Name)
	}
}

// Notified passes a notification to the receivers.
func (s *sink) Notified(server, caller, method string, params json.RawMessage) {
	s.mu.Lock()
	listeners := s.listeners
	s.mu.Unlock()
	for _, f := range listeners {
		f(server, caller, method, params)
	}
}

// flush waits for the writes in progress.
func (s *sink) flush() { s.wg.Wait() }

// loadCatalogues publishes the stored tools of each configured upstream, so
// that listing and searching work before any server has responded.
func (a *App) loadCatalogues(ctx context.Context, cfg *config.Config) error {
	ttl := cfg.Discovery.Cache.Duration()
	if ttl == 0 {
		return nil
	}
	kept, err := a.store.Catalogues(ctx)
	if err != nil {
		return fmt.Errorf("read the catalogues: %w", err)
	}
	for _, c := range kept {
		set, ok := a.toolSetOf(cfg, c)
		if !ok || time.Since(c.Seen) > ttl {
			continue
		}
		if err := a.guard.ObserveStored(ctx, c.Server, set.Tools); err != nil {
			return err
		}
		a.sink.publish(set)
	}
	return nil
}

// toolSetOf returns the tool set of a stored catalogue; ok is false if the
// server's configuration has changed.
func (a *App) toolSetOf(cfg *config.Config, c store.Catalogue) (upstream.ToolSet, bool) {
	server, ok := cfg.Server(c.Server)
	if !ok || !server.Enabled || server.PersonalLogins() || server.Fingerprint() != c.Config {
		return upstream.ToolSet{}, false
	}
	set := upstream.ToolSet{Config: server, Guidance: c.Guidance}
	if json.Unmarshal(c.Info, &set.Info) != nil {
		return upstream.ToolSet{}, false
	}
	for _, raw := range c.Tools {
		if d, err := tool.ParseDefinition(c.Server, raw); err == nil {
			set.Tools = append(set.Tools, d)
		}
	}
	return set, true
}
