package authserver

import (
	"context"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/store"
)

// TestBadAuthorizationRequests checks that the person gets an error page, with
// a link to the client only if the redirect URI is valid.
func TestBadAuthorizationRequests(t *testing.T) {
	r := newFixture(t)
	client := r.newClient()
	for name, tt := range map[string]struct {
		change url.Values
		code   string // of the response to the client; empty for none
		text   string
	}{
		"unknown client":          {url.Values{"client_id": {"client-nonsense"}}, "", "not registered"},
		"no client":               {url.Values{"client_id": nil}, "", "client_id is missing"},
		"other redirect":          {url.Values{"redirect_uri": {"https://evil.example/callback"}}, "", "redirect URI"},
		"longer redirect":         {url.Values{"redirect_uri": {redirectURI + "/more"}}, "", "redirect URI"},
		"redirect with a query":   {url.Values{"redirect_uri": {redirectURI + "?a=b"}}, "", "redirect URI"},
		"redirect in upper case":  {url.Values{"redirect_uri": {strings.Replace(redirectURI, "client", "CLIENT", 1)}}, "", "redirect URI"},
		"two redirects":           {url.Values{"redirect_uri": {redirectURI, "https://evil.example/"}}, "", "given twice"},
		"endless state":           {url.Values{"state": {strings.Repeat("x", 5000)}}, "", "too long"},
		"implicit":                {url.Values{"response_type": {"token"}}, "unsupported_response_type", ""},
		"no PKCE":                 {url.Values{"code_challenge": nil, "code_challenge_method": nil}, "invalid_request", ""},
		"plain PKCE":              {url.Values{"code_challenge_method": {"plain"}}, "invalid_request", ""},
		"PKCE without a method":   {url.Values{"code_challenge_method": nil}, "invalid_request", ""},
		"short challenge":         {url.Values{"code_challenge": {"abc"}}, "invalid_request", ""},
		"no resource":             {url.Values{"resource": nil}, "invalid_target", ""},
		"foreign resource":        {url.Values{"resource": {"https://other.example/mcp"}}, "invalid_target", ""},
		"resource with a query":   {url.Values{"resource": {r.url + "/mcp?x=1"}}, "invalid_target", ""},
		"resource with dots":      {url.Values{"resource": {r.url + "/mcp/../api"}}, "invalid_target", ""},
		"resource of a user":      {url.Values{"resource": {strings.Replace(r.url, "//", "//user@", 1)}}, "invalid_target", ""},
		"resource, longer host":   {url.Values{"resource": {r.url + ".evil.example/"}}, "invalid_target", ""},
		"fragment as an answer":   {url.Values{"response_mode": {"fragment"}}, "invalid_request", ""},
		"resource without a host": {url.Values{"resource": {"/mcp"}}, "invalid_target", ""},
	} {
		a := r.attempt(client)
		maps.Copy(a.query, tt.change)
		for key, values := range tt.change {
			if values == nil {
				delete(a.query, key)
			}
		}
		for _, path := range []string{AuthorizePath, ConsentPath} {
			status, header, body := r.do("GET", path+"?"+a.query.Encode(), nil, "")
			link := ""
			if m := regexp.MustCompile(`<a href="(https://client.example/[^"]*)"`).FindStringSubmatch(body); m != nil {
				link = html.UnescapeString(m[1])
			}
			to, err := url.Parse(link)
			if err != nil {
				t.Fatal(err)
			}
			q := to.Query()
			if status != 400 || header.Get("Location") != "" {
				t.Errorf("%s: %d %v", name, status, header)
			}
			switch {
			case tt.code == "" && (link != "" || strings.Contains(body, "href") || !strings.Contains(body, tt.text)):
				t.Errorf("%s: %s", name, body)
			case tt.code != "" && (to.Host != "client.example" || q.Get("error") != tt.code || q.Get("state") != "the state" || q.Get("iss") != r.url || q.Get("error_description") == ""):
				t.Errorf("%s: %v", name, q)
			}
		}
	}
	if log := r.log.String(); strings.Count(log, "request of an OAuth client refused") < 40 {
		t.Error("not every refusal is in the log")
	}
}

func TestBadTokenRequests(t *testing.T) {
	r := newFixture(t)
	r.key = r.addKey("alice")
	client, other := r.newClient(), r.newClient()
	a := r.attempt(client)
	for name, tt := range map[string]struct {
		change url.Values
		code   string
	}{
		"wrong verifier":      {url.Values{"code_verifier": {strings.Repeat("x", 43)}}, "invalid_grant"},
		"no verifier":         {url.Values{"code_verifier": nil}, "invalid_grant"},
		"short verifier":      {url.Values{"code_verifier": {"x"}}, "invalid_grant"},
		"mismatched redirect": {url.Values{"redirect_uri": {"https://client.example/other"}}, "invalid_grant"},
		"no redirect":         {url.Values{"redirect_uri": nil}, "invalid_grant"},
		"another client":      {url.Values{"client_id": {other}}, "invalid_grant"},
		"foreign resource":    {url.Values{"resource": {"https://other.example/mcp"}}, "invalid_target"},
	} {
		form := a.exchange(a.consent(r.key).Get("code"))
		good := maps.Clone(form)
		maps.Copy(form, tt.change)
		if status, got := r.token(form); status != 400 || got.Error != tt.code || got.Access != "" || got.Text == "" {
			t.Errorf("%s: %d %+v", name, status, got)
		}
		// The code is consumed.
		if status, got := r.token(good); status != 400 || got.Error != "invalid_grant" {
			t.Errorf("%s, again: %d %+v", name, status, got)
		}
	}
	form := a.exchange(a.consent(r.key).Get("code"))
	r.advance(codeTTL + time.Second)
	if status, got := r.token(form); status != 400 || got.Error != "invalid_grant" {
		t.Error("an old code:", status, got)
	}
	for name, form := range map[string]url.Values{
		"unsupported_grant_type": {"grant_type": {"password"}, "username": {"alice"}, "password": {"x"}, "client_id": {client}},
		"invalid_grant":          {"grant_type": {"authorization_code"}, "code": {"nonsense"}, "client_id": {client}},
		"invalid_request":        {"grant_type": {"authorization_code"}, "code": {"nonsense"}},
	} {
		if status, got := r.token(form); status != 400 || got.Error != name {
			t.Errorf("%s: %d %+v", name, status, got)
		}
	}
	if status, _, body := r.form(TokenPath, url.Values{"grant_type": {"a", "b"}}); status != 400 || !strings.Contains(body, "given twice") {
		t.Error(status, body)
	}
	if status, _, body := r.do("POST", TokenPath, map[string]string{"Content-Type": "application/json"}, "{}"); status != 400 {
		t.Error(status, body)
	}
	if status, _, _ := r.form(TokenPath, url.Values{"grant_type": {strings.Repeat("x", 100_000)}}); status != 400 {
		t.Error("an endless form:", status)
	}
	if all, err := List(t.Context(), r.store); err != nil || len(all) != 0 {
		t.Error("there are consents:", all, err)
	}
}

func TestReplayedCodeEndsItsConsent(t *testing.T) {
	r := newFixture(t)
	r.key = r.addKey("alice")
	a := r.attempt(r.newClient())
	form := a.exchange(a.consent(r.key).Get("code"))
	status, got := r.token(form)
	if status != 200 {
		t.Fatal(got)
	}
	if status, again := r.token(form); status != 400 || again.Error != "invalid_grant" {
		t.Error(status, again)
	}
	if status, _ := r.call(got.Access); status != 401 {
		t.Error("the first token has survived")
	}
	// Of many concurrent exchanges at most one gets tokens, and those are
	// revoked.
	form = a.exchange(a.consent(r.key).Get("code"))
	var wg sync.WaitGroup
	var mu sync.Mutex
	var won []tokens
	for range 20 {
		wg.Go(func() {
			status, got := r.token(form)
			mu.Lock()
			defer mu.Unlock()
			if status == 200 {
				won = append(won, got)
			}
		})
	}
	wg.Wait()
	if len(won) > 1 {
		t.Error(len(won), "requests got tokens")
	}
	for _, got := range won {
		if status, _ := r.call(got.Access); status != 401 {
			t.Error("a token of a replayed code is good")
		}
	}
	if all, err := List(t.Context(), r.store); err != nil || len(all) != 0 {
		t.Error("there are consents:", all, err)
	}
}

func TestBadConsents(t *testing.T) {
	r := newFixture(t)
	r.key = r.addKey("alice")
	a := r.attempt(r.newClient())
	good := func() url.Values {
		form := a.page()
		form.Set("key", r.key.Reveal())
		form.Set("decision", "allow")
		return form
	}
	for _, origin := range []string{"https://evil.example", "null", "", "http://localhost:1"} {
		status, header, body := a.submit(good(), origin)
		if status != 403 || header.Get("Location") != "" {
			t.Errorf("a form of %q: %d %s", origin, status, body)
		}
	}
	form := good()
	form.Set("form", "nonsense")
	if status, header, _ := a.submit(form, r.url); status != 403 || header.Get("Location") != "" {
		t.Error("a form without its token:", status)
	}
	form = good()
	form.Set("state", "another") // the form of one request with the parameters of another
	if status, header, _ := a.submit(form, r.url); status != 403 || header.Get("Location") != "" {
		t.Error("a form of another request:", status)
	}
	form = good()
	form.Set("key", "jct_nonsense")
	if status, header, body := a.submit(form, r.url); status != 401 || header.Get("Location") != "" || !strings.Contains(body, "unknown, expired or revoked") || strings.Contains(body, "jct_nonsense") {
		t.Error("a wrong key:", status, body)
	}
	form = good()
	form.Set("decision", "cancel")
	form.Del("key")
	_, header, _ := a.submit(form, r.url)
	if to := header.Get("Location"); !strings.HasPrefix(to, redirectURI+"?") || !strings.Contains(to, "error=access_denied") || !strings.Contains(to, "state=the+state") || strings.Contains(to, "code=") {
		t.Error("cancelled:", to)
	}
	if codes, err := r.store.Values(t.Context(), spaceCodes); err != nil || len(codes) != 0 {
		t.Error("codes were issued:", len(codes), err)
	}
}

func TestRegistration(t *testing.T) {
	r := newFixture(t)
	for uri, ok := range map[string]bool{
		"https://client.example/callback": true, "http://127.0.0.1/callback": true, "http://localhost:3334/oauth/callback": true, "http://[::1]/cb": true,
		"cursor://anysphere.cursor-mcp/oauth/callback": true, "com.example.app:/cb": true,
		"http://client.example/callback": false, "javascript:alert(1)": false, "data:text/html,x": false, "file:///etc/passwd": false,
		"https://client.example/#x": false, "https://user@client.example/": false, "/callback": false, "": false, "https:///x": false,
		"https://client.example/a b": false, "https://client.example/;script-src": false, "https://" + strings.Repeat("x", 3000) + "/": false,
	} {
		if err := (registration{Redirects: []string{uri}}).check(); (err == nil) != ok {
			t.Errorf("%q: %v", uri, err)
		}
	}
	for metadata, code := range map[string]string{
		`{}`: "invalid_redirect_uri", `[]`: "invalid_client_metadata", `{"redirect_uris":["https://a.example/"],"grant_types":["client_credentials"]}`: "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"response_types":["token"]}`:                         "invalid_client_metadata",
		`{"redirect_uris":[` + strings.Repeat(`"https://a.example/",`, 20) + `"https://b.example/"]}`: "invalid_redirect_uri",
	} {
		if status, got := r.register(metadata); status != 400 || got["error"] != code {
			t.Errorf("%s: %d %v", metadata, status, got)
		}
	}
	if status, got := r.register(`{"client_name":"` + strings.Repeat("x", 20_000) + `"}`); status != 413 {
		t.Error("too large:", status, got)
	}
	status, got := r.register(`{"client_name":"  <b>Bad\u202e\u0007 name` + strings.Repeat(" long", 100) + `","redirect_uris":["https://a.example/"],"token_endpoint_auth_method":"client_secret_basic"}`)
	if name, _ := got["client_name"].(string); status != 201 || len(name) > 300 || strings.ContainsAny(name, "\u202e\a") || got["client_secret"] != nil || got["token_endpoint_auth_method"] != "none" {
		t.Error(status, got)
	}
	values, err := r.store.Values(t.Context(), spaceClients)
	if err != nil || len(values) != 1 || time.Until(values[0].Expires) > unusedClientTTL {
		t.Error(values, err)
	}
	// A flood from one address is refused.
	refused := 0
	for range 40 {
		if status, _ := r.register(`{"redirect_uris":["https://a.example/"]}`); status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 10 {
		t.Errorf("%d of 40 registrations were refused", refused)
	}
}

func TestRegistrationsAreBounded(t *testing.T) {
	r := newFixture(t)
	for i := range maxClients {
		_, err := r.store.PutValue(t.Context(), store.Value{Space: spaceClients, Name: fmt.Sprint(i), Data: []byte(`{}`), Expires: time.Now().Add(usedClientTTL)}, 0)
		if err != nil {
			t.Fatal(err)
		}
	}
	if status, got := r.register(`{"redirect_uris":["https://a.example/"]}`); status != http.StatusTooManyRequests {
		t.Error(status, got)
	}
}

func TestLoopbackRedirects(t *testing.T) {
	c := client{Redirects: []string{"http://127.0.0.1/callback", "http://localhost:3334/cb?x=1", "https://a.example:8443/cb"}}
	for uri, want := range map[string]bool{
		"http://127.0.0.1/callback": true, "http://127.0.0.1:45671/callback": true, "http://localhost:9/cb?x=1": true, "https://a.example:8443/cb": true,
		"http://127.0.0.1:45671/callback/": false, "http://localhost:45671/callback": false, "http://127.0.0.2:1/callback": false,
		"https://127.0.0.1/callback": false, "http://localhost:9/cb?x=2": false, "https://a.example/cb": false, "https://a.example:9/cb": false, "": false,
	} {
		if c.allows(uri) != want {
			t.Errorf("%q: %v", uri, !want)
		}
	}
}

func TestClientDocuments(t *testing.T) {
	r := newFixture(t)
	r.key = r.addKey("alice")
	const id = "https://client.example/metadata.json"
	fetched := 0
	document := ""
	r.opts.Fetch = func(_ context.Context, target string, limit int64) ([]byte, error) {
		fetched++
		if target != id && !strings.HasPrefix(target, id+"?") || limit != maxDocument {
			t.Error(target, limit)
		}
		if document == "" {
			return nil, errors.New("answered with too many bytes")
		}
		return []byte(document), nil
	}
	for _, bad := range []string{"http://client.example/metadata.json", "https://client.example/", "https://client.example", "https://user@client.example/x", "https://client.example/x#y", "https://client.example/../x", "ftp://client.example/x"} {
		if _, e, _ := r.client(t.Context(), bad); e == nil || e.code != "invalid_client" {
			t.Errorf("%q: %v", bad, e)
		}
	}
	if fetched != 0 {
		t.Error("an invalid address was fetched")
	}
	for i, text := range []string{
		"", "no JSON", `{"client_id":"https://other.example/metadata.json","redirect_uris":["` + redirectURI + `"]}`,
		`{"client_id":"%s"}`, `{"client_id":"%s","redirect_uris":["javascript:alert(1)"]}`,
		`{"client_id":"%s","redirect_uris":["` + redirectURI + `"],"client_secret":"x"}`,
		`{"client_id":"%s","redirect_uris":["` + redirectURI + `"],"token_endpoint_auth_method":"client_secret_post"}`,
	} {
		own := fmt.Sprint(id, "?", i)
		document = strings.ReplaceAll(text, "%s", own)
		if c, e, err := r.client(t.Context(), own); e == nil || err != nil {
			t.Errorf("%s: %v, %v", document, c, err)
		}
	}
	document = `{"client_id":"` + id + `","client_name":"Documented","redirect_uris":["` + redirectURI + `"]}`
	before := fetched
	a := r.attempt(id)
	status, got := r.token(a.exchange(a.consent(r.key).Get("code")))
	if status != 200 || fetched != before+1 {
		t.Fatal(status, got, fetched-before)
	}
	if _, _, body := r.do("GET", ConsentPath+"?"+a.query.Encode(), nil, ""); !strings.Contains(body, "<dd>client.example</dd>") || !strings.Contains(body, "Documented") {
		t.Error(body)
	}
	all, err := List(t.Context(), r.store)
	if err != nil || !slices.ContainsFunc(all, func(g Grant) bool { return g.ClientHost == "client.example" }) {
		t.Error(all, err)
	}
}

func TestForeignTokens(t *testing.T) {
	r := newFixture(t)
	_, good := r.signIn()
	foreign := newFixture(t)
	foreign.opts.URL = r.opts.URL // the same issuer with other keys
	_, forged := foreign.signIn()
	parts := strings.Split(good.Access, ".")
	for name, token := range map[string]string{
		"foreign": forged.Access, "no signature": parts[0] + "." + parts[1] + ".", "changed": parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])),
		"not signed": "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0." + parts[1] + ".", "refresh": good.Refresh,
	} {
		if status, body := r.call(token); status != 401 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, body := r.call(good.Access); status != 200 {
		t.Error(status, body)
	}
}

func TestTurnedOff(t *testing.T) {
	r := newFixture(t)
	_, got := r.signIn()
	r.opts.URL = func() string { return "" }
	for _, path := range []string{MetadataPath, KeysPath, AuthorizePath, ConsentPath} {
		if status, _, _ := r.do("GET", path, nil, ""); status != 404 {
			t.Error(path, status)
		}
	}
	if status, _ := r.call(got.Access); status != 401 {
		t.Error("a token is good while the server is off")
	}
}
