package auth

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/store"
)

// TestForwardedRequests sends forwarded requests to a listener that admits
// everyone. Requests of httptest come from 192.0.2.1.
func TestForwardedRequests(t *testing.T) {
	keys := &memory{}
	key := keys.add(t, "k", nil)
	open := gate(keys, nil)
	for _, header := range []string{"Forwarded", "Via", "X-Real-IP", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "x-forwarded-anything"} {
		for name, edit := range map[string]func(*http.Request){
			"alone":      set(header, "x"),
			"with a key": set(header, "x", "X-API-Key", key),
			"public":     func(r *http.Request) { r.URL.Path = "/"; r.Header.Set(header, "x") },
		} {
			w, c := ask(open, edit)
			if w.Code != 403 || c != nil || !strings.Contains(w.Body.String(), "auth.loopback") || !strings.Contains(w.Body.String(), "trustedProxies") {
				t.Errorf("%s %s: %d %s", header, name, w.Code, w.Body)
			}
		}
	}
	if w, c := ask(open, set("X-Forwarded-For", "")); w.Code != 403 || c != nil {
		t.Errorf("an empty header: %d", w.Code)
	}
	trusting := gate(keys, func(o *Options) { o.Config.TrustedProxies = []string{"192.0.2.1"} })
	sessions := (&page{t: t, gate: trusting}).signIn(`{"token":"` + localToken + `"}`)
	for name, tt := range map[string]struct {
		edit   func(*http.Request)
		status int
		caller string
	}{
		"not forwarded":            {nil, 200, "local"},
		"forwarded":                {set("X-Forwarded-For", "203.0.113.9"), 401, ""},
		"forwarded with a key":     {set("X-Forwarded-For", "203.0.113.9", "X-API-Key", key), 200, "key:"},
		"by its name with a key":   {set("Host", "junctor.example", "Via", "1.1 nginx", "X-API-Key", key), 200, "key:"},
		"by its name without":      {set("Host", "junctor.example"), 403, ""},
		"from its own page":        {set("X-Forwarded-Host", "junctor.example", "Origin", "https://junctor.example", "X-API-Key", key), 200, "key:"},
		"from another page":        {set("X-Forwarded-Host", "junctor.example", "Origin", "https://evil.example", "X-API-Key", key), 403, ""},
		"with the local session":   {set("Via", "1.1 nginx", SessionHeader, sessions.session), 401, ""},
		"of an outsider":           {func(r *http.Request) { r.RemoteAddr = "203.0.113.1:9"; set("Via", "x", "X-API-Key", key)(r) }, 403, ""},
		"public through the proxy": {func(r *http.Request) { r.URL.Path = "/"; set("Via", "1.1 nginx")(r) }, 200, "anonymous"},
	} {
		w, c := ask(trusting, tt.edit)
		if w.Code != tt.status || tt.status == 200 && !strings.HasPrefix(c.ID, tt.caller) {
			t.Errorf("%s: %d %+v %s", name, w.Code, c, w.Body)
		}
	}
	if w := (&page{t: t, gate: trusting, edit: set("Via", "1.1 nginx")}).send("POST", "/api/session", `{"token":"`+localToken+`"}`); w.Code != 401 {
		t.Errorf("the local token through a proxy: %d %s", w.Code, w.Body)
	}
}

// TestForwardingHeadersCountFromProxiesOnly checks which headers reach the
// handlers behind the gate.
func TestForwardingHeadersCountFromProxiesOnly(t *testing.T) {
	keys := &memory{}
	key := keys.add(t, "k", func(k *store.Key) {})
	var got *http.Request
	behind := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r })
	for name, tt := range map[string]struct {
		proxies          []string
		xff              string
		host, from, left string
	}{
		"no proxy":         {nil, "203.0.113.9", "127.0.0.1:8787", "192.0.2.1:1234", ""},
		"another proxy":    {[]string{"10.0.0.0/8"}, "203.0.113.9", "127.0.0.1:8787", "192.0.2.1:1234", ""},
		"the proxy":        {[]string{"192.0.2.0/24"}, "203.0.113.9", "a.example", "203.0.113.9:0", "https"},
		"a forged address": {[]string{"192.0.2.0/24"}, "6.6.6.6, 203.0.113.9", "a.example", "203.0.113.9:0", "https"},
		"two proxies":      {[]string{"192.0.2.0/24"}, "203.0.113.9, 192.0.2.7", "a.example", "203.0.113.9:0", "https"},
		"no address":       {[]string{"192.0.2.0/24"}, "unknown", "a.example", "192.0.2.1:1234", "https"},
	} {
		g := gate(keys, func(o *Options) { o.Listen, o.Config.TrustedProxies = "0.0.0.0:80", tt.proxies })
		ask(g, nil)
		got = nil
		r := newRequest()
		set("X-API-Key", key, "X-Forwarded-For", tt.xff, "X-Forwarded-Host", "a.example", "X-Forwarded-Proto", "https")(r)
		g.Wrap(behind).ServeHTTP(discard{}, r)
		if got == nil || got.Host != tt.host || got.RemoteAddr != tt.from || got.Header.Get("X-Forwarded-Proto") != tt.left || secure(got) != (tt.left != "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func newRequest() *http.Request {
	r, _ := http.NewRequest("GET", "http://127.0.0.1:8787/tools", nil) // a constant
	r.RemoteAddr = "192.0.2.1:1234"
	return r
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// TestForgedHostIsRefusedOffLoopback checks that on a listener reachable from
// other machines no Host header grants access.
func TestForgedHostIsRefusedOffLoopback(t *testing.T) {
	g := gate(&memory{}, func(o *Options) { o.Listen = "0.0.0.0:8787" })
	for _, host := range []string{"localhost:8787", "127.0.0.1:8787", "[::1]:8787", "evil.example", ""} {
		for _, edit := range []func(*http.Request){
			set("Host", host), set("Host", host, "Origin", "http://"+host), set("Host", host, "Sec-Fetch-Site", "same-origin"),
			set("Host", host, "X-Forwarded-For", "127.0.0.1"), func(r *http.Request) { r.Host, r.RemoteAddr = host, "127.0.0.1:9" },
		} {
			if w, c := ask(g, edit); w.Code != 401 && w.Code != 403 || c != nil {
				t.Errorf("host %q: %d %+v", host, w.Code, c)
			}
		}
	}
}

func TestLocalTokenFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	token, err := LocalToken(dir)
	if err != nil || len(token.Reveal()) < 26 {
		t.Fatalf("%d characters, %v", len(token.Reveal()), err)
	}
	path := filepath.Join(dir, localTokenFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if again, err := LocalToken(dir); err != nil || again != token {
		t.Errorf("another token: %v", err)
	}
	if other, _ := LocalToken(t.TempDir()); other == token {
		t.Error("two data folders have one token")
	}
	for name, spoil := range map[string]func() error{
		"readable": func() error { return os.Chmod(path, 0o644) },
		"short":    func() error { return os.WriteFile(path, []byte("x"), 0o600) },
		"symlink": func() error {
			target := filepath.Join(t.TempDir(), "elsewhere")
			if err := os.WriteFile(target, []byte(strings.Repeat("x", 26)), 0o600); err != nil {
				return err
			}
			return os.Symlink(target, path)
		},
	} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if name != "symlink" {
			if err := os.WriteFile(path, []byte(strings.Repeat("x", 26)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := LocalToken(dir); err == nil || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if page, err := PageURL("http", "0.0.0.0:80", dir); err != nil || page != "http://127.0.0.1:80/" {
		t.Errorf("off loopback: %s %v", page, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if page, err := PageURL("https", "[::1]:80", dir); err != nil || !strings.HasPrefix(page, "https://[::1]:80/?token=") {
		t.Errorf("on loopback: %s %v", page, err)
	}
}
