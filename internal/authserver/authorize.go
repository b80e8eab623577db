package authserver

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strings"
)

// authorization is a valid authorization request.
type authorization struct {
	client    client
	redirect  string
	state     string
	challenge string
	resource  string
	query     url.Values // the known parameters of the request
}

// parameters are the parameters of an authorization request. Others are
// ignored; giving one of these twice is an error.
var parameters = []string{"response_type", "client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method", "resource", "scope", "response_mode"}

// check validates an authorization request. An error with a redirect URI can be
// answered to the client; one without must not, because the address may be an
// attacker's.
func (s *Server) check(ctx context.Context, query url.Values, issuer string) (authorization, *protocolError, error) {
	a := authorization{query: url.Values{}}
	for _, name := range parameters {
		switch values := query[name]; {
		case len(values) > 1:
			return authorization{}, invalid("invalid_request", "the parameter "+name+" is given twice"), nil
		case len(values) == 1:
			if len(values[0]) > maxURI {
				return authorization{}, invalid("invalid_request", "the parameter "+name+" is too long"), nil
			}
			a.query[name] = values
		}
	}
	c, refused, err := s.client(ctx, a.query.Get("client_id"))
	if refused != nil || err != nil {
		return authorization{}, refused, err
	}
	redirect := a.query.Get("redirect_uri")
	if redirect == "" && len(c.Redirects) == 1 {
		redirect = c.Redirects[0]
	}
	if !c.allows(redirect) {
		return authorization{}, invalid("invalid_request", "the redirect URI is not one that the client registered"), nil
	}
	a.client, a.redirect, a.state = c, redirect, a.query.Get("state")
	a.challenge, a.resource = a.query.Get("code_challenge"), a.query.Get("resource")
	switch method := a.query.Get("code_challenge_method"); {
	case a.query.Get("response_type") != "code":
		return a, invalid("unsupported_response_type", "response_type must be code"), nil
	case a.query.Get("response_mode") != "" && a.query.Get("response_mode") != "query":
		return a, invalid("invalid_request", "response_mode must be query"), nil
	case a.challenge == "" || method != "S256":
		return a, invalid("invalid_request", "PKCE with code_challenge_method S256 is required"), nil
	case len(a.challenge) != 43 || strings.Trim(a.challenge, base64URL) != "":
		return a, invalid("invalid_request", "code_challenge is not a SHA-256 hash in base64url"), nil
	}
	if _, e := resourcePath(a.resource, issuer); e != nil {
		return a, e, nil
	}
	return a, nil, nil
}

const base64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// redirectURL returns the client's redirect URI with the response parameters.
func (a authorization) redirectURL(issuer string, answer url.Values) string {
	u, err := url.Parse(a.redirect)
	if err != nil {
		return issuer // cannot happen: it was checked
	}
	q := u.Query()
	for name, values := range answer {
		q[name] = values
	}
	if a.state != "" {
		q.Set("state", a.state)
	}
	q.Set("iss", issuer)
	u.RawQuery = q.Encode()
	return u.String()
}

// authorize handles the browser's request that a client initiates. It comes
// from another site, so browsers do not send the page's session cookie with
// it. The response is therefore a page that continues to the consent page
// automatically.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, issuer string) {
	a, refused, err := s.check(r.Context(), r.URL.Query(), issuer)
	if s.refuseAuthorization(w, r, issuer, a, refused, err) {
		return
	}
	s.render(w, r, http.StatusOK, "", page{Title: "Sign in", Next: ConsentPath + "?" + a.query.Encode()})
}

// refuseAuthorization responds to a request that failed the check, and reports
// whether it did.
func (s *Server) refuseAuthorization(w http.ResponseWriter, r *http.Request, issuer string, a authorization, refused *protocolError, err error) bool {
	switch {
	case err != nil:
		s.log.ErrorContext(r.Context(), "authorization server not available", "err", err)
		s.render(w, r, http.StatusServiceUnavailable, "", page{Title: "Not available", Text: "Sign-ins cannot be read or written now. Try again shortly.", Failed: true})
		return true
	case refused == nil:
		return false
	}
	s.log.WarnContext(r.Context(), "request of an OAuth client refused", "path", r.URL.Path, "client", a.client.ID, "code", refused.code, "reason", refused.text)
	if a.redirect == "" {
		s.render(w, r, http.StatusBadRequest, "", page{Title: "This sign-in cannot continue", Text: "The program that sent you here made an invalid request: " + refused.text + ".", Failed: true})
		return true
	}
	// Anyone can register a client. An error page with a link, instead of a
	// redirect, keeps deliberately invalid requests from being used as an open
	// redirect.
	s.render(w, r, http.StatusBadRequest, "", page{
		Title: "This sign-in cannot continue", Text: "The program that sent you here made an invalid request: " + refused.text + ".", Failed: true,
		Back: template.URL(a.redirectURL(issuer, url.Values{"error": {refused.code}, "error_description": {refused.text}})), Redirect: redirectName(a.redirect),
	})
	return true
}

// leave sends the browser to the client.
func (s *Server) leave(w http.ResponseWriter, to string) {
	protect(w.Header(), "", "")
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
