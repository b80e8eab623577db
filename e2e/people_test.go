package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// formAction finds where the form of the provider's page goes.
var formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)

// TestPeopleSignInWithRealProvider signs three people in on the page with a real
// OpenID provider: one with rights, an administrator, and one without a rule.
func TestPeopleSignInWithRealProvider(t *testing.T) {
	t.Parallel()
	as := startGuarded(t, 3600)
	home := newHome(t, `{"auth":{"loopback":"key"}}`)
	gw := home.serve()
	client := as.registerPage(gw.url)
	home.write("junctor.json", fmt.Sprintf(`{"auth":{"loopback":"key","oidc":{"issuer":%q,"clientId":%q,"clientSecret":%q,"name":"Example","scopes":["openid"],
		"rules":[{"claims":{"groups":["ada-team"]},"servers":["junctor"]},{"claims":{"groups":["root-team"]},"admin":true}]}}}`, as.Issuer, client.ID, client.Secret))
	until(t, "the page offers the provider", func() bool {
		_, body := gw.send("GET", "/api/session", "")
		return strings.Contains(body, `"oidc":"Example"`)
	})
	for person, want := range map[string]struct {
		status int
		config int // of a request for administrators
	}{"ada": {200, 403}, "root": {200, 200}, "eve": {403, 0}} {
		b := newBrowserWindow(t)
		at, body := b.open("GET", gw.url+"/api/oidc/start", nil)
		for range 2 { // the login, then the consent
			if m := formAction.FindStringSubmatch(body); m != nil && b.status == http.StatusOK {
				target, err := at.Parse(m[1])
				if err != nil {
					t.Fatal(err)
				}
				prompt := "login"
				if strings.Contains(body, `value="consent"`) {
					prompt = "consent"
				}
				at, body = b.open("POST", target.String(), url.Values{"prompt": {prompt}, "login": {person}, "password": {"x"}})
			}
		}
		if b.status != want.status {
			t.Errorf("%s: %d at %s: %.400s", person, b.status, at, body)
			continue
		}
		if want.status != http.StatusOK {
			continue
		}
		ticket := at.Query().Get("signin")
		_, body = b.open("POST", gw.url+"/api/session", nil, fmt.Sprintf(`{"signin":%q}`, ticket))
		var session struct{ Session string }
		if err := json.Unmarshal([]byte(body), &session); err != nil || session.Session == "" {
			t.Fatalf("%s has no session: %d %s", person, b.status, body)
		}
		if code, _ := gw.send("GET", "/api/config", "", "X-Junctor-Session", session.Session); code != want.config {
			t.Errorf("%s reads the configuration: %d, want %d", person, code, want.config)
		}
		if code, body := gw.send("POST", "/api/call", `{"tool":"junctor:calculate","arguments":{"expression":"6*7"}}`, "X-Junctor-Session", session.Session, "Content-Type", "application/json"); code != http.StatusOK || !strings.Contains(body, "42") {
			t.Errorf("%s calls a tool: %d %s", person, code, body)
		}
	}
}

// pageClient is a gateway's page as the provider knows it.
type pageClient struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// registerPage registers the page of a gateway with the provider.
func (g *guarded) registerPage(gateway string) (client pageClient) {
	g.t.Helper()
	registration := fmt.Sprintf(`{"client_name":"page","redirect_uris":[%q],"grant_types":["authorization_code"],"response_types":["code"],"token_endpoint_auth_method":"client_secret_basic"}`, gateway+"/api/oidc/callback")
	res, err := http.Post(g.Issuer+"/reg", "application/json", strings.NewReader(registration))
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&client); err != nil || client.ID == "" {
		g.t.Fatalf("registration: %s %v", res.Status, err)
	}
	return client
}

// browserWindow is a browser as far as forms and cookies go.
type browserWindow struct {
	t      *testing.T
	client *http.Client
	status int // of the last page
}

func newBrowserWindow(t *testing.T) *browserWindow {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browserWindow{t: t, client: &http.Client{Jar: jar}}
}

// open follows a link, or sends a form or a body, and returns where that leads.
func (b *browserWindow) open(method, target string, form url.Values, body ...string) (*url.URL, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctxFor(b.t), method, target, strings.NewReader(form.Encode()+strings.Join(body, "")))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	b.status = res.StatusCode
	return res.Request.URL, string(data)
}
