package auth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"junctor/internal/tool"
)

// MetadataPath is where the protected resource metadata (RFC 9728) is served:
// for the whole gateway and, with a path appended, for each endpoint.
const MetadataPath = "/.well-known/oauth-protected-resource"

// Metadata serves the protected resource metadata (RFC 9728), which lists the
// authorization servers. It replies 404 if there are none.
func (g *Gate) Metadata(w http.ResponseWriter, r *http.Request) {
	jwt, public := g.rules.Load().jwt, g.publicURL()
	if jwt == nil && public == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "max-age=300")
	var servers []string
	resource := public + strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, MetadataPath), "/")
	meta := map[string]any{"bearer_methods_supported": []string{"header"}, "resource_name": "Junctor"}
	if public != "" {
		servers = append(servers, public)
	}
	if jwt != nil {
		servers = append(servers, jwt.cfg.Issuer)
		if public == "" || strings.HasPrefix(jwt.cfg.Audience+"/", public+"/") {
			resource = jwt.cfg.Audience // its tokens must be for it
		}
		if len(jwt.cfg.Scopes) > 0 {
			meta["scopes_supported"] = jwt.cfg.Scopes
		}
	}
	meta["resource"], meta["authorization_servers"] = resource, servers
	_ = json.NewEncoder(w).Encode(meta)
}

// publicURL is the address of the gateway's own authorization server, or "".
func (g *Gate) publicURL() string {
	if g.opts.PublicURL == nil {
		return ""
	}
	return g.opts.PublicURL()
}

// challenge sets WWW-Authenticate with the URL of the metadata and the error
// code, so that a client can tell whether it needs other credentials or more
// scopes.
func (g *Gate) challenge(w http.ResponseWriter, r *http.Request, why error) {
	var params []string
	switch kind := tool.KindOf(why); {
	case kind == tool.Denied:
		params = append(params, `error="insufficient_scope"`)
	case kind == tool.Unauthenticated && bearer(r) != "":
		params = append(params, `error="invalid_token"`)
	}
	jwt, public := g.rules.Load().jwt, g.publicURL()
	switch {
	case jwt != nil:
		params = append(params, fmt.Sprintf(`resource_metadata=%q`, metadataURL(jwt.cfg.Audience, r)))
		if len(jwt.cfg.Scopes) > 0 {
			params = append(params, fmt.Sprintf(`scope=%q`, strings.Join(jwt.cfg.Scopes, " ")))
		}
	case public != "":
		params = append(params, fmt.Sprintf(`resource_metadata=%q`, public+MetadataPath+strings.TrimSuffix(r.URL.EscapedPath(), "/")))
	}
	w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(params, ", ")))
}

// metadataURL returns the URL of the metadata: on the host of the audience if
// that is a URL, else on the host of the request.
func metadataURL(audience string, r *http.Request) string {
	if u, err := url.Parse(audience); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") {
		return u.Scheme + "://" + u.Host + MetadataPath + strings.TrimSuffix(u.EscapedPath(), "/")
	}
	scheme := "http"
	if secure(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host + MetadataPath
}
