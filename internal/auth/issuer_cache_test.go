package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"junctor/internal/tool"
)

// A token is not rejected, and a credential in use does not end, because the
// issuer's keys cannot be fetched.
func TestKeysThatCannotBeFetchedEndNoCredential(t *testing.T) {
	a := newAuthority(t)
	cfg := DefaultConfig()
	cfg.JWT = &JWTConfig{Issuer: a.URL, Audience: "https://junctor.example/mcp", Rules: []JWTRule{{}}}
	g := gate(&memory{}, func(o *Options) { o.Listen, o.Config = "10.0.0.1:80", cfg })
	token := a.token(t, nil)
	send := set("Authorization", "Bearer "+token)
	back := func() { // lets the remembered failure expire
		t.Helper()
		a.lost = false
		clear(g.rules.Load().jwt.client.Transport.(*issuerCache).kept)
		// The set of keys may report a failed fetch once more before it fetches again.
		end := time.Now().Add(time.Minute)
		for w, _ := ask(g, send); w.Code != 200; w, _ = ask(g, send) {
			if time.Now().After(end) {
				t.Fatalf("with the issuer's keys: %d: %s", w.Code, w.Body)
			}
			time.Sleep(time.Millisecond)
		}
	}

	a.lost = true
	for range 10 {
		if w, _ := ask(g, send); w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Header().Get("WWW-Authenticate"), "invalid_token") {
			t.Fatalf("without the issuer's keys: %d, %q: %s", w.Code, w.Header(), w.Body)
		}
	}
	if n := a.asked.Load(); n != 1 {
		t.Errorf("the keys were requested %d times, want once", n)
	}
	back()

	id, _, err := g.present(t.Context(), token, "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	r, use := g.inUse.bind(httptest.NewRequest("GET", "/mcp", nil), id)
	defer use.release()
	inUse := func() bool {
		g.inUse.mu.Lock()
		defer g.inUse.mu.Unlock()
		return g.inUse.known[id.credential] != nil && r.Context().Err() == nil
	}
	a.lost = true
	edited := *cfg.JWT
	edited.AdminScope = "admin"
	cfg.JWT = &edited
	g.SetConfig(cfg, nil) // forgets the issuer's keys
	g.recheck(t.Context())
	if !inUse() {
		t.Fatal("the credential ended while the issuer's keys could not be fetched")
	}
	back()
	g.recheck(t.Context())
	if !inUse() {
		t.Error("the credential ended when the issuer's keys could be fetched again")
	}
	forged := newAuthority(t).token(t, map[string]any{"iss": a.URL})
	if w, _ := ask(g, set("Authorization", "Bearer "+forged)); w.Code != 401 {
		t.Errorf("a forged token: %d", w.Code)
	}
	edited.Audience = "https://other.example"
	g.SetConfig(cfg, nil)
	g.recheck(t.Context())
	if inUse() {
		t.Error("a token for another audience is still in use")
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFailedFetchOfKeysIsRetried(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	respond := func(status int, body []byte) roundTripFunc {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
		}
	}
	for name, failure := range map[string]roundTripFunc{
		"no connection": func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
		"hangs":         func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
		"503":           respond(503, nil),
		"404":           respond(404, nil),
		"a page":        respond(200, []byte("<p>Back soon</p>")),
		"an error":      respond(200, []byte(`{"error":"temporarily_unavailable"}`)),
		"a list":        respond(200, []byte(`[]`)),
		"too large":     respond(200, make([]byte, maxIssuerResponse+1)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &authority{Server: &httptest.Server{URL: "https://issuer.example"}, key: key}
				i := newIssuer(JWTConfig{Issuer: a.URL, Audience: "https://junctor.example/mcp", JWKSURL: a.URL + "/keys", Rules: []JWTRule{{}}}, nil)
				fetches, next := 0, failure
				i.client.Transport.(*issuerCache).next = roundTripFunc(func(r *http.Request) (*http.Response, error) { fetches++; return next(r) })
				token := a.token(t, nil)
				for range 5 {
					ctx, cancel := context.WithTimeout(t.Context(), recheckTimeout)
					_, err := i.verify(ctx, token)
					cancel()
					if tool.KindOf(err) != tool.Unavailable || tool.AsError(err).RetryAfter == 0 {
						t.Fatalf("error = %v", err)
					}
				}
				if fetches != 1 {
					t.Errorf("%d requests for the keys, want one", fetches)
				}
				time.Sleep(i.client.Timeout + discoveryRetryDelay) // lets a request that hangs end
				next = respond(200, keys)
				if _, err := i.verify(t.Context(), token); err != nil {
					t.Errorf("once the keys can be fetched: %v", err)
				}
			})
		})
	}
}

func TestKeysBehindRedirect(t *testing.T) {
	a := newAuthority(t)
	moved := httptest.NewServer(http.RedirectHandler(a.URL+"/keys", http.StatusFound))
	defer moved.Close()
	i := newIssuer(JWTConfig{Issuer: a.URL, Audience: "https://junctor.example/mcp", JWKSURL: moved.URL, Rules: []JWTRule{{}}}, nil)
	if _, err := i.verify(t.Context(), a.token(t, nil)); err != nil {
		t.Error(err)
	}
}
