package auth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"junctor/internal/tool"
)

// MetadataPath is where the protected-resource metadata (RFC 9728) are served,
// for the gateway as a whole and, with a path behind it, for each endpoint.
const MetadataPath = "/.well-known/oauth-protected-resource"

// Metadata serves the protected resource metadata (RFC 9728), which names the
// authorization server. Without an issuer there is none.
func (g *Gate) Metadata(w http.ResponseWriter, r *http.Request) {
	jwt := g.rules.Load().jwt
	if jwt == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "max-age=300")
	meta := map[string]any{
		"resource":                 jwt.cfg.Audience,
		"authorization_servers":    []string{jwt.cfg.Issuer},
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "Junctor",
	}
	if len(jwt.cfg.Scopes) > 0 {
		meta["scopes_supported"] = jwt.cfg.Scopes
	}
	_ = json.NewEncoder(w).Encode(meta)
}

// challenge sets WWW-Authenticate with the URL of the metadata and the error of
// the credentials, so that a client knows whether it needs other credentials or
// more scopes.
func (g *Gate) challenge(w http.ResponseWriter, r *http.Request, why error) {
	var params []string
	switch kind := tool.KindOf(why); {
	case kind == tool.Denied:
		params = append(params, `error="insufficient_scope"`)
	case kind == tool.Unauthenticated && bearer(r) != "":
		params = append(params, `error="invalid_token"`)
	}
	if jwt := g.rules.Load().jwt; jwt != nil {
		params = append(params, fmt.Sprintf(`resource_metadata=%q`, metadataURL(jwt.cfg.Audience, r)))
		if len(jwt.cfg.Scopes) > 0 {
			params = append(params, fmt.Sprintf(`scope=%q`, strings.Join(jwt.cfg.Scopes, " ")))
		}
	}
	w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(params, ", ")))
}

// metadataURL is where the metadata are: at the address by which clients know
// this gateway, else at the one that this client used.
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
