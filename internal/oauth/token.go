package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

const anyVersion = store.AnyVersion

// tokens is the response of a token endpoint.
type tokens struct {
	access, refresh string
	lifetime        time.Duration // 0: not stated
	scope           []string
	scoped          bool // the response has a scope
	bound           bool // the access token is bound to the client's key
}

// applyTo copies the response into a login.
func (t tokens) applyTo(rec *record, now time.Time) {
	rec.Access, rec.Obtained, rec.Expires = t.access, now.UTC(), time.Time{}
	if t.lifetime > 0 {
		rec.Expires = rec.Obtained.Add(t.lifetime)
	}
	if rec.Scheme = ""; t.bound {
		rec.Scheme = schemeDPoP
	}
	if t.refresh != "" { // a server that does not rotate sends none with a refresh
		rec.Refresh = t.refresh
	}
	switch {
	case t.scoped:
		rec.Scope = t.scope
	case rec.Scope == nil:
		rec.Scope = rec.Asked // RFC 6749: the requested scope, if omitted
	}
}

// errRefused is an OAuth error of an authorization server: it refused the request.
type errRefused struct {
	code, description string
	status            int
}

func (e *errRefused) Error() string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s %s", e.status, e.code, e.description))
}

// refusal returns the OAuth error in a response as an *errRefused. Any other
// response is a failure of the network or of the server.
func refusal(a answer) error {
	var body struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(a.body, &body) == nil && isRefusal(a.status, body.Error) {
		return &errRefused{code: body.Error, description: tool.Shorten(body.Description, 300), status: a.status}
	}
	return fmt.Errorf("HTTP %d", a.status)
}

// isRefusal reports whether an error code is an OAuth error of the
// authorization server. A proxy or a framework may respond with JSON too, for
// example {"error": "Not Found"} while the server is being deployed.
func isRefusal(status int, code string) bool {
	switch code {
	case "", "server_error", "temporarily_unavailable":
		return false
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "access_denied":
		// Codes of RFC 6749, which some servers send with another status, as 403.
		return status == http.StatusOK || status/100 == 4 && status != http.StatusTooManyRequests
	}
	switch status {
	case http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized:
		return !strings.EqualFold(code, http.StatusText(status))
	}
	return false
}

// errorCode returns an error code that is safe to show.
func errorCode(code string) string {
	for i := range len(code) {
		if c := code[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' || i > 60 {
			return "an error"
		}
	}
	return code
}

// exchange sends a request to the token endpoint.
func (s *Service) exchange(ctx context.Context, r addressPolicy, endpoint string, c client, form url.Values) (tokens, error) {
	a, err := s.post(ctx, r, endpoint, c, form)
	if err != nil {
		return tokens{}, err
	}
	if a.status != http.StatusOK {
		return tokens{}, refusal(a)
	}
	var got struct {
		Access    string          `json:"access_token"`
		Type      string          `json:"token_type"`
		Refresh   string          `json:"refresh_token"`
		ExpiresIn json.RawMessage `json:"expires_in"`
		Scope     *string         `json:"scope"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil {
		return tokens{}, fmt.Errorf("the token endpoint's response is not the expected JSON")
	}
	switch {
	case got.Access == "" && refusalIn(a.body) != "": // some servers send errors with status 200
		return tokens{}, refusal(a)
	case got.Access == "":
		return tokens{}, errors.New("the token endpoint's response contains no token")
	case !validToken(got.Access) || got.Refresh != "" && !validToken(got.Refresh):
		return tokens{}, &errRefused{code: "invalid_token_response", description: "the token endpoint returned an invalid token", status: a.status}
	case got.Type != "" && !strings.EqualFold(got.Type, "Bearer") && !(c.Bound != nil && strings.EqualFold(got.Type, schemeDPoP)):
		return tokens{}, &errRefused{code: "unsupported_token_type", status: a.status}
	}
	t := tokens{access: got.Access, refresh: got.Refresh, bound: strings.EqualFold(got.Type, schemeDPoP)}
	if seconds, err := strconv.ParseFloat(strings.Trim(string(got.ExpiresIn), `"`), 64); err == nil && seconds > 0 {
		t.lifetime = time.Duration(min(seconds, 10*365*24*3600) * float64(time.Second))
	}
	if got.Scope != nil && *got.Scope != "" {
		t.scope, t.scoped = scopesOf(*got.Scope), true
	}
	return t, nil
}

func refusalIn(body []byte) string {
	var e struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(body, &e)
	return e.Error
}

// validToken reports whether s is valid in a header. It prevents header
// injection through tokens.
func validToken(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= 64<<10
}

// post sends a form with the client's credentials.
func (s *Service) post(ctx context.Context, r addressPolicy, endpoint string, c client, form url.Values) (answer, error) {
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	switch c.Method {
	case methodBasic:
		req := http.Request{Header: header}
		req.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret))
	case methodPost:
		form.Set("client_id", c.ID)
		form.Set("client_secret", c.Secret)
	case methodKey:
		assertion, err := signAssertion(c, time.Now())
		if err != nil {
			return answer{}, err
		}
		form.Set("client_id", c.ID)
		form.Set("client_assertion_type", assertionType)
		form.Set("client_assertion", assertion)
	default:
		form.Set("client_id", c.ID)
	}
	body := []byte(form.Encode())
	if c.Bound == nil {
		return s.out.ask(ctx, r, http.MethodPost, endpoint, header, body)
	}
	target, err := url.Parse(endpoint)
	if err != nil {
		return answer{}, &errForbidden{"it is not a valid URL"}
	}
	var a answer
	for range 2 { // the server may require a nonce in the proof
		proof, err := c.dpopProof(http.MethodPost, target, "", a.nonce, time.Now())
		if err != nil {
			return answer{}, err
		}
		header.Set("DPoP", proof)
		a, err = s.out.ask(ctx, r, http.MethodPost, endpoint, header, body)
		if err != nil || a.nonce == "" || len(a.nonce) > maxNonceBytes || a.status/100 != 4 || refusalIn(a.body) != errUseNonce {
			return a, err
		}
	}
	return a, nil
}

// ownLogin obtains a token with the client's own credentials.
func (s *Service) ownLogin(ctx context.Context, cfg upstream.Config, st *state, f discovered, ch challenge, scopes []string) (*record, error) {
	now := time.Now()
	rec := &record{
		URL: cfg.URL, Resource: f.resource, Issuer: f.meta.Issuer, Token: f.meta.Token, Revocation: f.meta.Revocation,
		Reach: f.reach.json(), Client: configured(oauthOf(cfg), f.meta), Own: true, Asked: scopes, Since: now,
	}
	if err := rec.Client.bindKey(oauthOf(cfg), ch, f.meta); err != nil {
		return nil, err
	}
	t, err := s.ownTokens(ctx, cfg, rec)
	if err != nil {
		if refused, ok := asRefused(err); ok {
			return nil, &tool.Error{Kind: tool.UpstreamAuthRequired, Err: err, Msg: fmt.Sprintf(
				"its authorization server refuses the configured client (%s); check the client, key or assertion in its oauth settings", errorCode(refused.code))}
		}
		if _, known := errors.AsType[*tool.Error](err); known {
			return nil, err
		}
		return nil, unreachable("its token endpoint", err)
	}
	t.applyTo(rec, now)
	return rec, s.replaceLogin(ctx, st, rec, anyVersion)
}

// ownTokens requests tokens for a login that needs no user.
func (s *Service) ownTokens(ctx context.Context, cfg upstream.Config, rec *record) (tokens, error) {
	form, err := s.ownGrant(ctx, oauthOf(cfg), rec)
	if err != nil {
		return tokens{}, err
	}
	return s.exchange(ctx, rec.Reach.policy(), rec.Token, rec.client(cfg), form)
}

// client returns the client of a login with its configured private key.
func (r *record) client(cfg upstream.Config) client { return r.Client.withKey(cfg, r.Issuer) }

// withKey returns the client with its configured private key.
func (c client) withKey(cfg upstream.Config, issuer string) client {
	if c.Method == methodKey {
		c.key, c.audience = oauthOf(cfg).PrivateKey.Reveal(), issuer
	}
	return c
}

// grant returns the form that refreshes a login.
func (r *record) grant() url.Values {
	form := url.Values{"resource": {r.Resource}}
	if r.Own {
		form.Set("grant_type", "client_credentials")
		if len(r.Asked) > 0 {
			form.Set("scope", strings.Join(r.Asked, " "))
		}
		return form
	}
	form.Set("grant_type", "refresh_token")
	form.Set("refresh_token", r.Refresh)
	return form
}
