package app

import (
	"context"
	"math"
	"reflect"

	"junctor/internal/catalog"
	"junctor/internal/config"
	"junctor/internal/executor"
	"junctor/internal/tool"
)

// apply applies another configuration without a restart and logs the settings
// that need one. Calls are serialized; an unchanged configuration has no
// effect.
//
// Settings that are not handled here are read from a.config where they are
// used. TestApplyReachesEveryLiveSetting fails for a setting that is not
// applied.
func (a *App) apply(ctx context.Context, cfg *config.Config) {
	a.applying.Lock()
	defer a.applying.Unlock()
	old := a.config.Swap(cfg)
	select {
	case a.reloaded <- struct{}{}:
	default: // Share has not handled the previous change yet
	}
	if old.Equal(cfg) {
		return
	}
	a.opts.Redactor.Add(cfg.Secrets()...)
	if err := a.opts.Redactor.SetConfig(cfg.Security.RedactConfig); err != nil { // the configuration was validated
		a.log.ErrorContext(ctx, "security.redact not applied", "err", err)
	}
	if a.opts.Level != nil && old.Log.Level != cfg.Log.Level {
		a.opts.Level.Set(cfg.Log.Level.Slog())
	}
	a.executor.SetConfig(executor.Config{Circuit: cfg.Circuit, Limits: cfg.Limits.LimitConfig})
	a.discovery.SetConfig(cfg.Discovery)
	a.scripts.SetConfig(cfg.Scripts)
	a.discovery.SetMaxSessions(maxSessions(cfg))
	a.chat.SetConfig(cfg.Chat)
	a.approvals.SetConfig(cfg.Approval)
	a.models.choose(ctx, cfg, false)
	a.profiles.SetConfig(cfg.Profiles)
	// The catalogue comes first, so that no call is made under rules that no
	// longer apply and a removed server is not found before it is stopped.
	a.catalog.Configure(a.toolSettings(cfg), func() { a.guard.SetConfig(cfg.Security.SecurityConfig) })
	a.upstreams.Apply(a.servers(cfg))
	a.gates.apply(cfg)
	if !reflect.DeepEqual(old.Profiles, cfg.Profiles) || !reflect.DeepEqual(old.Auth, cfg.Auth) {
		a.discovery.RightsChanged()
	}
	a.setCallback(cfg)
	if port := a.debugPort.Load(); port != nil {
		port.open(cfg.DebugPort)
	}
	if keys := config.NeedRestart(old, cfg); len(keys) > 0 {
		a.log.WarnContext(ctx, "some changed settings take effect with the next start only", "settings", keys)
	}
	a.log.InfoContext(ctx, "configuration applied", "servers", len(cfg.Servers))
}

// toolSettings returns the settings of the catalogue in a configuration.
func (a *App) toolSettings(cfg *config.Config) catalog.Settings {
	s := catalog.Settings{Rules: cfg.ToolRules, Servers: map[string]catalog.ServerSettings{}}
	for _, server := range a.servers(cfg) {
		s.Servers[server.Name] = catalog.ServerSettings{
			Disabled: !server.Enabled, Description: server.Description, Tags: server.Tags, Allows: server.ToolConfiguration.Allows,
		}
	}
	return s
}

// maxSessions returns the limit of MCP sessions; math.MaxInt means none.
func maxSessions(cfg *config.Config) int {
	if cfg.Limits.MaxSessions == 0 {
		return math.MaxInt
	}
	return cfg.Limits.MaxSessions
}

// fileEditor is the audit log's actor for changes of the configuration files.
var fileEditor = tool.Caller{ID: "file", Name: "configuration file"}

// watch applies every change of the configuration files since loaded was read,
// until ctx is done.
func (a *App) watch(ctx context.Context, loaded *config.Config) error {
	return config.Watch(ctx, a.opts.Reload, loaded, func(u config.Update) {
		for _, n := range u.Notes {
			a.log.WarnContext(ctx, "configuration", "note", n.String())
		}
		if u.Err != nil {
			a.log.ErrorContext(ctx, "configuration not applied; the previous one stays in effect", "err", u.Err)
			return
		}
		a.editing.Lock()
		before, current := a.config.Load(), u.Config.Current(a.opts.Reload)
		if current { // otherwise it would undo an edit; the watcher reads the file again
			a.apply(ctx, u.Config)
		}
		a.editing.Unlock()
		if current && !before.Equal(u.Config) {
			a.audit.Audit(tool.WithCaller(ctx, fileEditor), "config.change", u.Config.Place().Path, map[string]any{"keys": config.Changed(before, u.Config)})
		}
	})
}
