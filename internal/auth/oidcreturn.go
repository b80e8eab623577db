package auth

import (
	"net/http"
	"net/url"
)

// AuthorizePath is where clients of the gateway's own authorization server
// send browsers.
const AuthorizePath = "/oauth/authorize"

const (
	// authorizationParameter is the query parameter of OIDCStartPath with the
	// query of the authorization request to return to after the sign-in.
	authorizationParameter = "authorization"
	// maxAuthorization bounds that query: it is stored in a cookie, and
	// browsers limit cookies to 4 KB.
	maxAuthorization = 2 << 10
)

// authorizationAddress returns the address to which the browser returns after
// a sign-in: the authorization request with the given query, or the page if
// there is none. The query may come from an attacker's link, so it cannot
// change the path.
func authorizationAddress(query string) string {
	values, err := url.ParseQuery(query)
	if err != nil || len(values) == 0 || len(query) > maxAuthorization {
		return "/"
	}
	return AuthorizePath + "?" + values.Encode()
}

// SignInLink returns an address that starts a sign-in at the OpenID provider
// and then returns to the authorization request, and the provider's name. ok
// is false without TLS, because the page then stores the session itself, and
// if no provider is configured or the query is too long.
func (g *Gate) SignInLink(r *http.Request, query url.Values) (address, provider string, ok bool) {
	o, text := g.rules.Load().oidc, query.Encode()
	if o == nil || !secure(r) || len(text) > maxAuthorization {
		return "", "", false
	}
	return OIDCStartPath + "?" + url.Values{authorizationParameter: {text}}.Encode(), o.cfg.label(), true
}
