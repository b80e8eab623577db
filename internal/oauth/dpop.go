package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"junctor/internal/mcpclient"
	"junctor/internal/upstream"
)

// Support for tokens that are bound to a key (DPoP, RFC 9449). Each request
// carries a proof for that request, signed with the key. The key is created
// for a login and stored with it.

const (
	schemeDPoP    = "DPoP"
	errUseNonce   = "use_dpop_nonce"
	maxNonceBytes = 1024
)

// bindKey creates a key for the client of a new login if the server or the
// configuration requires tokens that are bound to a key.
func (c *client) bindKey(own upstream.OAuth, ch challenge, meta serverMeta) error {
	if !ch.bound && !(own.DPoP && (len(meta.DPoP) == 0 || slices.Contains(meta.DPoP, string(jose.ES256)))) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c.Bound, err = json.Marshal(jose.JSONWebKey{Key: key})
	return err
}

// dpopProof returns the DPoP proof of a request. The access token is empty in
// requests to the token endpoint.
func (c client) dpopProof(method string, target *url.URL, access, nonce string, now time.Time) (string, error) {
	var key jose.JSONWebKey
	if err := json.Unmarshal(c.Bound, &key); err != nil {
		return "", fmt.Errorf("key of a bound token: %w", err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key.Key}, (&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt"))
	if err != nil {
		return "", fmt.Errorf("key of a bound token: %w", err)
	}
	claims := map[string]any{
		"jti": rand.Text(), "htm": method, "iat": now.Unix(),
		"htu": (&url.URL{Scheme: target.Scheme, Host: target.Host, Path: target.Path, RawPath: target.RawPath}).String(),
	}
	if access != "" {
		sum := sha256.Sum256([]byte(access))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}

// setToken sets the token of a login on a request to the server.
func (st *state) setToken(rec *record, r *http.Request) error {
	if rec.Scheme != schemeDPoP {
		r.Header.Set("Authorization", "Bearer "+rec.Access)
		return nil
	}
	st.mu.Lock()
	nonce := st.nonce
	st.mu.Unlock()
	proof, err := rec.Client.dpopProof(r.Method, r.URL, rec.Access, nonce, time.Now())
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", schemeDPoP+" "+rec.Access)
	r.Header.Set("DPoP", proof)
	return nil
}

// wantsNonce reports whether a request was refused only because its proof
// lacks the server's nonce. It stores the nonce for the next proof.
func (st *state) wantsNonce(refused *mcpclient.HTTPError) bool {
	if refused.Nonce == "" || len(refused.Nonce) > maxNonceBytes || parseChallenge(refused.WWWAuthenticate).err != errUseNonce {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.nonce = refused.Nonce
	return true
}
