package auth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// MetadataPath is where the protected-resource metadata (RFC 9728) are served,
// for the gateway as a whole and, with a path behind it, for each endpoint.
const MetadataPath = "/.well-known/oauth-protected-resource"

// Metadata tells a client which authorization server to go to, as MCP asks of
// a resource server. Without an issuer there is nothing to tell.
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

// challenge says in WWW-Authenticate where those metadata are.
func (g *Gate) challenge(w http.ResponseWriter, r *http.Request) {
	value := "Bearer"
	if jwt := g.rules.Load().jwt; jwt != nil {
		scheme := "http"
		if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
			scheme = "https"
		}
		value += fmt.Sprintf(` resource_metadata="%s://%s%s"`, scheme, r.Host, MetadataPath)
		if len(jwt.cfg.Scopes) > 0 {
			value += fmt.Sprintf(`, scope="%s"`, strings.Join(jwt.cfg.Scopes, " "))
		}
	}
	w.Header().Set("WWW-Authenticate", value)
}
