package authserver

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"junctor/internal/auth"
)

// accessTokenTTL is the lifetime of an access token.
const accessTokenTTL = 15 * time.Minute

// tokenType is the type of access tokens (RFC 9068). It keeps other tokens of
// this server from being accepted as access tokens.
const tokenType = "at+jwt"

// accessClaims are the claims of an access token.
type accessClaims struct {
	jwt.Claims
	Client string `json:"client_id"`
	Scope  string `json:"scope"`
	Grant  string `json:"grant"`
}

// sign creates an access token for a grant.
func (s *Server) sign(ctx context.Context, rec grantRecord, issuer string) (string, error) {
	keys, err := s.keys.current(ctx)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: keys.Keys[0].Key}, (&jose.SignerOptions{}).WithType(tokenType))
	if err != nil {
		return "", err
	}
	now := s.now()
	return jwt.Signed(signer).Claims(accessClaims{
		Claims: jwt.Claims{
			Issuer: issuer, Subject: rec.Owner, Audience: jwt.Audience{rec.Resource}, ID: rand.Text(),
			IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(accessTokenTTL)),
		},
		Client: rec.Client, Scope: Scope, Grant: rec.ID,
	}).Serialize()
}

// parse checks the signature, issuer and validity period of an access token.
// ok is false for a token that this server did not issue or that is no longer
// valid.
func (s *Server) parse(ctx context.Context, token, issuer string) (claims accessClaims, ok bool, err error) {
	t, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil || len(t.Headers) != 1 || t.Headers[0].ExtraHeaders[jose.HeaderType] != tokenType {
		return claims, false, nil
	}
	key, ok, err := s.keys.find(ctx, t.Headers[0].KeyID)
	if err != nil || !ok {
		return claims, false, err
	}
	if t.Claims(key, &claims) != nil ||
		claims.ValidateWithLeeway(jwt.Expected{Issuer: issuer, Time: s.now()}, 0) != nil || claims.Expiry == nil || claims.Grant == "" {
		return claims, false, nil
	}
	return claims, true, nil
}

// Check implements auth.Tokens.
func (s *Server) Check(ctx context.Context, token string) (auth.TokenGrant, bool, error) {
	issuer := s.opts.URL()
	if issuer == "" {
		return auth.TokenGrant{}, false, nil
	}
	claims, ok, err := s.parse(ctx, token, issuer)
	if err != nil || !ok {
		return auth.TokenGrant{}, false, err
	}
	g, err := s.Grant(ctx, claims.Grant)
	if errors.Is(err, auth.ErrNoGrant) {
		return auth.TokenGrant{}, false, nil
	}
	return g, err == nil, err
}

// Grant implements auth.Tokens.
func (s *Server) Grant(ctx context.Context, id string) (auth.TokenGrant, error) {
	issuer := s.opts.URL()
	if issuer == "" {
		return auth.TokenGrant{}, auth.ErrNoGrant
	}
	rec, err := s.grants.find(ctx, id)
	if errors.Is(err, errNoGrant) {
		return auth.TokenGrant{}, auth.ErrNoGrant
	}
	if err != nil {
		return auth.TokenGrant{}, err
	}
	path, e := resourcePath(rec.Resource, issuer)
	if e != nil {
		return auth.TokenGrant{}, auth.ErrNoGrant // the public URL has changed
	}
	return auth.TokenGrant{ID: rec.ID, Person: rec.Person, Client: rec.ClientName, Profile: rec.Profile, Path: path, Expires: rec.Expires}, nil
}

// MarkStale drops the cached grants, so that they are looked up again.
func (s *Server) MarkStale() {
	s.grants.mu.Lock()
	defer s.grants.mu.Unlock()
	clear(s.grants.known)
}
