package auth

import (
	"net/http"
	"net/url"
)

// AuthorizePath is where clients of the gateway's own authorization server
// send browsers.
const AuthorizePath = "/oauth/authorize"

const (
	// authorizationParameter of OIDCStartPath has the query of the authorization
	// request to which the browser returns after the sign-in.
	authorizationParameter = "authorization"
	// maxAuthorization bounds that query: it is kept in a cookie, of which
	// browsers take 4 KB.
	maxAuthorization = 2 << 10
)

// authorizationAddress is where a browser goes after a sign-in: to the request
// with a query, or to the page if there is none. The query comes from a link
// that anybody may have made, so it is all that can be chosen: the path is
// always the same.
func authorizationAddress(query string) string {
	values, err := url.ParseQuery(query)
	if err != nil || len(values) == 0 || len(query) > maxAuthorization {
		return "/"
	}
	return AuthorizePath + "?" + values.Encode()
}

// SignInLink returns the address that begins a sign-in at the OpenID provider
// and returns to an authorization request, and what the provider is called.
// Without TLS there is none: the session is then kept by the page.
func (g *Gate) SignInLink(r *http.Request, query url.Values) (address, provider string, ok bool) {
	o, text := g.rules.Load().oidc, query.Encode()
	if o == nil || !secure(r) || len(text) > maxAuthorization {
		return "", "", false
	}
	return OIDCStartPath + "?" + url.Values{authorizationParameter: {text}}.Encode(), o.cfg.label(), true
}
