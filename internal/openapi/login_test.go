package openapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"junctor/internal/mcpclient"
	"junctor/internal/upstream"
)

// TestPersonalLogin calls an operation with an authorization code scheme: with
// the token of the login, and again after the service has refused it.
func TestPersonalLogin(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer new" {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(w, "welcome")
	}))
	t.Cleanup(service.Close)
	write := func(servers, flows string) string {
		path := filepath.Join(t.TempDir(), "openapi.json")
		document := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"servers":[{"url":"` + servers + `"}],
			"paths":{"/me":{"get":{"operationId":"me","security":[{"person":["read"]}],"responses":{}}},
			"/all":{"get":{"operationId":"all","security":[{"person":["admin"]}],"responses":{}}}},
			"components":{"securitySchemes":{"person":{"type":"oauth2","flows":` + flows + `}}}}`
		if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const flows = `{"authorizationCode":{"authorizationUrl":"/login","tokenUrl":"https://login.example/token","scopes":{"read":"","write":"","admin":""}}}`
	var refused []int
	d := Dialer{Logins: &Logins{}, Authorize: func(_ context.Context, server string, r *http.Request, before *mcpclient.HTTPError) error {
		token := "old"
		if before != nil {
			token = "new"
			refused = append(refused, before.Status)
			if before.Credential.Reveal() != "Bearer old" || server != "s" || len(before.WWWAuthenticate) != 1 {
				t.Errorf("%s: %+v", server, before)
			}
		}
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}}
	cfg := upstream.Config{
		Name: "s", OpenAPI: write(service.URL+"/v1", flows), OAuth: &upstream.OAuth{ClientID: "c"},
		Operations: upstream.Operations{Include: []string{"me"}},
	}
	s, err := NewServer(t.Context(), d.options(cfg))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(call(t, s, "me", `{}`)); !strings.Contains(got, "welcome") || len(refused) != 1 {
		t.Errorf("%s, %v", got, refused)
	}
	got := d.Resolve(cfg)
	if got.URL != service.URL+"/v1" || got.OAuth.AuthorizationURL != service.URL+"/login" || got.OAuth.TokenURL != "https://login.example/token" ||
		!slices.Equal(got.OAuth.Scopes, []string{"read"}) || got.OAuth.ClientID != "c" {
		t.Errorf("%+v %+v", got, got.OAuth)
	}
	if cfg.OAuth.TokenURL != "" {
		t.Error("the configuration was changed")
	}
	if plain := d.Resolve(upstream.Config{Name: "p", OpenAPI: cfg.OpenAPI}); plain.URL != "" {
		t.Error("an upstream without a client has a login")
	}
}

// TestLoginWithNonce calls a service that requires a nonce in the proof of a
// bound token (DPoP) and sends it with a refusal.
func TestLoginWithNonce(t *testing.T) {
	for name, refusals := range map[string][]string{
		"at first":                {"n1"},
		"after a token's refusal": {"", "n1"},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				if r.Header.Get("DPoP") == "proof with n1" {
					_, _ = fmt.Fprint(w, "welcome")
					return
				}
				if n := min(requests, len(refusals)); refusals[n-1] != "" {
					w.Header().Set("DPoP-Nonce", refusals[n-1])
				}
				w.WriteHeader(http.StatusUnauthorized)
			}))
			t.Cleanup(service.Close)
			path := filepath.Join(t.TempDir(), "openapi.json")
			document := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"servers":[{"url":"` + service.URL + `"}],
				"paths":{"/me":{"get":{"operationId":"me","security":[{"person":[]}],"responses":{}}}},
				"components":{"securitySchemes":{"person":{"type":"openIdConnect","openIdConnectUrl":"https://login.example"}}}}`
			if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
				t.Fatal(err)
			}
			d := Dialer{Authorize: func(_ context.Context, _ string, r *http.Request, before *mcpclient.HTTPError) error {
				if before != nil {
					r.Header.Set("DPoP", "proof with "+before.Nonce)
				}
				return nil
			}}
			s, err := NewServer(t.Context(), d.options(upstream.Config{Name: "s", OpenAPI: path, OAuth: &upstream.OAuth{ClientID: "c"}}))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(call(t, s, "me", `{}`)); !strings.Contains(got, "welcome") || requests != len(refusals)+1 {
				t.Errorf("%s after %d requests", got, requests)
			}
		})
	}
}

func TestEndpointsOfForeignDocuments(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"https://login.example/token": true, "http://login.example/token": false, "https://10.0.0.1/token": false, "https://169.254.169.254/token": false,
		"https://service.example/token": true, "https://user@login.example/token": false, "/token": false, "": false,
	} {
		s, err := Parse([]byte(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"servers":[{"url":"https://service.example"}],"paths":{"/a":{"get":{}}}}`),
			Source{URL: "https://service.example/openapi.json"}, "", Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if s.mayAsk(endpoint) != want {
			t.Errorf("%q: %v", endpoint, !want)
		}
	}
}
