package app

import (
	"net/http"
	"path/filepath"

	"junctor/internal/broker"
	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// targets provides the upstreams to the broker.
type targets struct{ app *App }

// Target returns one upstream as a caller sees it.
func (t targets) Target(name, caller string) (broker.Target, bool) {
	st, ok := t.app.upstreams.StatusOf(name)
	if !ok {
		return broker.Target{}, false
	}
	return t.target(st, caller), true
}

// Targets returns all upstreams, sorted by name.
func (t targets) Targets(caller string) []broker.Target {
	var list []broker.Target
	for _, st := range t.app.upstreams.Status() {
		list = append(list, t.target(st, caller))
	}
	return list
}

func (t targets) target(st upstream.Status, caller string) broker.Target {
	st = t.app.upstreams.StatusForCaller(st, caller)
	cfg, _ := t.app.upstreams.Config(st.Name)
	out := broker.Target{
		Name: st.Name, Proxy: cfg.Proxy, URL: telemetry.MaskURL(cfg.URL),
		Available:  st.State == upstream.Connected,
		Authorized: st.State != upstream.AuthRequired,
		HasToken:   cfg.AuthorizationToken != "",
	}
	for name := range cfg.Headers {
		out.HasToken = out.HasToken || http.CanonicalHeaderKey(name) == "Authorization"
	}
	if login := t.app.login(st.Name, caller); login.HasToken {
		out.HasToken, out.LastAuthorized = true, login.Since
	}
	switch {
	case cfg.Command != "":
		out.URL = "stdio:" + filepath.Base(cfg.Command) // without the local path
	case cfg.OpenAPI != "":
		out.URL = "openapi:" + cfg.Name
	case cfg.URL == "":
		out.URL = "builtin:" + cfg.Name
	}
	return out
}
