package app

import (
	"net/http"

	"junctor/internal/auth"
	"junctor/internal/broker"
	"junctor/internal/clients"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/httperr"
	"junctor/internal/httpserver"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/toolsapi"
)

// isPage reports whether the request is for the web page or one of its assets.
func (a *App) isPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && a.web.Has(r.URL.Path)
}

// routes is an HTTP API.
type routes interface{ Routes(mux *http.ServeMux) }

// newAPIs creates the HTTP APIs. They are created once and served on every
// listener, so that all listeners share counters and caches.
func (a *App) newAPIs() []routes {
	return []routes{
		a.discovery, a.chat, a.agentify, a.debug(), a.control(), a.oauth, a.waiting, a.approvals, a.audit,
		toolsapi.New(toolsapi.Options{
			Tools: a.tools, Executor: a.executor, Scripts: a.scripts, Log: a.store, Ready: a.ready, Open: a.config.Load().Store.WhenAway == store.FailOpen, Version: a.opts.Version, Waiting: a.waiting,
		}),
		broker.New(broker.Options{Calls: a.executor, Targets: targets{a}}),
	}
}

// ready reports whether the gateway accepts requests, which is until the
// shutdown begins.
func (a *App) ready() bool { return !a.stopping.Load() }

// mount mounts every API on a new multiplexer.
func (a *App) mount(gate *auth.Gate) http.Handler {
	mux := http.NewServeMux()
	for _, api := range a.apis {
		api.Routes(mux)
	}
	if gate != nil {
		gate.Routes(mux)
		a.authserver.Routes(mux, gate)
	}
	mux.Handle("GET /metrics", a.whenEnabled(func(c *config.Config) bool { return c.Telemetry.Metrics }, unlimited(a.metrics.Handler())))
	mux.HandleFunc("/.well-known/", notFound)
	mux.Handle("/", a.pageOnly(mux))
	streams := a.streams.Wrap(func() int { return a.config.Load().Limits.MaxStreamsPerCaller }, mux)
	return httpserver.LimitBody(func() int64 { return int64(a.config.Load().Limits.MaxBodyBytes) }, a.profiles.Wrap(streams))
}

// whenEnabled serves requests only while enabled returns true for the
// configuration.
func (a *App) whenEnabled(enabled func(*config.Config) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !enabled(a.config.Load()) {
			notFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// unlimited rejects restricted callers on a route that reveals all servers and
// tools.
func unlimited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := tool.CallerFrom(r.Context()); c.Limited() {
			httperr.Write(w, r, &tool.Error{Kind: tool.Denied, Msg: "metrics name all servers and tools; use a key that is not limited to some of them"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a *App) control() *control.Control {
	return control.New(control.Options{
		Tools: a.tools, Calls: a.executor, Servers: a.upstreams,
		Settings: settings{a}, Keys: a.store, Reviews: reviews{a}, Profiles: a.profiles, Log: a.store, Importer: clients.Importer{Reload: a.opts.Reload, Apply: settings{a}.applyFile}, Status: a.status,
		Waiting: a.waiting, Questions: a.chat, Chats: a.chat, Audit: a.audit.Audit,
	})
}
