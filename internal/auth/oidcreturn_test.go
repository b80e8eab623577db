package auth

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestSignInReturnsToAuthorization begins sign-ins on the consent page. The
// browser ends at an authorization request, with a session, and never anywhere
// but at the gateway.
func TestSignInReturnsToAuthorization(t *testing.T) {
	p := startProvider(t)
	p.claims["ada"] = Claims{"groups": []string{"eng-tools"}}
	g := startGuarded(t, p)
	encrypted := httptest.NewTLSServer(g.Config.Handler)
	t.Cleanup(encrypted.Close)
	visit := func(base, person, authorization string) (*window, int, string, *url.URL) {
		p.mu.Lock()
		p.next = person
		p.mu.Unlock()
		b := g.browser(t)
		b.client.Transport = encrypted.Client().Transport
		b.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if r.URL.Host != strings.TrimPrefix(base, "http://") && r.URL.Host != encrypted.Listener.Addr().String() && "http://"+r.URL.Host != p.URL {
				t.Errorf("%q leads to %s", authorization, r.URL)
				return http.ErrUseLastResponse
			}
			return nil
		}
		code, body, at := b.do("GET", base+OIDCStartPath+"?"+url.Values{authorizationParameter: {authorization}}.Encode(), "")
		return b, code, body, at
	}
	request := url.Values{"client_id": {"https://client.example/id"}, "redirect_uri": {"https://client.example/back?a=b&c=d"}, "state": {`"><script>`}}
	b, _, _, at := visit(encrypted.URL, "ada", request.Encode())
	if at.Path != AuthorizePath || at.RawQuery != request.Encode() {
		t.Errorf("the browser returns to %s", at)
	}
	if code, body, _ := b.do("GET", encrypted.URL+"/whoami", ""); code != http.StatusOK || !strings.Contains(body, "|ada ") {
		t.Errorf("after the sign-in: %d %s", code, body)
	}
	b, code, body, _ := visit(encrypted.URL, "eve", request.Encode()) // a person without rights
	if code != http.StatusForbidden || !strings.Contains(body, `href="`+AuthorizePath+"?client_id=") || strings.Contains(body, "<script") {
		t.Errorf("a person without rights: %d %s", code, body)
	}
	if code, _, _ := b.do("GET", encrypted.URL+"/whoami", ""); code != http.StatusUnauthorized {
		t.Errorf("a person without rights has a session: %d", code)
	}
	for _, hostile := range []string{
		"https://evil.example/", "//evil.example", `/\evil.example`, `\\evil.example`, "@evil.example", ".evil.example", ":80@evil.example/?a=b",
		"javascript:alert(1)", "a=b\r\nLocation: https://evil.example", "/../../evil", "?a=b#@evil.example", "%2f%2fevil.example", "a=%zz", strings.Repeat("a", maxAuthorization+1), "",
	} {
		if _, _, _, at := visit(encrypted.URL, "ada", hostile); at.Host != encrypted.Listener.Addr().String() || at.Path != AuthorizePath && at.Path != "/" || at.Fragment != "" || at.User != nil {
			t.Errorf("%q leads to %s", hostile, at)
		}
	}
	// Without TLS the page stores the session, so the sign-in ends there.
	if _, _, _, at := visit(g.URL, "ada", request.Encode()); at.Path != "/" || at.Query().Get("signin") == "" {
		t.Errorf("without TLS the browser returns to %s", at)
	}
}
