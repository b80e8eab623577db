package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// resourceMeta is the protected resource metadata of a server (RFC 9728).
type resourceMeta struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// serverMeta is the metadata of an authorization server (RFC 8414, OpenID
// discovery).
type serverMeta struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Registration  string   `json:"registration_endpoint"`
	Revocation    string   `json:"revocation_endpoint"`
	Scopes        []string `json:"scopes_supported"`
	Grants        []string `json:"grant_types_supported"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
	PKCE          []string `json:"code_challenge_methods_supported"`
	DPoP          []string `json:"dpop_signing_alg_values_supported"`
	ByDocument    bool     `json:"client_id_metadata_document_supported"`
	NamesIssuer   bool     `json:"authorization_response_iss_parameter_supported"`
}

// name returns the key of registrations: the issuer, or the token endpoint if
// there is no metadata.
func (m serverMeta) name() string { return cmp.Or(m.Issuer, m.Token) }

// discovered is the result of discovery for an upstream.
type discovered struct {
	resource string // as requests name it
	scopes   []string
	meta     serverMeta
	reach    addressPolicy
	unstated bool // the endpoints are configured or guessed, not published
}

// discover finds the authorization server of an upstream. before is the issuer
// of the previous login, which is preferred if the server still lists it.
func (s *Service) discover(ctx context.Context, cfg upstream.Config, r addressPolicy, ch challenge, before string) (discovered, error) {
	own := oauthOf(cfg)
	f := discovered{resource: canonical(cfg.URL), reach: r}
	prm, err := s.resourceMeta(ctx, cfg.URL, r, ch.metadata)
	switch {
	case err == nil:
		f.resource, f.scopes = prm.Resource, cleanScopes(prm.Scopes)
	case !errors.Is(err, errNoDocument):
		return discovered{}, err
	}
	if own.AuthorizationURL != "" && own.TokenURL != "" {
		f.meta = serverMeta{Issuer: own.Issuer, Authorization: own.AuthorizationURL, Token: own.TokenURL}
		f.unstated = true
		return f, s.checkEndpoints(f.meta, r)
	}
	issuer, err := chooseIssuer(prm.Servers, own.Issuer, before)
	if err != nil {
		return discovered{}, err
	}
	legacy := issuer == ""
	if legacy { // a server of MCP version 2025-03-26 is its own authorization server
		issuer = originOf(cfg.URL)
	}
	f.meta, err = s.serverMeta(ctx, r, issuer)
	if legacy && errors.Is(err, errNoDocument) {
		// Without metadata, the endpoints have the default paths of that MCP
		// version. Registration shows whether they exist.
		f.meta, err = serverMeta{
			Authorization: issuer + "/authorize", Token: issuer + "/token", Registration: issuer + "/register", Methods: []string{"none"},
		}, nil
		f.unstated = true
	}
	if errors.Is(err, errNoDocument) {
		return discovered{}, &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf("its authorization server %s publishes no metadata", hostOf(issuer))}
	}
	if err != nil {
		return discovered{}, err
	}
	return f, s.checkEndpoints(f.meta, r)
}

// chooseIssuer selects one of the authorization servers of a resource.
func chooseIssuer(named []string, configured, before string) (string, error) {
	switch {
	case configured != "" && len(named) > 0 && !slices.ContainsFunc(named, func(n string) bool { return sameIssuer(n, configured) }):
		return "", &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf(
			"it names the authorization server %s, but oauth.issuer names a different one; correct oauth.issuer if the change is intended", hostOf(named[0]))}
	case configured != "":
		return configured, nil
	case slices.Contains(named, before) && before != "":
		return before, nil
	case len(named) > 0:
		return named[0], nil
	}
	return "", nil
}

// sameIssuer compares issuers and ignores a trailing slash.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// resourceMeta reads the metadata of a protected resource: from the URL in the
// challenge, otherwise from the well-known locations for its path and host.
func (s *Service) resourceMeta(ctx context.Context, server string, r addressPolicy, named string) (resourceMeta, error) {
	var places []string
	if named != "" {
		places = append(places, named)
	}
	u, err := url.Parse(server)
	if err != nil {
		return resourceMeta{}, err
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	if path := strings.TrimSuffix(u.EscapedPath(), "/"); path != "" {
		places = append(places, originOf(server)+wellKnown+path)
	}
	places = append(places, originOf(server)+wellKnown)
	for _, place := range places {
		var meta resourceMeta
		err := s.out.get(ctx, r, place, &meta)
		if errors.Is(err, errNoDocument) || err == nil && meta.Resource == "" {
			continue
		}
		if err != nil {
			return resourceMeta{}, unreachable("its protected resource metadata", err)
		}
		if !isFor(meta.Resource, server) {
			// A hostile server could otherwise obtain tokens for another
			// resource.
			return resourceMeta{}, &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf(
				"its protected resource metadata describes a different server (%s); tell its operator, or correct url", tool.Shorten(meta.Resource, 100))}
		}
		return meta, nil
	}
	return resourceMeta{}, errNoDocument
}

// isFor reports whether a resource identifier matches the server: the same URL,
// or a parent of it on the same host.
func isFor(resource, server string) bool {
	a, err := url.Parse(resource)
	b, errB := url.Parse(server)
	if err != nil || errB != nil || a.Fragment != "" || a.RawQuery != "" && a.RawQuery != b.RawQuery ||
		originOf(resource) != originOf(server) {
		return false
	}
	above, path := strings.TrimSuffix(a.EscapedPath(), "/"), strings.TrimSuffix(b.EscapedPath(), "/")
	return path == above || strings.HasPrefix(path, above+"/")
}

// serverMeta reads an authorization server's metadata, from each location that
// MCP defines.
func (s *Service) serverMeta(ctx context.Context, r addressPolicy, issuer string) (serverMeta, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return serverMeta{}, &tool.Error{Kind: tool.UpstreamFailed, Msg: "the URL of its authorization server is not valid", Err: err}
	}
	origin, path := originOf(issuer), strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{origin + "/.well-known/oauth-authorization-server" + path, origin + "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, origin+path+"/.well-known/openid-configuration")
	}
	for _, place := range places {
		var meta serverMeta
		err := s.out.get(ctx, r, place, &meta)
		switch {
		case errors.Is(err, errNoDocument):
			continue
		case err != nil:
			return serverMeta{}, unreachable("its authorization server's metadata", err)
		case !sameIssuer(meta.Issuer, issuer):
			return serverMeta{}, &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf(
				"the metadata of its authorization server %s names a different issuer", hostOf(issuer))}
		}
		return meta, nil
	}
	return serverMeta{}, errNoDocument
}

// checkEndpoints refuses forbidden endpoints before a request is sent or a
// browser is opened.
func (s *Service) checkEndpoints(m serverMeta, r addressPolicy) error {
	for name, endpoint := range map[string]string{
		"authorization": m.Authorization, "token": m.Token, "registration": m.Registration, "revocation": m.Revocation,
	} {
		if endpoint == "" && name != "token" {
			continue
		}
		u, err := url.Parse(endpoint)
		if err == nil {
			err = r.checkURL(u)
		}
		if err != nil {
			return unreachable("its "+name+" endpoint", err)
		}
	}
	return nil
}

// unreachable converts the error of a request to a URL that a server
// published. The login remains valid.
func unreachable(what string, err error) error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e
	}
	if bad, ok := errors.AsType[*errForbidden](err); ok {
		return &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf("%s must not be contacted: %s", what, bad.what), Err: err}
	}
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: what + " cannot be read now; nothing is lost, try again", Err: err}
}

// canonical returns the identifier of a server that publishes none: its URL
// without query and fragment.
func canonical(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	path := u.EscapedPath()
	if path == "/" {
		path = ""
	}
	return originOf(server) + path
}

// originOf returns scheme://host[:port] in lower case, without a default port.
func originOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if port := u.Port(); scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return scheme + "://" + host
}

// hostOf returns the name of a server for messages.
func hostOf(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		return tool.Shorten(u.Host, 100)
	}
	return "of an unreadable address"
}

// oauthOf returns the upstream's OAuth settings, or empty ones.
func oauthOf(cfg upstream.Config) upstream.OAuth {
	if cfg.OAuth == nil {
		return upstream.OAuth{}
	}
	return *cfg.OAuth
}
