package oauth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

func pemOf(t *testing.T, key any) string {
	t.Helper()
	b, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b}))
}

func TestSignAssertion(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pub, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, []byte(pemOf(t, ec)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		key    string
		public any
	}{
		"EC": {pemOf(t, ec), &ec.PublicKey}, "a file": {file, &ec.PublicKey}, "RSA": {pemOf(t, weak), &weak.PublicKey}, "Ed25519": {pemOf(t, ed), pub},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			signed, err := signAssertion(client{ID: "me", key: tt.key, audience: "https://as.example"}, now)
			if err != nil {
				t.Fatal(err)
			}
			token, err := jwt.ParseSigned(signed, []jose.SignatureAlgorithm{jose.ES256, jose.RS256, jose.EdDSA})
			if err != nil {
				t.Fatal(err)
			}
			var claims jwt.Claims
			if err := token.Claims(tt.public, &claims); err != nil {
				t.Fatal(err)
			}
			if err := claims.Validate(jwt.Expected{Issuer: "me", Subject: "me", AnyAudience: jwt.Audience{"https://as.example"}, Time: now}); err != nil {
				t.Error(err)
			}
			if claims.ID == "" {
				t.Error("the assertion has no id")
			}
		})
	}
	for name, key := range map[string]string{"no file": "/no/such/file", "no key": "-----BEGIN NOTHING-----\n-----END NOTHING-----", "no PEM": "-----BEGIN"} {
		if _, err := signAssertion(client{ID: "me", key: key}, time.Now()); err == nil {
			t.Errorf("%s: it was signed", name)
		}
	}
}

// The token file is read each time, and invalid content is not sent.
func TestSecretOrFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	for _, want := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := secretOrFile("", file, "assertion"); err != nil || got != want {
			t.Errorf("token = %q, %v; want %q", got, err, want)
		}
	}
	for name, path := range map[string]string{"missing": file + "x", "a folder": filepath.Dir(file), "a device": "/dev/zero"} {
		if got, err := secretOrFile("", path, "assertion"); err == nil {
			t.Errorf("%s: token = %q", name, got)
		}
	}
}
