package oauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Names of RFC 7521, RFC 7523, RFC 8693 and the identity assertion grant.
const (
	assertionType      = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	grantJWTBearer     = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantTokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeIDToken        = "urn:ietf:params:oauth:token-type:id_token"
	typeIDJAG          = "urn:ietf:params:oauth:token-type:id-jag"
)

const (
	assertionTTL = 5 * time.Minute
	maxAssertion = 64 << 10 // bytes of a file with a token or a key
)

// badAssertion is the error of a key or token that cannot be used.
func badAssertion(format string, args ...any) error {
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf(format, args...)}
}

// signAssertion returns the signed JWT with which a client that has a key pair
// authenticates (private_key_jwt).
func signAssertion(c client, now time.Time) (string, error) {
	key, err := readKey(c.key)
	if err != nil {
		return "", err
	}
	var alg jose.SignatureAlgorithm
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		alg = map[int]jose.SignatureAlgorithm{256: jose.ES256, 384: jose.ES384, 521: jose.ES512}[k.Curve.Params().BitSize]
	case *rsa.PrivateKey:
		alg = jose.RS256
	case ed25519.PrivateKey:
		alg = jose.EdDSA
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", badAssertion("oauth.privateKey cannot sign: %v", err)
	}
	return jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: c.ID, Subject: c.ID, Audience: jwt.Audience{c.audience}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(assertionTTL)),
	}).Serialize()
}

// readKey reads a private key: PEM, or the path of a file with it.
func readKey(text string) (crypto.PrivateKey, error) {
	if !strings.Contains(text, "-----BEGIN") {
		b, err := readBounded(text)
		if err != nil {
			return nil, badAssertion("oauth.privateKey is neither PEM nor a readable file")
		}
		text = b
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, badAssertion("oauth.privateKey has no PEM block")
	}
	for _, parse := range []func([]byte) (any, error){
		x509.ParsePKCS8PrivateKey,
		func(b []byte) (any, error) { return x509.ParseECPrivateKey(b) },
		func(b []byte) (any, error) { return x509.ParsePKCS1PrivateKey(b) },
	} {
		if key, err := parse(block.Bytes); err == nil {
			return key, nil
		}
	}
	return nil, badAssertion("oauth.privateKey is not a supported private key; use PKCS #8, SEC 1 or PKCS #1, without a password")
}

// readBounded reads a small file.
func readBounded(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxAssertion {
		return "", errors.New("not a small file")
	}
	b, err := os.ReadFile(path)
	return string(b), err
}

// secretOrFile returns a token from the configuration or from a file. The file
// is read each time because such tokens are replaced often.
func secretOrFile(value, path, key string) (string, error) {
	if value == "" && path != "" {
		text, err := readBounded(path)
		if err != nil {
			return "", badAssertion("the file of oauth.%s cannot be read: %v", key, err)
		}
		value = text
	}
	value = strings.TrimSpace(value)
	if !validToken(value) {
		return "", badAssertion("oauth.%s contains no token", key)
	}
	return value, nil
}

// ownGrant returns the form that requests a token without a user.
func (s *Service) ownGrant(ctx context.Context, own upstream.OAuth, rec *record) (url.Values, error) {
	form := rec.grant()
	if own.Grant != upstream.JWTBearer {
		return form, nil
	}
	assertion, err := s.assertion(ctx, own, rec)
	if err != nil {
		return nil, err
	}
	form.Set("grant_type", grantJWTBearer)
	form.Set("assertion", assertion)
	return form, nil
}

// assertion returns the token that identifies the workload, or a user whose
// identity provider decides about access.
func (s *Service) assertion(ctx context.Context, own upstream.OAuth, rec *record) (string, error) {
	idp := own.IdentityProvider
	if idp == nil {
		return secretOrFile(own.Assertion.Reveal(), own.AssertionFile, "assertion")
	}
	idToken, err := secretOrFile(idp.IDToken.Reveal(), idp.IDTokenFile, "identityProvider.idToken")
	if err != nil {
		return "", err
	}
	c := client{ID: idp.ClientID, Secret: idp.ClientSecret.Reveal(), Method: methodNone}
	if c.Secret != "" {
		c.Method = methodBasic
	}
	form := url.Values{
		"grant_type": {grantTokenExchange}, "requested_token_type": {typeIDJAG},
		"subject_token": {idToken}, "subject_token_type": {typeIDToken},
		"audience": {rec.Issuer}, "resource": {rec.Resource},
	}
	if len(rec.Asked) > 0 {
		form.Set("scope", strings.Join(rec.Asked, " "))
	}
	a, err := s.post(ctx, rec.Reach.policy(), idp.TokenURL, c, form)
	if err != nil {
		return "", unreachable("the identity provider's token endpoint", err)
	}
	if a.status != http.StatusOK {
		err := refusal(a)
		if refused, ok := asRefused(err); ok {
			return "", &tool.Error{Kind: tool.UpstreamAuthRequired, Err: err, Msg: fmt.Sprintf("the identity provider denies access to it (%s); check oauth.identityProvider", errorCode(refused.code))}
		}
		return "", unreachable("the identity provider's token endpoint", err)
	}
	var got struct {
		Token string `json:"access_token"`
		Type  string `json:"issued_token_type"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil || !validToken(got.Token) || got.Type != typeIDJAG {
		return "", badAssertion("the identity provider returned a token that is not an identity assertion (%s)", typeIDJAG)
	}
	return got.Token, nil
}
