package auth

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"junctor/internal/tool"
)

func TestJWTValidation(t *testing.T) {
	a := newAuthority(t)
	g := gate(&memory{}, func(o *Options) {
		o.Listen = "10.0.0.1:80"
		o.Config.JWT = &JWTConfig{Issuer: a.URL, Audience: "https://junctor.example/mcp", Scopes: []string{"tools"}, AdminScope: "admin", Rules: []JWTRule{{Scopes: []string{"tools"}}}}
	})
	with := func(claims map[string]any) func(*http.Request) {
		if _, ok := claims["scope"]; !ok {
			claims["scope"] = "tools"
		}
		return set("Authorization", "Bearer "+a.token(t, claims))
	}
	for name, tt := range map[string]struct {
		claims map[string]any
		status int
		caller string
		admin  bool
	}{
		"good":           {map[string]any{}, 200, "alice", false},
		"admin":          {map[string]any{"scope": "tools admin"}, 200, "alice", true},
		"scp list":       {map[string]any{"scope": nil, "scp": []string{"tools"}}, 200, "alice", false},
		"scp text":       {map[string]any{"scope": nil, "scp": "other tools"}, 200, "alice", false},
		"scope list":     {map[string]any{"scope": []string{"tools", "admin"}}, 200, "alice", true},
		"client":         {map[string]any{"sub": nil, "client_id": "svc"}, 200, "svc", false},
		"anonymous":      {map[string]any{"sub": nil}, 401, "", false},
		"named":          {map[string]any{"preferred_username": "Alice A."}, 200, "alice", false},
		"wrong audience": {map[string]any{"aud": "https://other.example"}, 401, "", false},
		"wrong issuer":   {map[string]any{"iss": "https://other.example"}, 401, "", false},
		"expired":        {map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, 401, "", false},
		"missing scope":  {map[string]any{"scope": "other"}, 403, "", false},
		"odd claims":     {map[string]any{"scope": 7}, 401, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := ask(g, with(tt.claims))
			if w.Code != tt.status {
				t.Fatalf("status = %d: %s", w.Code, w.Body)
			}
			kind := "sub:"
			if name == "client" { // must not be taken for a person
				kind = "client:"
			}
			if tt.status == 200 && (c.ID != kind+a.URL+"|"+tt.caller || c.Admin != tt.admin) {
				t.Errorf("caller = %+v", c)
			}
			challenge := w.Header().Get("WWW-Authenticate")
			const at = `resource_metadata="https://junctor.example/.well-known/oauth-protected-resource/mcp", scope="tools"`
			if want := map[int]string{401: `Bearer error="invalid_token", ` + at, 403: `Bearer error="insufficient_scope", ` + at}[tt.status]; challenge != want {
				t.Errorf("challenge = %q, want %q", challenge, want)
			}
		})
	}
	if w, _ := ask(g, nil); w.Header().Get("WWW-Authenticate") != `Bearer resource_metadata="https://junctor.example/.well-known/oauth-protected-resource/mcp", scope="tools"` {
		t.Errorf("challenge without credentials = %q", w.Header().Get("WWW-Authenticate"))
	}
	// Tokens with unknown keys do not flood the issuer with requests.
	other := newAuthority(t)
	asked := a.asked.Load()
	for range 50 {
		ask(g, set("Authorization", "Bearer "+other.token(t, map[string]any{"iss": a.URL})))
	}
	if n := a.asked.Load() - asked; n > 1 {
		t.Errorf("its keys were fetched %d times", n)
	}
	forged := other.token(t, map[string]any{"iss": a.URL, "scope": "tools"})
	if w, _ := ask(g, set("Authorization", "Bearer "+forged)); w.Code != 401 {
		t.Errorf("a token with another's signature opens: %d", w.Code)
	}

	w := httptest.NewRecorder()
	g.Metadata(w, httptest.NewRequest("GET", MetadataPath, nil))
	if !strings.Contains(w.Body.String(), a.URL) || !strings.Contains(w.Body.String(), "https://junctor.example/mcp") {
		t.Errorf("metadata = %s", w.Body)
	}
	w = httptest.NewRecorder()
	gate(&memory{}, nil).Metadata(w, httptest.NewRequest("GET", MetadataPath, nil))
	if w.Code != 404 {
		t.Errorf("metadata without an issuer: %d", w.Code)
	}
}

func TestUnreachableIssuer(t *testing.T) {
	a := newAuthority(t)
	cfg := JWTConfig{Issuer: a.URL, Audience: "https://junctor.example/mcp", Rules: []JWTRule{{}}}
	token := a.token(t, nil)
	a.down = true
	i := newIssuer(cfg, nil)
	for range 2 { // the second attempt sends no request
		if _, err := i.verify(t.Context(), token); tool.KindOf(err) != tool.Unavailable {
			t.Fatalf("error = %v", err)
		}
	}
	a.down, a.odd, i = false, "https://other.example", newIssuer(cfg, nil)
	if _, err := i.verify(t.Context(), token); tool.KindOf(err) != tool.Unavailable {
		t.Fatalf("metadata of another issuer: %v", err)
	}
	a.odd, i = "", newIssuer(cfg, nil)
	if _, err := i.verify(t.Context(), token); err != nil {
		t.Fatalf("after its return: %v", err)
	}
	direct := newIssuer(JWTConfig{Issuer: a.URL, Audience: cfg.Audience, JWKSURL: a.URL + "/keys", Rules: cfg.Rules}, nil)
	if _, err := direct.verify(t.Context(), token); err != nil {
		t.Errorf("with jwksUrl: %v", err)
	}
	a.path = "/tenant"
	tenant := newIssuer(JWTConfig{Issuer: a.URL + "/tenant", Audience: cfg.Audience, Rules: cfg.Rules}, nil)
	if _, err := tenant.verify(t.Context(), a.token(t, map[string]any{"iss": a.URL + "/tenant"})); err != nil {
		t.Errorf("an issuer with a path: %v", err)
	}
	a.huge = true
	greedy := newIssuer(JWTConfig{Issuer: a.URL, Audience: cfg.Audience, JWKSURL: a.URL + "/keys", Rules: cfg.Rules}, nil)
	if _, err := greedy.verify(t.Context(), token); err == nil {
		t.Error("an answer without end was read")
	}
}
