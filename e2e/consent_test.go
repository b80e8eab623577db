package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// TestConsentWithRealProvider consents in Chromium behind an HTTPS proxy: the
// user signs in from the consent page with a real OpenID provider, and returns
// to the page with a session.
func TestConsentWithRealProvider(t *testing.T) {
	t.Parallel()
	chromium(t)
	node, _ := suiteNode(t)
	as := startGuarded(t, 3600)
	home := newHome(t, `{"auth":{"loopback":"key"}}`)
	gw := home.serve()
	inner, err := url.Parse(gw.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(inner)
		r.SetXForwarded()
	}})
	t.Cleanup(proxy.Close)
	client := as.registerPage(proxy.URL)
	home.write("junctor.json", fmt.Sprintf(`{"publicUrl":%q,"auth":{"loopback":"key","server":true,"trustedProxies":["127.0.0.1"],"oidc":{"issuer":%q,"clientId":%q,"clientSecret":%q,"name":"Example","scopes":["openid"],
		"rules":[{"claims":{"groups":["ada-team"]},"servers":["junctor"]}]}}}`, proxy.URL, as.Issuer, client.ID, client.Secret))
	eventually(t, "the authorization server is there", func() bool {
		code, _ := gw.send("GET", "/.well-known/oauth-authorization-server", "")
		return code == http.StatusOK
	})
	var program struct {
		ID string `json:"client_id"`
	}
	if code, body := gw.send("POST", "/oauth/register", `{"client_name":"Program","redirect_uris":["http://127.0.0.1:9/callback"]}`, "Content-Type", "application/json"); code != http.StatusCreated || json.Unmarshal([]byte(body), &program) != nil {
		t.Fatal(code, body)
	}
	request := url.Values{"response_type": {"code"}, "client_id": {program.ID}, "redirect_uri": {"http://127.0.0.1:9/callback"}, "state": {"a&b=c"}, "resource": {proxy.URL + "/mcp"},
		"code_challenge": {strings.Repeat("x", 43)}, "code_challenge_method": {"S256"}}
	out := home.mustRun([]string{"E2E=" + here(t)}, node, filepath.Join(here(t), "testdata", "consent-oidc.mjs"), proxy.URL+"/oauth/authorize?"+request.Encode())
	var answer struct{ URL, Text string }
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err, out)
	}
	to, err := url.Parse(answer.URL)
	if err != nil || to.Host != "127.0.0.1:9" || to.Query().Get("code") == "" || to.Query().Get("state") != "a&b=c" || !strings.Contains(answer.Text, "ada") || strings.Contains(answer.Text, "API key") {
		t.Errorf("%+v, %v", answer, err)
	}
}
