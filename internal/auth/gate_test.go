package auth

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"junctor/internal/setting"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

func TestGateOnOpenLoopback(t *testing.T) {
	keys := &memory{}
	key := keys.add(t, "ci", func(k *store.Key) { k.Servers = []string{"fs"}; k.Rate = tool.Rate{Calls: 3, Per: time.Minute} })
	g := gate(keys, func(o *Options) { o.Origins = []string{"https://app.example.com"} })
	for name, tt := range map[string]struct {
		edit   func(*http.Request)
		status int
		caller string
		admin  bool
	}{
		"a program":                    {nil, 200, "local", false},
		"localhost":                    {set("Host", "localhost:8787"), 200, "local", false},
		"any loopback name":            {set("Host", "junctor.localhost:8787"), 200, "local", false},
		"IPv6":                         {set("Host", "[::1]:8787"), 200, "local", false},
		"no port":                      {set("Host", "localhost"), 200, "local", false},
		"own page without a session":   {set("Origin", "http://127.0.0.1:8787"), 200, "local", false},
		"own page reads without one":   {set("Sec-Fetch-Site", "same-origin"), 200, "local", false},
		"both headers of the own page": {set("Origin", "http://127.0.0.1:8787", "Sec-Fetch-Site", "same-origin"), 200, "local", false},
		"the token is no session":      {set(SessionHeader, localToken), 401, "", false},
		"the token is no key":          {set("Authorization", "Bearer "+localToken), 401, "", false},
		"an unknown session":           {set(SessionHeader, "AAAAAAAAAAAAAAAAAAAAAAAAAA"), 401, "", false},
		"another port's page embeds":   {set("Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"), 403, "", false},
		"another site's page embeds":   {set("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"), 403, "", false},
		"another site's page links":    {set("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), 200, "local", false},
		"typed address":                {set("Sec-Fetch-Site", "none"), 200, "local", false},
		"rebound name reads":           {set("Host", "evil.example:8787", "Sec-Fetch-Site", "same-origin"), 403, "", false},
		"rebound name":                 {set("Host", "evil.example:8787"), 403, "", false},
		"rebound name with its origin": {set("Host", "evil.example:8787", "Origin", "http://evil.example:8787"), 403, "", false},
		"foreign origin":               {set("Origin", "https://evil.example"), 403, "", false},
		"null origin":                  {set("Origin", "null"), 403, "", false},
		"another port is foreign":      {set("Origin", "http://127.0.0.1:9999"), 403, "", false},
		"WebSocket of a foreign page":  {set("Origin", "https://evil.example", "Upgrade", "websocket", "Connection", "Upgrade"), 403, "", false},
		"allowed origin":               {set("Origin", "https://app.example.com"), 200, "local", false},
		"host of an allowed origin":    {set("Host", "app.example.com"), 200, "local", false},
		"key":                          {set("Authorization", "Bearer "+key), 200, "key:ci", false},
		"key in its own header":        {set("X-API-Key", key), 200, "key:ci", false},
		"wrong key":                    {set("Authorization", "Bearer nope"), 401, "", false},
		"another scheme is no key":     {set("Authorization", "Basic abc"), 200, "local", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := ask(g, tt.edit)
			if w.Code != tt.status {
				t.Fatalf("status = %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			if tt.status == 200 && (c == nil || who(c) != tt.caller || c.Admin != tt.admin) {
				t.Errorf("caller = %+v, want %s admin=%v", c, tt.caller, tt.admin)
			}
			if tt.status != 200 && c != nil {
				t.Errorf("the request went through as %+v", c)
			}
		})
	}
	_, c := ask(g, set("X-API-Key", key))
	if len(c.Servers) != 1 || c.Rate.Calls != 3 {
		t.Errorf("the key's limits are lost: %+v", c)
	}
}

func TestGateWithKeys(t *testing.T) {
	keys := &memory{}
	old := keys.add(t, "old", func(k *store.Key) { k.Expires = time.Now().Add(-time.Hour) })
	revoked := keys.add(t, "revoked", func(k *store.Key) { k.Revoked = time.Now() })
	g := gate(keys, func(o *Options) {
		o.Listen = "0.0.0.0:8787"
		o.AdminKey = "the-admin-key-of-the-environment"
		o.Config.Keys = []KeyConfig{{Name: "filed", Key: "a-key-in-the-file-x", Rate: &setting.Rate{Calls: 5}}}
	})
	for name, tt := range map[string]struct {
		edit   func(*http.Request)
		status int
		caller string
		admin  bool
	}{
		"nothing":         {nil, 401, "", false},
		"any host":        {set("Host", "junctor.example", "X-API-Key", "a-key-in-the-file-x"), 200, "key:filed", false},
		"the environment": {set("X-API-Key", "the-admin-key-of-the-environment"), 200, "key:admin", true},
		"expired":         {set("X-API-Key", old), 401, "", false},
		"revoked":         {set("X-API-Key", revoked), 401, "", false},
		"public path":     {func(r *http.Request) { r.URL.Path = "/" }, 200, "anonymous", false},
		"public, bad key": {func(r *http.Request) { r.URL.Path = "/"; r.Header.Set("X-API-Key", "x") }, 200, "anonymous", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := ask(g, tt.edit)
			if w.Code != tt.status || tt.status == 200 && (who(c) != tt.caller || c.Admin != tt.admin) {
				t.Fatalf("status = %d, caller %+v: %s", w.Code, c, w.Body)
			}
			if tt.status == 401 && w.Header().Get("WWW-Authenticate") == "" {
				t.Error("401 without WWW-Authenticate")
			}
		})
	}
	anonymous := tool.Anonymous
	if anonymous.MaySee("anything") || anonymous.MayUse(tool.Name{Server: "a", Tool: "b"}) {
		t.Error("anonymous may do something")
	}
	closed := gate(keys, func(o *Options) { o.Config.Loopback = LoopbackKey })
	if w, _ := ask(closed, nil); w.Code != 401 {
		t.Errorf("loopback with keys lets a caller without one in: %d", w.Code)
	}
}

func TestCORS(t *testing.T) {
	g := gate(&memory{}, func(o *Options) { o.Origins = []string{"https://app.example.com"} })
	w, arrived := ask(g, func(r *http.Request) {
		r.Method = "OPTIONS"
		set("Origin", "https://app.example.com", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")(r)
	})
	if w.Code != 204 || arrived != nil || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example.com" || w.Header().Get("Access-Control-Allow-Headers") != "authorization" {
		t.Errorf("preflight: %d %v", w.Code, w.Header())
	}
	if got := w.Header().Get("Access-Control-Allow-Credentials"); got != "" {
		t.Error("another page may use the page's cookie")
	}
	w, _ = ask(g, set("Origin", "https://evil.example"))
	if w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Error("a foreign origin is allowed")
	}
	keys := &memory{}
	key := keys.add(t, "k", nil)
	any := gate(keys, func(o *Options) { o.Origins, o.Config.Loopback = []string{"*"}, LoopbackKey })
	if w, _ := ask(any, set("Origin", "https://whoever.example", "X-API-Key", key)); w.Code != 200 || w.Header().Get("Access-Control-Allow-Origin") != "https://whoever.example" {
		t.Errorf("any origin with *: %d %v", w.Code, w.Header())
	}
	// A sandboxed frame of any page has the origin null.
	for _, origins := range [][]string{{"*"}, {"null"}} {
		odd := gate(keys, func(o *Options) { o.Origins, o.Config.Loopback = origins, LoopbackKey })
		if w, _ := ask(odd, set("Origin", "null", "X-API-Key", key)); w.Code != 403 || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("null with %v: %d %v", origins, w.Code, w.Header())
		}
	}
	open := gate(keys, func(o *Options) { o.Origins = []string{"*"} }) // a debug port next to a listener that requires keys
	if w, _ := ask(open, set("Origin", "https://whoever.example")); w.Code != 403 {
		t.Errorf("any page calls an open listener: %d", w.Code)
	}
}

func TestReadyRequiresKeyOffLoopback(t *testing.T) {
	for name, tt := range map[string]struct {
		listen string
		cfg    Config
		key    bool
		ok     bool
	}{
		"loopback":     {"127.0.0.1:1", Config{}, false, true},
		"localhost":    {"localhost:1", Config{}, false, true},
		"IPv6":         {"[::1]:1", Config{}, false, true},
		"all":          {"0.0.0.0:1", Config{}, false, false},
		"empty is all": {":8787", Config{}, false, false},
		"no address":   {"nonsense", Config{}, false, false},
		"with a key":   {":8787", Config{}, true, true},
		"in the file":  {":8787", Config{Keys: []KeyConfig{{}}}, false, true},
		"an issuer":    {":8787", Config{JWT: &JWTConfig{}}, false, true},
	} {
		if err := Ready(tt.listen, tt.cfg, tt.key); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	bad := Config{
		Loopback: "maybe",
		Keys: []KeyConfig{
			{Name: "a b", Key: "short"},
			{Name: "twice", Key: "long enough but with spaces", Expires: "soon", Rate: &setting.Rate{}},
			{Name: "twice", Key: telemetry.Secret(strings.Repeat("x", 20))},
		},
		JWT: &JWTConfig{Issuer: "ftp://x", JWKSURL: "::"},
	}
	var got []string
	for _, p := range setting.Problems(bad.Validate()) {
		got = append(got, p.Key)
	}
	want := "loopback keys[0].name keys[0].key keys[1].key keys[1].expires keys[1].rate.calls keys[2].name jwt.issuer jwt.jwksUrl jwt.audience"
	if strings.Join(got, " ") != want {
		t.Errorf("problems with %s, want %s", strings.Join(got, " "), want)
	}
	good := KeyConfig{Name: "k", Key: "0123456789abcdef", Expires: "2027-01-31"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if when, err := good.Expiry(); err != nil || when.Year() != 2027 {
		t.Errorf("Expiry = %s, %v", when, err)
	}
}

// TestRulesChangeWhileRunning removes a key from the file, closes loopback and
// changes the allowed origins.
func TestRulesChangeWhileRunning(t *testing.T) {
	const filed = "a-key-in-the-file-x"
	before := DefaultConfig()
	before.Keys = []KeyConfig{{Name: "filed", Key: filed}}
	before.JWT = &JWTConfig{Issuer: "https://issuer.example", Audience: "https://me.example"}
	page := set("Origin", "https://app.example")
	g := gate(&memory{}, func(o *Options) { o.Config, o.Origins = before, []string{"https://app.example"} })
	if w, c := ask(g, set("X-API-Key", filed)); w.Code != 200 || c.Name != "filed" {
		t.Fatalf("the key: %d", w.Code)
	}
	if w, _ := ask(g, page); w.Code != 200 {
		t.Fatalf("the page: %d", w.Code)
	}
	issuer := g.rules.Load().jwt
	g.SetConfig(before, nil)
	if g.rules.Load().jwt != issuer {
		t.Error("the issuer's keys are forgotten though nothing changed")
	}
	after := DefaultConfig()
	after.Loopback = LoopbackKey
	g.SetConfig(after, nil)
	if w, _ := ask(g, set("X-API-Key", filed)); w.Code != 401 {
		t.Errorf("a key that was taken out: %d", w.Code)
	}
	if w, _ := ask(g, nil); w.Code != 401 {
		t.Errorf("closed loopback: %d", w.Code)
	}
	if w, _ := ask(g, page); w.Code != 403 {
		t.Errorf("a page that may no longer call: %d", w.Code)
	}
	if g.rules.Load().jwt != nil {
		t.Error("tokens of an issuer that was taken out are accepted")
	}
}
