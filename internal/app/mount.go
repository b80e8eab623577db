package app

import (
	"net/http"
	"sync/atomic"

	"junctor/internal/auth"
	"junctor/internal/broker"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/httperr"
	"junctor/internal/httpserver"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/toolsapi"
)

// isPage reports whether the request is for the web page or one of its files.
func (a *App) isPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && a.web.Has(r.URL.Path)
}

// mount puts every face onto one multiplexer.
func (a *App) mount(gate *auth.Gate, ready *atomic.Bool) http.Handler {
	cfg := a.config.Load()
	mux := http.NewServeMux()
	a.discovery.Routes(mux)
	a.chat.Routes(mux)
	a.agentify.Routes(mux)
	a.debug().Routes(mux)
	a.control().Routes(mux)
	toolsapi.New(toolsapi.Options{
		Catalog: a.catalog, Search: a.search, Signals: a.signals, Executor: a.executor, Servers: a.upstreams,
		Log: a.store, Ready: ready.Load, Open: cfg.Store.WhenAway == store.AwayOpen, Version: a.opts.Version,
	}).Routes(mux)
	broker.New(broker.Options{
		Calls: a.executor, Targets: targets{a},
	}).Routes(mux)
	a.oauth.Routes(mux)
	if gate != nil {
		gate.Routes(mux)
	}
	mux.Handle("GET /metrics", a.whenEnabled(func(c *config.Config) bool { return c.Telemetry.Metrics }, unlimited(a.metrics.Handler())))
	mux.HandleFunc("/.well-known/", nothing)
	mux.Handle("/", a.pageOnly(mux))
	return httpserver.LimitBody(func() int64 { return int64(a.config.Load().Limits.MaxBodyBytes) },
		a.streams.Wrap(func() int { return a.config.Load().Limits.MaxStreamsPerCaller }, mux))
}

// whenEnabled serves only while the configuration has it so.
func (a *App) whenEnabled(enabled func(*config.Config) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !enabled(a.config.Load()) {
			nothing(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// unlimited keeps callers who may not see everything from what names all
// servers and tools.
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
		Catalog: a.catalog, Search: a.search, Signals: a.signals, Calls: a.executor, Servers: a.upstreams,
		Settings: settings{a}, Keys: a.store, Reviews: reviews{a}, Log: a.store, Importer: importer{a}, Status: a.status,
	})
}
