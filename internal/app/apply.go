package app

import (
	"bytes"
	"context"
	"math"
	"slices"

	"junctor/internal/catalog"
	"junctor/internal/config"
	"junctor/internal/executor"
	"junctor/internal/search"
)

// apply puts another configuration into force without a restart, and names the
// settings that need one. It runs once at a time; a configuration that is in
// force already changes nothing.
//
// Settings that are not mentioned here are read from a.config where they are
// used. TestApplyReachesEveryLiveSetting fails when one is missed.
func (a *App) apply(ctx context.Context, cfg *config.Config) {
	a.applying.Lock()
	defer a.applying.Unlock()
	old := a.config.Swap(cfg)
	select {
	case a.reloaded <- struct{}{}:
	default: // Share has not looked at the one before yet
	}
	if old.Equal(cfg) {
		return
	}
	a.opts.Redactor.Add(cfg.Secrets()...)
	if err := a.opts.Redactor.SetConfig(cfg.Security.RedactConfig); err != nil { // the configuration was checked
		a.log.ErrorContext(ctx, "security.redact not applied", "err", err)
	}
	if a.opts.Level != nil && old.Log.Level != cfg.Log.Level {
		a.opts.Level.Set(cfg.Log.Level.Slog())
	}
	a.guard.SetConfig(cfg.Security.SecurityConfig)
	a.executor.SetConfig(executor.Config{Circuit: cfg.Circuit, Limits: cfg.Limits.LimitConfig})
	a.discovery.SetConfig(cfg.Discovery)
	a.discovery.SetMaxSessions(maxSessions(cfg))
	a.chat.SetConfig(cfg.Chat)
	a.models.choose(ctx, cfg, false)
	a.catalog.SetRules(cfg.ToolRules)
	a.upstreams.Apply(a.servers(cfg))
	a.gates.apply(cfg)
	if port := a.debugPort.Load(); port != nil {
		port.open(cfg.DebugPort)
	}
	if keys := config.NeedRestart(old, cfg); len(keys) > 0 {
		a.log.WarnContext(ctx, "some changed settings take effect with the next start only", "settings", keys)
	}
	a.log.InfoContext(ctx, "configuration applied", "servers", len(cfg.Servers))
}

// maxSessions is the limit of MCP sessions; 0 means none.
func maxSessions(cfg *config.Config) int {
	if cfg.Limits.MaxSessions == 0 {
		return math.MaxInt
	}
	return cfg.Limits.MaxSessions
}

// watch applies every change of the configuration's files until ctx is done.
func (a *App) watch(ctx context.Context) error {
	return config.Watch(ctx, a.opts.Reload, a.config.Load(), func(u config.Update) {
		for _, n := range u.Notes {
			a.log.WarnContext(ctx, "configuration", "note", n.String())
		}
		if u.Err != nil {
			a.log.ErrorContext(ctx, "configuration not applied; the running one stays", "err", u.Err)
			return
		}
		a.apply(ctx, u.Config)
	})
}

// indexTools brings the search index up to date with a new snapshot of the
// catalogue. Only what differs is indexed again.
func (a *App) indexTools(before, after *catalog.Snapshot) {
	for _, s := range after.Servers() {
		if old := before.Server(s.Name); old == nil || !sameDocuments(old, s) {
			a.search.Put(s.Name, documents(s))
		}
	}
	for _, s := range before.Servers() {
		if after.Server(s.Name) == nil {
			a.search.Remove(s.Name)
		}
	}
}

// documents are a server's tools as search reads them.
func documents(s *catalog.Server) []search.Doc {
	docs := make([]search.Doc, 0, len(s.Tools))
	for _, e := range s.Tools {
		docs = append(docs, search.Doc{
			Name: e.Name, Title: e.Title, Description: e.Description, InputSchema: e.InputSchema, Tags: e.Tags,
			ReadOnly: e.Annotations.ReadOnlyHint, ServerTitle: s.Title, ServerDescription: s.Description,
		})
	}
	return docs
}

// sameDocuments reports whether search would read the same of both.
func sameDocuments(a, b *catalog.Server) bool {
	if a == b {
		return true
	}
	return a.Title == b.Title && a.Description == b.Description && slices.EqualFunc(a.Tools, b.Tools, func(x, y *catalog.Entry) bool {
		return bytes.Equal(x.Raw, y.Raw) && slices.Equal(x.Tags, y.Tags)
	})
}
