package auth

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// TestRequestsEndWithTheirCredential holds a request open while its credential
// ends in each possible way. The gate notices within two seconds.
func TestRequestsEndWithTheirCredential(t *testing.T) {
	revoke := func(m *memory) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for h, k := range m.keys {
			k.Revoked = time.Now()
			m.keys[h] = k
		}
	}
	cfg := func(keys ...KeyConfig) Config {
		c := DefaultConfig()
		c.Keys = keys
		return c
	}
	for name, tt := range map[string]struct {
		edit func(*store.Key)
		cfg  Config
		key  string // from the file, instead of the store
		end  func(g *Gate, m *memory)
		goOn bool
	}{
		"revoked":         {end: func(_ *Gate, m *memory) { revoke(m) }},
		"expired":         {edit: func(k *store.Key) { k.Expires = time.Now().Add(time.Second) }},
		"deleted":         {end: func(_ *Gate, m *memory) { m.mu.Lock(); clear(m.keys); m.mu.Unlock() }},
		"out of the file": {cfg: cfg(KeyConfig{Name: "f", Key: "a-key-in-the-file-x"}), key: "a-key-in-the-file-x", end: func(g *Gate, _ *memory) { g.SetConfig(cfg(), nil) }},
		"fewer rights": {cfg: cfg(KeyConfig{Name: "f", Key: "a-key-in-the-file-x"}), key: "a-key-in-the-file-x", end: func(g *Gate, _ *memory) {
			g.SetConfig(cfg(KeyConfig{Name: "f", Key: "a-key-in-the-file-x", Servers: []string{"fs"}}), nil)
		}},
		"loopback closed":   {key: "none", end: func(g *Gate, _ *memory) { c := cfg(); c.Loopback = LoopbackKey; g.SetConfig(c, nil) }},
		"nothing":           {end: func(*Gate, *memory) {}, goOn: true},
		"the store is away": {end: func(_ *Gate, m *memory) { m.mu.Lock(); m.err = context.DeadlineExceeded; m.mu.Unlock() }, goOn: true},
		"another's rules": {end: func(g *Gate, _ *memory) {
			g.SetConfig(cfg(KeyConfig{Name: "other", Key: "a-key-of-somebody-else"}), nil)
		}, goOn: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys := &memory{}
				key := keys.add(t, "k", tt.edit)
				g := gate(keys, func(o *Options) {
					if tt.cfg.Keys != nil {
						o.Config = tt.cfg
					}
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go g.Run(ctx)
				begun, over := make(chan struct{}), make(chan error, 1)
				h := g.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					close(begun)
					<-r.Context().Done()
					over <- context.Cause(r.Context())
				}))
				r := httptest.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:8787/tools", nil)
				switch tt.key {
				case "":
					r.Header.Set("X-API-Key", key)
				case "none":
				default:
					r.Header.Set("X-API-Key", tt.key)
				}
				go h.ServeHTTP(httptest.NewRecorder(), r)
				<-begun
				if tt.end != nil {
					tt.end(g, keys)
				}
				select {
				case err := <-over:
					if tt.goOn || err != tool.ErrCredentialEnded {
						t.Errorf("the request ended: %v", err)
					}
				case <-time.After(2 * time.Second):
					if !tt.goOn {
						t.Error("the request goes on after two seconds")
					}
				}
				cancel()
				synctest.Wait()
				g.inUse.mu.Lock()
				defer g.inUse.mu.Unlock()
				if n := len(g.inUse.known); n != 0 {
					t.Errorf("%d credentials are kept without a user", n)
				}
			})
		})
	}
}

// grantTokens is an authorization server with one grant.
type grantTokens struct {
	mu    sync.Mutex
	grant TokenGrant
}

func (g *grantTokens) Check(ctx context.Context, _ string) (TokenGrant, bool, error) {
	grant, err := g.Grant(ctx, "")
	return grant, err == nil, nil
}

func (g *grantTokens) Grant(context.Context, string) (TokenGrant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.grant.Expires; !e.IsZero() && !time.Now().Before(e) {
		return TokenGrant{}, ErrNoGrant
	}
	return g.grant, nil
}

func (*grantTokens) MarkStale() {}

// grantChanges announces changes of grants and nothing else.
type grantChanges chan struct{}

func (grantChanges) Announce(string) {}
func (c grantChanges) Watch(_ context.Context, topic string) <-chan struct{} {
	if topic == store.TopicValues(SpaceGrants) {
		return c
	}
	return nil
}

// TestRequestsOfGrantEndOnTime checks that a client's requests end when the
// person's key or the grant expires, and not before the end of an extended
// grant. Expiries are not announced.
func TestRequestsOfGrantEndOnTime(t *testing.T) {
	for name, tt := range map[string]struct {
		key, grant, prolonged, want time.Duration
	}{
		"key":              {key: time.Minute, grant: time.Hour, want: time.Minute},
		"grant":            {key: time.Hour, grant: time.Minute, want: time.Minute},
		"grant alone":      {grant: time.Minute, want: time.Minute},
		"prolonged":        {grant: time.Minute, prolonged: time.Hour, want: time.Hour},
		"no longer than k": {key: time.Minute, grant: time.Second, prolonged: time.Hour, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now().Add(time.Millisecond) // keeps expiries apart from rechecks
				after := func(d time.Duration) time.Time {
					if d == 0 {
						return time.Time{}
					}
					return begun.Add(d)
				}
				keys, changes := &memory{}, make(grantChanges)
				key := keys.add(t, "k", func(k *store.Key) { k.Expires = after(tt.key) })
				tokens := &grantTokens{grant: TokenGrant{ID: "g", Client: "c", Path: "/mcp", Expires: after(tt.grant)}}
				g := gate(keys, func(o *Options) { o.Tokens, o.Changes = tokens, changes })
				person, _, err := g.PersonByKey(t.Context(), telemetry.Secret(key))
				if err != nil {
					t.Fatal(err)
				}
				tokens.grant.Person = person
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go g.Run(ctx)
				r := httptest.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:8787/mcp", nil)
				r.Header.Set("Authorization", "Bearer a.b.c")
				over := make(chan error, 1)
				go g.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					<-r.Context().Done()
					over <- context.Cause(r.Context())
				})).ServeHTTP(httptest.NewRecorder(), r)
				synctest.Wait()
				if tt.prolonged > 0 {
					tokens.mu.Lock()
					tokens.grant.Expires = after(tt.prolonged)
					tokens.mu.Unlock()
					changes <- struct{}{}
				}
				err = <-over // the fake clock only advances while all goroutines are blocked
				if took := time.Since(begun); err != tool.ErrCredentialEnded || took != tt.want {
					t.Errorf("the request ended after %v: %v; want %v", took, err, tt.want)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
