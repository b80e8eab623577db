package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"junctor/internal/store"
	"junctor/internal/tool"
)

// memory is an in-memory key store that can be made to fail.
type memory struct {
	mu      sync.Mutex
	keys    map[string]store.Key
	lookups int
	err     error
	touched map[string]time.Time
}

func (m *memory) KeyByHash(_ context.Context, h []byte) (store.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lookups++
	if m.err != nil {
		return store.Key{}, m.err
	}
	k, ok := m.keys[string(h)]
	if !ok {
		return store.Key{}, store.ErrNotFound
	}
	return k, nil
}

func (m *memory) TouchKeys(_ context.Context, used map[string]time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.touched = used
	return m.err
}

func (m *memory) add(t testing.TB, name string, edit func(*store.Key)) string {
	t.Helper()
	secret, k := NewKey(name)
	if edit != nil {
		edit(&k)
	}
	if m.keys == nil {
		m.keys = map[string]store.Key{}
	}
	m.keys[string(k.Hash)] = k
	return secret.Reveal()
}

func gate(keys KeyStore, edit func(*Options)) *Gate {
	o := Options{
		Config: DefaultConfig(), Listen: "127.0.0.1:8787", Keys: keys, Sessions: &values{}, LocalToken: localToken,
		Log:    slog.New(slog.DiscardHandler),
		Public: func(r *http.Request) bool { return r.URL.Path == "/" || r.URL.Path == "/api/session" },
	}
	if edit != nil {
		edit(&o)
	}
	return NewGate(o)
}

// ask sends a request through the gate. It returns the response and the caller
// that reached the handler, or nil.
func ask(g *Gate, edit func(*http.Request)) (*httptest.ResponseRecorder, *tool.Caller) {
	var arrived *tool.Caller
	h := g.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c := tool.CallerFrom(r.Context())
		arrived = &c
	}))
	r := httptest.NewRequest("GET", "http://127.0.0.1:8787/tools", nil)
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w, arrived
}

func set(pairs ...string) func(*http.Request) {
	return func(r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == "Host" {
				r.Host = pairs[i+1]
			} else {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
}

// authority is an issuer of tokens.
type authority struct {
	*httptest.Server
	key  *rsa.PrivateKey
	down bool
	odd  string // an issuer to claim instead of its own URL
	path string // of the issuer, as those with several tenants have
	huge bool   // responds with an endless body
	lost bool   // the keys cannot be fetched

	asked atomic.Int64 // how often its keys were fetched
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server/", func(w http.ResponseWriter, r *http.Request) {
		a.metadata(w, r.URL.Path)
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		a.metadata(w, r.URL.Path)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		a.asked.Add(1)
		if a.lost {
			http.Error(w, "lost", 500)
			return
		}
		if a.huge {
			w.Write(bytes.Repeat([]byte(" "), maxIssuerResponse+10))
		}
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func (a *authority) metadata(w http.ResponseWriter, path string) {
	switch {
	case a.down:
		http.Error(w, "down", 500)
		return
	case path != "/.well-known/oauth-authorization-server"+a.path:
		http.Error(w, "no such tenant", 404)
		return
	}
	issuer := a.URL + a.path
	if a.odd != "" {
		issuer = a.odd
	}
	json.NewEncoder(w).Encode(map[string]string{"issuer": issuer, "jwks_uri": a.URL + "/keys"})
}

func (a *authority) token(t testing.TB, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: a.key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{"iss": a.URL, "aud": "https://junctor.example/mcp", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix()}
	for k, v := range claims {
		if v == nil {
			delete(all, k)
		} else {
			all[k] = v
		}
	}
	raw, err := jwt.Signed(signer).Claims(all).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
