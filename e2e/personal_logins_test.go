package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// TestCallersUseTheirOwnAccounts: two users with keys and one with a token sign
// in to a server behind a real authorization server and call it through two
// nodes. The server sees the account of each of them, with every API, after a
// restart and until they sign out.
func TestCallersUseTheirOwnAccounts(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, 3600)
	issuer, token := startTokenIssuer(t)
	keys := map[string]string{"ada": "ada-key-of-the-logins-test-0123456789", "ben": "ben-key-of-the-logins-test-0123456789", "cleo": token("cleo")}
	c := startNodes(t, 2, func(_ int, s settings) {
		s["mcpServers"] = settings{"guarded": settings{"url": g.Resource, "proxy": true, "startTimeoutMs": 60_000, "oauth": settings{"per": "caller"}}}
		s["auth"] = settings{
			"loopback": "key", "jwt": settings{"issuer": issuer, "audience": "junctor", "rules": []settings{{}}},
			"keys": []settings{{"name": "root", "key": rootKey, "admin": true}, {"name": "ada", "key": keys["ada"]}, {"name": "ben", "key": keys["ben"], "servers": []string{"guarded"}}},
		}
	})
	ctx := ctxFor(t)
	// send sends a request to a node and returns the response.
	send := func(node int, method, path, key, body string, header ...string) (int, string) {
		t.Helper()
		status, text, err := try(ctx, method, c.all[node].url+path, key, body, header...)
		if err != nil {
			t.Fatal(err)
		}
		return status, text
	}
	const proxy = "/api/mcp/guarded/proxy"
	for person, key := range keys {
		status, body := send(0, "POST", proxy, key, whoami)
		var refused struct {
			Code    string
			Details struct{ URL string }
		}
		if err := json.Unmarshal([]byte(body), &refused); err != nil || status != 401 || refused.Code != "UPSTREAM_AUTH_REQUIRED" || refused.Details.URL == "" {
			t.Fatalf("%s without a login: %d %s", person, status, body)
		}
		g.consent(person, refused.Details.URL)
	}

	// Concurrent calls with each account, through both nodes and several APIs.
	execute := `{"server":"guarded","tool":"whoami","arguments":{}}`
	check := func(people map[string]string) {
		t.Helper()
		var wg sync.WaitGroup
		for person, key := range people {
			for i := range 8 {
				wg.Go(func() {
					node := i % 2
					var text string
					var err error
					switch i / 2 {
					case 0:
						_, text, err = try(ctx, "POST", c.all[node].url+proxy, key, whoami)
					case 1:
						_, text, err = try(ctx, "POST", c.all[node].url+"/call_tool", key, execute)
					case 2:
						_, text, err = try(ctx, "POST", c.all[node].url+"/run", key, `{"code":"return await tools.guarded.whoami({})"}`)
					default:
						_, text, err = try(ctx, "POST", c.all[node].url+"/mcp/guarded", key, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
							"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "whoami")
					}
					if err != nil || !strings.Contains(text, "account "+person) {
						t.Errorf("%s, request %d: %s, %v", person, i, text, err)
					}
				})
			}
		}
		wg.Wait()
	}
	check(keys)

	// A caller without a login sees only that the server requires one, in
	// every API.
	for node := range 2 {
		if _, body := send(node, "GET", "/api/tools?server=guarded", rootKey, ""); strings.Contains(body, `"whoami"`) || !strings.Contains(body, "sign in with your own account") {
			t.Errorf("node %d lists for a caller without a login: %s", node, body)
		}
		if _, body := send(node, "GET", "/api/tools?server=guarded", keys["ada"], ""); !strings.Contains(body, `"whoami"`) {
			t.Errorf("node %d lists for ada: %s", node, body)
		}
		if status, body := send(node, "POST", "/call_tool", rootKey, execute); !strings.Contains(body, "UPSTREAM_AUTH_REQUIRED") || strings.Contains(body, `"account `) {
			t.Errorf("node %d calls for a caller without a login: %d %s", node, status, body)
		}
	}

	// A client of the handshake era that can open URLs receives one.
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"t","version":"1"},"capabilities":{"elicitation":{"url":{}}}}}`
	session := openSession(t, c.all[0].url+"/mcp", rootKey, initialize)
	for _, mode := range []string{"execute_tool"} {
		_, text, err := try(ctx, "POST", c.all[0].url+"/mcp", rootKey, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+mode+`","arguments":{"server":"guarded","tool":"whoami","arguments":{}}}}`,
			"Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-11-25")
		if err != nil || !strings.Contains(text, "-32042") || !strings.Contains(text, `"mode":"url"`) || !strings.Contains(text, g.Issuer) {
			t.Errorf("%s without a login: %s, %v", mode, text, err)
		}
	}

	// The logins survive a restart, and no new sign-in is needed.
	c.all[1].end()
	c.all[1] = c.all[1].serve()
	check(keys)

	// A sign-out is effective on every node, and only for its caller.
	if status, body := send(0, "DELETE", "/api/mcp/guarded/authorize", keys["ada"], ""); status != 204 {
		t.Errorf("ada signs out: %d %s", status, body)
	}
	for node := range 2 {
		eventually(t, fmt.Sprintf("ada is signed out on node %d", node), func() bool {
			status, _ := send(node, "POST", proxy, keys["ada"], whoami)
			return status == 401
		})
	}
	delete(keys, "ada")
	check(keys)
	if _, body := send(1, "GET", "/api/mcp/guarded/logins", rootKey, ""); strings.Contains(body, "ada") || !strings.Contains(body, "ben") || !strings.Contains(body, "sub:"+issuer+"|cleo") {
		t.Errorf("logins: %s", body)
	}
	if saw := g.happened(); saw.Codes != 3 || len(saw.Authorization) != 3 || saw.Replays != 0 {
		t.Errorf("the server saw %d tokens of %d sign-ins", len(saw.Authorization), saw.Codes)
	}
}

// openSession begins an MCP session and returns its id.
func openSession(t *testing.T, address, key, initialize string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctxFor(t), "POST", address, strings.NewReader(initialize))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.Header.Get("Mcp-Session-Id")
}

// hiddenField matches the hidden fields of the gateway's page.
var hiddenField = regexp.MustCompile(`name="(\w+)" value="([^"]*)"`)

// consent signs a user in at the provider, consents and, if the gateway asks
// for that, confirms that it may use the account.
func (g *guarded) consent(person, address string) {
	g.t.Helper()
	b := newBrowserWindow(g.t)
	at, body := b.open("GET", address, nil)
	for range 2 { // the login, then the consent
		m := formAction.FindStringSubmatch(body)
		if m == nil || b.status != http.StatusOK {
			g.t.Fatalf("the provider shows %s %d: %.400s", at, b.status, body)
		}
		target, err := at.Parse(m[1])
		if err != nil {
			g.t.Fatal(err)
		}
		prompt := "login"
		if strings.Contains(body, `value="consent"`) {
			prompt = "consent"
		}
		at, body = b.open("POST", target.String(), url.Values{"prompt": {prompt}, "login": {person}, "password": {"x"}})
	}
	if b.status == http.StatusOK && strings.Contains(body, "Signed in") { // a shared login needs no confirmation
		return
	}
	fields := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(body, -1) {
		fields.Set(m[1], html.UnescapeString(m[2]))
	}
	if !strings.Contains(body, "Continue only if") || fields.Get("code") == "" {
		g.t.Fatalf("the gateway shows %s %d: %.400s", at, b.status, body)
	}
	if _, body := b.open("POST", at.String(), fields); b.status != http.StatusOK || !strings.Contains(body, "Signed in") {
		g.t.Fatalf("the confirmation shows %d: %.2000s", b.status, body)
	}
}

// startTokenIssuer serves the keys of an issuer, and returns its address and a
// function that creates a token for a subject.
func startTokenIssuer(t *testing.T) (string, func(subject string) string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	ts := httptest.NewServer(mux)
	t.Cleanup(ts.Close)
	answer := func(v any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) }
	}
	mux.HandleFunc("/.well-known/openid-configuration", answer(map[string]string{"issuer": ts.URL, "jwks_uri": ts.URL + "/keys"}))
	mux.HandleFunc("/keys", answer(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}}))
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ts.URL, func(subject string) string {
		text, err := jwt.Signed(signer).Claims(jwt.Claims{
			Issuer: ts.URL, Subject: subject, Audience: jwt.Audience{"junctor"}, Expiry: jwt.NewNumericDate(time.Now().Add(time.Hour)),
		}).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}
