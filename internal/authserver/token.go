package authserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"junctor/internal/auth"
	"junctor/internal/store"
	"junctor/internal/tool"
)

const (
	spaceCodes = "oauth-codes"

	codeTTL = time.Minute
	// usedCodeTTL is how long a used code is stored, to detect its reuse.
	usedCodeTTL = 10 * time.Minute
	// refreshLeeway is how long a replaced refresh token still returns its
	// successor, in case a response was lost or a client refreshes in
	// parallel.
	refreshLeeway = 10 * time.Second
)

// codeRecord is the record of an authorization code.
type codeRecord struct {
	Client     string      `json:"client"`
	ClientName string      `json:"clientName"`
	ClientHost string      `json:"clientHost,omitempty"`
	Redirect   string      `json:"redirect"`
	Explicit   bool        `json:"explicit,omitempty"` // the request contained the redirect URI
	Challenge  string      `json:"challenge"`
	Resource   string      `json:"resource"`
	Person     auth.Person `json:"person"`
	Owner      string      `json:"owner"`
	Name       string      `json:"name"`
	Profile    string      `json:"profile,omitempty"`
	Issued     time.Time   `json:"issued"`

	Grant    string `json:"grant,omitempty"`    // set once the code is used
	Replayed bool   `json:"replayed,omitempty"` // set once a used code is presented again
}

// tokenForm parses the form of a request to the token or revocation endpoint.
func (s *Server) tokenForm(w http.ResponseWriter, r *http.Request) (url.Values, *protocolError) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, invalid("invalid_request", "send application/x-www-form-urlencoded")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return nil, invalid("invalid_request", "the form cannot be read")
	}
	for name, values := range r.PostForm {
		if len(values) > 1 {
			return nil, invalid("invalid_request", "the parameter "+strings.ToValidUTF8(name[:min(len(name), 40)], "")+" is given twice")
		}
	}
	return r.PostForm, nil
}

// token exchanges a code or a refresh token for tokens.
func (s *Server) token(w http.ResponseWriter, r *http.Request, issuer string) {
	form, e := s.tokenForm(w, r)
	if e != nil {
		s.refuse(w, r, "", e)
		return
	}
	id := form.Get("client_id")
	var answer map[string]any
	var err error
	switch form.Get("grant_type") {
	case "authorization_code":
		answer, e, err = s.exchange(r.Context(), form, issuer)
	case "refresh_token":
		answer, e, err = s.refresh(r.Context(), form, issuer)
	default:
		e = invalid("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
	}
	switch {
	case err != nil:
		s.unavailable(w, r, err)
	case e != nil:
		s.refuse(w, r, id, e)
	default:
		w.Header().Set("Pragma", "no-cache")
		writeJSON(w, http.StatusOK, answer)
	}
}

var errCode = invalid("invalid_grant", "the code is not valid, was used already, has expired, or was issued to another client")

// exchange redeems an authorization code. The code is consumed even if the
// request is invalid, so that it cannot be tried again.
func (s *Server) exchange(ctx context.Context, form url.Values, issuer string) (map[string]any, *protocolError, error) {
	if form.Get("client_id") == "" {
		return nil, invalid("invalid_request", "client_id is missing"), nil
	}
	name := hash(form.Get("code"))
	v, err := s.opts.Store.Value(ctx, spaceCodes, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, errCode, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var code codeRecord
	if err := json.Unmarshal(v.Data, &code); err != nil {
		return nil, nil, err
	}
	if code.Grant != "" {
		return nil, errCode, s.replayed(ctx, v, code)
	}
	code.Grant = rand.Text()
	used, err := s.putCode(ctx, v, code)
	if errors.Is(err, store.ErrConflict) { // a concurrent request has used it
		return nil, errCode, s.replayedAgain(ctx, name)
	}
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	switch verifier := form.Get("code_verifier"); {
	case s.now().Sub(code.Issued) > codeTTL || code.Client != form.Get("client_id"):
		return nil, errCode, nil
	case (code.Explicit || form.Get("redirect_uri") != "") && form.Get("redirect_uri") != code.Redirect:
		return nil, invalid("invalid_grant", "redirect_uri is not that of the authorization request"), nil
	case len(verifier) < 43 || len(verifier) > 128,
		subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(code.Challenge)) != 1:
		return nil, invalid("invalid_grant", "code_verifier does not match the code_challenge"), nil
	case form.Get("resource") != "" && form.Get("resource") != code.Resource:
		return nil, invalid("invalid_target", "resource is not that of the authorization request"), nil
	}
	if _, e := resourcePath(code.Resource, issuer); e != nil {
		return nil, e, nil // the public URL has changed
	}
	if err := s.grants.trim(ctx, code.Owner); err != nil {
		return nil, nil, err
	}
	now := s.now().UTC()
	rec := grantRecord{Person: code.Person, Grant: Grant{
		ID: code.Grant, Client: code.Client, ClientName: code.ClientName, ClientHost: code.ClientHost, Owner: code.Owner, Name: code.Name, Profile: code.Profile,
		Resource: code.Resource, Redirect: redirectName(code.Redirect), Created: now, Used: now, Expires: now.Add(grantTTL),
	}}
	secret := rand.Text() + rand.Text()
	rec.Refresh = hash(secret)
	if err := s.grants.put(ctx, rec, 0); err != nil {
		return nil, nil, err
	}
	// A replay between the two writes did not find the grant, so end it here.
	if again, err := s.opts.Store.Value(ctx, spaceCodes, name); err != nil || again.Version != used.Version {
		return nil, errCode, errors.Join(s.grants.end(ctx, rec.ID), ignoreNotFound(err))
	}
	s.extendClient(ctx, rec.Client)
	s.audit(tool.WithCaller(ctx, tool.Caller{ID: rec.Owner, Name: rec.Name}), "client.consent", rec.Grant, nil)
	answer, err := s.issue(ctx, rec, secret, issuer)
	return answer, nil, err
}

func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

func (s *Server) putCode(ctx context.Context, v store.Value, code codeRecord) (store.Value, error) {
	data, err := json.Marshal(code)
	if err != nil {
		return v, err
	}
	return s.opts.Store.PutValue(ctx, store.Value{Space: spaceCodes, Name: v.Name, Data: data, Expires: v.Expires}, v.Version)
}

// replayed ends the grant of a code that was used twice: one of its two
// holders has stolen it.
func (s *Server) replayed(ctx context.Context, v store.Value, code codeRecord) error {
	s.log.WarnContext(ctx, "authorization code used twice; its consent is revoked", "client", code.Client, "grant", code.Grant)
	if !code.Replayed {
		code.Replayed = true
		if _, err := s.putCode(ctx, v, code); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
		s.audit(ctx, "client.revoke", Grant{ID: code.Grant, Client: code.Client, ClientName: code.ClientName, Name: code.Name, Profile: code.Profile, Redirect: redirectName(code.Redirect)}, map[string]string{"reason": "authorization code used twice"})
	}
	return s.grants.end(ctx, code.Grant)
}

func (s *Server) replayedAgain(ctx context.Context, name string) error {
	v, err := s.opts.Store.Value(ctx, spaceCodes, name)
	if err != nil {
		return ignoreNotFound(err)
	}
	var code codeRecord
	if err := json.Unmarshal(v.Data, &code); err != nil {
		return err
	}
	return s.replayed(ctx, v, code)
}

var errRefresh = invalid("invalid_grant", "the refresh token is not valid, or its consent has expired or was revoked; sign in again")

// refresh exchanges a refresh token for new tokens. A token that was replaced
// before ends the consent, because it may have been stolen.
func (s *Server) refresh(ctx context.Context, form url.Values, issuer string) (map[string]any, *protocolError, error) {
	id, secret, ok := strings.Cut(form.Get("refresh_token"), ".")
	if form.Get("client_id") == "" {
		return nil, invalid("invalid_request", "client_id is missing"), nil
	}
	if !ok || id == "" || secret == "" || len(id) > 64 {
		return nil, errRefresh, nil
	}
	keys, err := s.keys.current(ctx)
	if err != nil {
		return nil, nil, err
	}
	next := keys.derive("refresh", id, secret)
	for range 20 {
		rec, version, err := s.grants.load(ctx, id)
		if errors.Is(err, errNoGrant) {
			return nil, errRefresh, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if rec.Client != form.Get("client_id") {
			return nil, errRefresh, nil
		}
		if resource := form.Get("resource"); resource != "" && resource != rec.Resource {
			return nil, invalid("invalid_target", "resource is not that of the consent"), nil
		}
		now := s.now().UTC()
		switch h := hash(secret); {
		case rec.Refresh == h:
			rec.Old = append(rec.Old, h)
			rec.Old = rec.Old[max(0, len(rec.Old)-maxReplaced):]
			rec.Refresh, rec.Rotated, rec.Used, rec.Expires = hash(next), now, now, now.Add(grantTTL)
			err := s.grants.put(ctx, rec, version)
			if errors.Is(err, store.ErrConflict) {
				continue // lost the race against another node or request
			}
			if err != nil {
				return nil, nil, err
			}
			s.extendClient(ctx, rec.Client)
		case rec.Refresh == hash(next) && now.Sub(rec.Rotated) < refreshLeeway:
		case slices.Contains(rec.Old, h):
			s.log.WarnContext(ctx, "refresh token used twice; its consent is revoked", "client", rec.Client, "grant", rec.ID)
			s.audit(ctx, "client.revoke", rec.Grant, map[string]string{"reason": "refresh token used twice"})
			return nil, errRefresh, s.grants.end(ctx, rec.ID)
		default:
			return nil, errRefresh, nil
		}
		answer, err := s.issue(ctx, rec, next, issuer)
		return answer, nil, err
	}
	return nil, nil, errors.New("the consent is being changed by too many requests")
}

// issue returns the response of the token endpoint.
func (s *Server) issue(ctx context.Context, rec grantRecord, refresh, issuer string) (map[string]any, error) {
	access, err := s.sign(ctx, rec, issuer)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"access_token": access, "token_type": "Bearer", "expires_in": int(accessTokenTTL.Seconds()),
		"refresh_token": rec.ID + "." + refresh, "scope": Scope,
	}, nil
}

// revoke ends the consent of an access or refresh token (RFC 7009). An invalid
// token is not an error.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request, issuer string) {
	form, e := s.tokenForm(w, r)
	if e == nil && form.Get("token") == "" {
		e = invalid("invalid_request", "token is missing")
	}
	if e != nil {
		s.refuse(w, r, "", e)
		return
	}
	g, err := s.grantOf(r.Context(), form.Get("token"), form.Get("client_id"), issuer)
	if err == nil && g.ID != "" {
		s.log.InfoContext(r.Context(), "consent revoked by its client", "grant", g.ID)
		s.audit(r.Context(), "client.revoke", g, map[string]string{"reason": "by the client"})
		err = s.grants.end(r.Context(), g.ID)
	}
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}

// grantOf returns the grant of a token that a client presents, or an empty
// Grant.
func (s *Server) grantOf(ctx context.Context, token, client, issuer string) (Grant, error) {
	id, secret, _ := strings.Cut(token, ".")
	access := strings.Count(token, ".") == 2
	if access {
		claims, ok, err := s.parse(ctx, token, issuer)
		if err != nil || !ok {
			return Grant{}, err
		}
		id = claims.Grant
	}
	if id == "" || len(id) > 64 {
		return Grant{}, nil
	}
	rec, _, err := s.grants.load(ctx, id)
	if errors.Is(err, errNoGrant) {
		return Grant{}, nil
	}
	if err != nil {
		return Grant{}, err
	}
	if h := hash(secret); !access && rec.Refresh != h && !slices.Contains(rec.Old, h) || rec.Client != cmp.Or(client, rec.Client) {
		return Grant{}, nil
	}
	return rec.Grant, nil
}
