package app

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"junctor/internal/broker"
	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// targets shows the upstreams to the broker.
type targets struct{ app *App }

// Target returns one upstream.
func (t targets) Target(name string) (broker.Target, bool) {
	st, ok := t.app.upstreams.StatusOf(name)
	if !ok {
		return broker.Target{}, false
	}
	return t.target(st), true
}

// Targets returns all of them, by name.
func (t targets) Targets() []broker.Target {
	var list []broker.Target
	for _, st := range t.app.upstreams.Status() {
		list = append(list, t.target(st))
	}
	return list
}

func (t targets) target(st upstream.Status) broker.Target {
	cfg, _ := t.app.upstreams.Config(st.Name)
	out := broker.Target{
		Name: st.Name, Proxy: cfg.Proxy, URL: shownURL(cfg.URL),
		Available:  st.State == upstream.Connected,
		Authorized: st.State != upstream.AuthRequired,
		HasToken:   cfg.AuthorizationToken != "",
	}
	for name := range cfg.Headers {
		out.HasToken = out.HasToken || http.CanonicalHeaderKey(name) == "Authorization"
	}
	if login := t.app.login(st.Name); login.HasToken {
		out.HasToken, out.LastAuthorized = true, login.Since
	}
	switch {
	case cfg.Command != "":
		out.URL = "stdio:" + filepath.Base(cfg.Command) // no path of this machine
	case cfg.URL == "":
		out.URL = "builtin:" + cfg.Name
	}
	return out
}

// shownURL is a server's address without what may be a secret in it: the query,
// and parts of the path that look drawn by lot, with which some services tell
// their customers apart.
func shownURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	parts := strings.Split(u.EscapedPath(), "/")
	for i, part := range parts {
		if drawn(part) {
			parts[i] = telemetry.Redacted
		}
	}
	return u.Scheme + "://" + u.Host + strings.Join(parts, "/")
}

// drawn reports whether a part of a path looks like no word that a person
// chose: it is long, and letters and digits are mixed in it.
func drawn(part string) bool {
	letters, digits := 0, 0
	for i := range len(part) {
		switch c := part[i]; {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			letters++
		}
	}
	return len(part) >= 20 && digits >= 3 && letters >= 3
}
