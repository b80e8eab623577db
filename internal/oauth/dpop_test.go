package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"junctor/internal/mcpclient"
	"junctor/internal/upstream"
)

// Each request with a bound token carries a new proof, with the nonce that the
// server requires and without the query of the URL.
func TestProofOfBoundToken(t *testing.T) {
	var c client
	if err := c.bindKey(upstream.OAuth{}, challenge{}, serverMeta{}); err != nil || c.Bound != nil {
		t.Fatalf("bound without being asked: %v", err)
	}
	if err := c.bindKey(upstream.OAuth{}, parseChallenge([]string{`DPoP resource_metadata="https://x/y"`}), serverMeta{}); err != nil {
		t.Fatal(err)
	}
	rec, st := &record{Access: "token", Scheme: schemeDPoP, Client: c}, &state{}
	if !st.wantsNonce(&mcpclient.HTTPError{Nonce: "n", WWWAuthenticate: []string{`DPoP error="use_dpop_nonce"`}}) {
		t.Error("the server's nonce is not taken up")
	}
	if st.wantsNonce(&mcpclient.HTTPError{Nonce: "n", WWWAuthenticate: []string{`DPoP error="invalid_token"`}}) {
		t.Error("a refused token counts as a missing nonce")
	}
	seen := map[any]bool{}
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://mcp.example/path?q=1#f", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.setToken(rec, r); err != nil {
			t.Fatal(err)
		}
		if got := r.Header.Get("Authorization"); got != "DPoP token" {
			t.Errorf("Authorization = %q", got)
		}
		proof, err := jwt.ParseSigned(r.Header.Get("DPoP"), []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			t.Fatal(err)
		}
		head := proof.Headers[0]
		if head.ExtraHeaders["typ"] != "dpop+jwt" || head.JSONWebKey == nil || !head.JSONWebKey.IsPublic() {
			t.Fatalf("header = %+v", head)
		}
		claims := map[string]any{}
		if err := proof.Claims(head.JSONWebKey, &claims); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte("token"))
		for name, want := range map[string]any{"htm": "POST", "htu": "https://mcp.example/path", "nonce": "n", "ath": base64.RawURLEncoding.EncodeToString(sum[:])} {
			if claims[name] != want {
				t.Errorf("%s = %v, want %v", name, claims[name], want)
			}
		}
		if seen[claims["jti"]] {
			t.Error("two proofs have the same id")
		}
		seen[claims["jti"]] = true
		if iat, _ := claims["iat"].(float64); time.Since(time.Unix(int64(iat), 0)) > time.Hour {
			t.Errorf("iat = %v", claims["iat"])
		}
	}
}
