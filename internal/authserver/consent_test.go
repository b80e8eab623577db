package authserver

import (
	"html"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"junctor/internal/auth"
)

// TestChosenProfile signs in with a key in one form and chooses a profile in
// the next.
func TestChosenProfile(t *testing.T) {
	r := newFixture(t)
	key := r.addKey("bob")
	a := r.attempt(r.newClient())
	form := a.page()
	form.Set("key", key.Reveal())
	form.Set("decision", "allow")
	status, header, body := a.submit(form, r.url)
	if status != 200 || header.Get("Location") != "" || !strings.Contains(body, "<option>reader</option>") || !strings.Contains(body, "<dd>bob</dd>") || strings.Contains(body, key.Reveal()) {
		t.Fatal(status, body)
	}
	next := fields(body)
	next.Set("decision", "allow")
	for name, change := range map[string]func(url.Values){
		"unknown profile": func(f url.Values) { f.Set("profile", "writer") },
		"other person":    func(f url.Values) { f.Set("person", `{"open":true}`) },
		"other time":      func(f url.Values) { f.Set("until", "2100-01-01T00:00:00Z") },
		"no proof":        func(f url.Values) { f.Del("proof") },
	} {
		bad := maps.Clone(next)
		bad.Set("profile", "reader")
		change(bad)
		if status, header, body := a.submit(bad, r.url); status < 400 || header.Get("Location") != "" {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	next.Set("profile", "reader")
	_, header, _ = a.submit(next, r.url)
	to, err := url.Parse(header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	_, got := r.token(a.exchange(to.Query().Get("code")))
	if status, body := r.call(got.Access); status != 200 || !strings.Contains(body, "bob via Test client admin=false profiles=[reader]") {
		t.Error(status, body)
	}
	r.advance(signInTTL + time.Second)
	if status, _, _ := a.submit(next, r.url); status != 401 {
		t.Error("an old sign-in is good:", status)
	}
}

// TestPageSession consents with the session cookie of the page, which browsers
// only send over https.
func TestPageSession(t *testing.T) {
	r := newFixture(t)
	r.key = r.addKey("alice")
	cfg, origins := r.gate.CurrentConfig()
	cfg.TrustedProxies = []string{"127.0.0.1"}
	r.gate.SetConfig(cfg, origins)
	proxied := map[string]string{"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7", "Content-Type": "application/json"}
	status, header, body := r.do("POST", "/api/session", proxied, `{"key":"`+r.key.Reveal()+`"}`)
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	if status != 200 || cookie == "" {
		t.Fatal(status, header, body)
	}
	a := r.attempt(r.newClient())
	with := map[string]string{"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7", "Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
	_, _, body = r.do("GET", ConsentPath+"?"+a.query.Encode(), with, "")
	if !strings.Contains(body, "<dd>alice</dd>") || strings.Contains(body, `name="key"`) {
		t.Fatal(body)
	}
	form := fields(body)
	form.Set("decision", "allow")
	with["Origin"] = "https://evil.example"
	if status, _, _ := r.do("POST", ConsentPath, with, form.Encode()); status != 403 {
		t.Error("a form of another site:", status)
	}
	with["Origin"] = r.url
	stranger := a.page() // a form shown to another person
	stranger.Set("decision", "allow")
	if status, header, _ := r.do("POST", ConsentPath, with, stranger.Encode()); status != 403 || header.Get("Location") != "" {
		t.Error("the form of somebody else:", status)
	}
	_, header, body = r.do("POST", ConsentPath, with, form.Encode())
	to, err := url.Parse(header.Get("Location"))
	if err != nil || to.Query().Get("code") == "" {
		t.Fatal(header, body)
	}
	_, got := r.token(a.exchange(to.Query().Get("code")))
	if status, body := r.call(got.Access); status != 200 || !strings.Contains(body, "alice via Test client admin=false") {
		t.Error(status, body)
	}
}

// TestSignInLink checks that the link to the OpenID provider is shown over
// https to people who are not signed in.
func TestSignInLink(t *testing.T) {
	r := newFixture(t)
	a := r.attempt(r.newClient())
	a.query.Set("state", `"><script>alert(1)</script>`)
	cfg, origins := r.gate.CurrentConfig()
	cfg.TrustedProxies = []string{"127.0.0.1"}
	cfg.OIDC = &auth.OIDCConfig{Issuer: "https://id.example", ClientID: "page", Name: "<Example>"}
	r.gate.SetConfig(cfg, origins)
	proxied := map[string]string{"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
	_, _, body := r.do("GET", ConsentPath+"?"+a.query.Encode(), proxied, "")
	link := regexp.MustCompile(`<a class="signin" href="([^"]+)">Sign in with &lt;Example&gt;</a>`).FindStringSubmatch(body)
	if link == nil || strings.Contains(body, "<script") || !strings.Contains(body, `name="key"`) {
		t.Fatal(body)
	}
	to, err := url.Parse(html.UnescapeString(link[1]))
	if err != nil || to.Host != "" || to.Path != auth.OIDCStartPath || to.Query().Get("authorization") != a.query.Encode() {
		t.Error(to, err)
	}
	if _, _, body := r.do("GET", ConsentPath+"?"+a.query.Encode(), nil, ""); strings.Contains(body, "Sign in with") {
		t.Error("without TLS:", body)
	}
	a.query.Set("state", strings.Repeat("a", 1990)) // does not fit into a cookie with the rest
	if status, _, body := r.do("GET", ConsentPath+"?"+a.query.Encode(), proxied, ""); status != 200 || strings.Contains(body, "Sign in with") {
		t.Error("a long request:", status, body)
	}
}
