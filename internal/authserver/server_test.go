package authserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/store"
)

// TestSignIn follows the metadata from an unauthenticated request to a call
// and a refreshed token.
func TestSignIn(t *testing.T) {
	r := newFixture(t)
	r.key = r.addKey("alice")
	status, header, _ := r.do("POST", "/mcp", nil, "")
	if want := `Bearer resource_metadata="` + r.url + `/.well-known/oauth-protected-resource/mcp"`; status != 401 || header.Get("WWW-Authenticate") != want {
		t.Fatal(status, header)
	}
	_, _, body := r.do("GET", "/.well-known/oauth-protected-resource/mcp", nil, "")
	if !strings.Contains(body, `"resource":"`+r.url+`/mcp"`) || !strings.Contains(body, `"authorization_servers":["`+r.url+`"]`) {
		t.Fatal(body)
	}
	_, _, body = r.do("GET", MetadataPath, nil, "")
	var meta map[string]any
	if err := json.Unmarshal([]byte(body), &meta); err != nil {
		t.Fatal(err)
	}
	if meta["issuer"] != r.url || meta["token_endpoint"] != r.url+TokenPath || meta["authorization_response_iss_parameter_supported"] != true {
		t.Error(body)
	}

	client := r.newClient()
	a := r.attempt(client)
	status, header, body = r.do("GET", AuthorizePath+"?"+a.query.Encode(), nil, "")
	if status != 200 || !strings.Contains(body, `<meta http-equiv="refresh" content="0;url=/oauth/consent?`) {
		t.Error(status, body)
	}
	policy := header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || header.Get("X-Frame-Options") != "DENY" || header.Get("Cache-Control") != "no-store" {
		t.Error(header)
	}
	status, header, body = r.do("GET", ConsentPath+"?"+a.query.Encode(), nil, "")
	for _, want := range []string{"Test client", "client.example", `name="key"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not on the page: %d %s", want, status, body)
		}
	}
	if !strings.Contains(header.Get("Content-Security-Policy"), "form-action 'self' https://client.example;") {
		t.Error(header)
	}
	answer := a.consent(r.key)
	if answer.Get("state") != "the state" || answer.Get("iss") != r.url || answer.Get("error") != "" {
		t.Fatal(answer)
	}
	status, got := r.token(a.exchange(answer.Get("code")))
	if status != 200 || got.Expires != int(accessTokenTTL.Seconds()) {
		t.Fatal(status, got)
	}
	if status, body := r.call(got.Access); status != 200 || !strings.HasPrefix(body, "key:") || !strings.Contains(body, " alice via Test client admin=false") {
		t.Error(status, body)
	}
	// The token is only valid for /mcp.
	if status, _, body := r.do("GET", "/api/clients", map[string]string{"Authorization": "Bearer " + got.Access}, ""); status != 401 {
		t.Error(status, body)
	}
	status, next := r.token(refreshForm(client, got.Refresh))
	if status != 200 || next.Refresh == got.Refresh || next.Access == got.Access {
		t.Fatal(status, next)
	}
	r.advance(accessTokenTTL + time.Second)
	if status, body := r.call(next.Access); status != 401 {
		t.Error("an expired token is accepted:", status, body)
	}
	if log := r.log.String(); strings.Contains(log, got.Refresh) || strings.Contains(log, got.Access) || strings.Contains(log, answer.Get("code")) || strings.Contains(log, r.key.Reveal()) {
		t.Error("a secret is in the log")
	}
	for _, space := range []string{SpaceGrants, spaceCodes, spaceClients, store.SpaceSecrets} {
		values, err := r.store.Values(t.Context(), space)
		if err != nil || len(values) == 0 {
			t.Fatal(space, err)
		}
		for _, v := range values {
			for _, secret := range []string{got.Refresh, strings.SplitN(next.Refresh, ".", 2)[1], answer.Get("code"), r.key.Reveal(), `"d":"`} {
				if strings.Contains(string(v.Data)+v.Name, secret) {
					t.Errorf("%s has a secret in the store", space)
				}
			}
		}
	}
}

func TestReusedRefreshTokenEndsTheConsent(t *testing.T) {
	r := newFixture(t)
	client, first := r.signIn()
	_, second := r.token(refreshForm(client, first.Refresh))
	// A lost response can be requested again within refreshLeeway.
	status, again := r.token(refreshForm(client, first.Refresh))
	if status != 200 || again.Refresh != second.Refresh {
		t.Fatal(status, again)
	}
	r.advance(refreshLeeway + time.Second)
	if status, got := r.token(refreshForm(client, strings.Split(first.Refresh, ".")[0]+".guessed")); status != 400 || got.Error != "invalid_grant" {
		t.Error(status, got)
	}
	status, third := r.token(refreshForm(client, second.Refresh))
	if status != 200 {
		t.Fatal("a guessed token ended the consent:", third)
	}
	if status, got := r.token(refreshForm(client, first.Refresh)); status != 400 || got.Error != "invalid_grant" {
		t.Error(status, got)
	}
	if status, got := r.token(refreshForm(client, third.Refresh)); status != 400 || got.Error != "invalid_grant" {
		t.Error("the consent has survived:", status, got)
	}
	if status, _ := r.call(third.Access); status != 401 {
		t.Error("an access token has survived")
	}
	if !strings.Contains(r.log.String(), "refresh token used twice") {
		t.Error("nothing in the log")
	}
}

func TestManyRefreshAtOnce(t *testing.T) {
	r := newFixture(t)
	client, got := r.signIn()
	const callers = 50
	answers := make(chan tokens, callers)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			status, a := r.token(refreshForm(client, got.Refresh))
			if status != 200 {
				t.Error(status, a)
			}
			answers <- a
		})
	}
	wg.Wait()
	close(answers)
	next := ""
	for a := range answers {
		if next == "" {
			next = a.Refresh
		}
		if a.Refresh != next {
			t.Error("there are several refresh tokens")
		}
		if status, body := r.call(a.Access); status != 200 {
			t.Error(status, body)
		}
	}
	for range callers {
		wg.Go(func() {
			status, _, body := r.form(RevokePath, url.Values{"token": {next}, "client_id": {client}})
			if status != 200 {
				t.Error(status, body)
			}
		})
	}
	wg.Wait()
	if status, _ := r.call(got.Access); status != 401 {
		t.Error("a token has survived the revocation")
	}
	if status, _ := r.token(refreshForm(client, next)); status != 400 {
		t.Error("a refresh token has survived the revocation")
	}
}

// TestRevocationEndsStreams revokes a consent directly in the store, as
// another process would, while 50 streams are open.
func TestRevocationEndsStreams(t *testing.T) {
	r := newFixture(t)
	_, got := r.signIn()
	const callers = 50
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			req, err := http.NewRequest("POST", r.url+"/mcp?stream", nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer "+got.Access)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			buffer := make([]byte, 1024)
			for err == nil {
				_, err = resp.Body.Read(buffer)
			}
		})
	}
	for range callers {
		select {
		case <-r.streams:
		case <-time.After(time.Minute):
			t.Fatal("a stream has not begun")
		}
	}
	all, err := List(t.Context(), r.store)
	if err != nil || len(all) != 1 || all[0].ClientName != "Test client" || all[0].Name != "alice" {
		t.Fatal(all, err)
	}
	audited := ""
	record := func(_ context.Context, action, target string, detail any) {
		audited = fmt.Sprint(action, " ", target, " ", detail)
	}
	if err := Revoke(t.Context(), r.store, all[0], record); err != nil || !strings.Contains(audited, "client.revoke "+all[0].ID) || !strings.Contains(audited, "person:alice") {
		t.Fatal(err, audited)
	}
	wg.Wait()
	if status, _ := r.call(got.Access); status != 401 {
		t.Error("a token has survived the revocation")
	}
}

// TestRevokedKeyEndsItsConsents ends the rights of the person.
func TestRevokedKeyEndsItsConsents(t *testing.T) {
	r := newFixture(t)
	client, got := r.signIn()
	if _, err := r.store.RevokeKey(t.Context(), "alice", time.Now()); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		if status, _ := r.call(got.Access); status == 401 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the token is good after its person's key was revoked")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if status, next := r.token(refreshForm(client, got.Refresh)); status == 200 {
		if status, _ := r.call(next.Access); status != 401 {
			t.Error("a refreshed token is good")
		}
	}
}

func TestListAndRevokeOverTheAPI(t *testing.T) {
	r := newFixture(t)
	_, got := r.signIn()
	secret := r.addKey("bob")
	as := func(key string) map[string]string { return map[string]string{"Authorization": "Bearer " + key} }
	_, _, body := r.do("GET", "/api/clients", as(secret.Reveal()), "")
	var list struct{ Clients []Grant }
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Clients) != 1 || strings.Contains(body, "refresh") {
		t.Fatal(body, err)
	}
	if status, _, body := r.do("DELETE", "/api/clients/nonsense", as(secret.Reveal()), ""); status != 404 {
		t.Error(status, body)
	}
	if status, _, body := r.do("DELETE", "/api/clients/"+list.Clients[0].ID, as(secret.Reveal()), ""); status != 204 {
		t.Error(status, body)
	}
	if status, _ := r.call(got.Access); status != 401 {
		t.Error("a token has survived the revocation")
	}
}

func TestKeysRotate(t *testing.T) {
	r := newFixture(t)
	client, got := r.signIn()
	count := func() int {
		_, _, body := r.do("GET", KeysPath, nil, "")
		var set struct{ Keys []map[string]any }
		if err := json.Unmarshal([]byte(body), &set); err != nil {
			t.Fatal(err)
		}
		for _, k := range set.Keys {
			if k["d"] != nil || k["kty"] != "EC" || k["alg"] != "ES256" {
				t.Error(k)
			}
		}
		return len(set.Keys)
	}
	if n := count(); n != 1 {
		t.Fatal(n)
	}
	r.advance(signingKeyTTL - accessTokenTTL/2)
	status, got := r.token(refreshForm(client, got.Refresh))
	if status != 200 {
		t.Fatal(got)
	}
	r.advance(accessTokenTTL / 2) // the key is due for rotation, its token is still valid
	if n := count(); n != 2 {
		t.Error(n)
	}
	if status, _ := r.call(got.Access); status != 200 {
		t.Error("the rotation broke a token")
	}
	r.advance(signingKeyTTL - time.Hour)
	if status, got = r.token(refreshForm(client, got.Refresh)); status != 200 {
		t.Fatal(got)
	}
	r.advance(time.Hour)
	if n := count(); n != 2 {
		t.Error(n)
	}
}

// TestNodesShareEverything signs in on three nodes in turn.
func TestNodesShareEverything(t *testing.T) {
	s := openStore(t)
	a := newNode(t, s, "")
	b, c := newNode(t, s, a.url), newNode(t, s, a.url)
	key := a.addKey("alice")
	client := b.newClient()
	code := c.attempt(client).consent(key).Get("code")
	status, got := b.token(a.attempt(client).exchange(code))
	if status != 200 {
		t.Fatal(status, got)
	}
	for _, node := range []*fixture{a, b, c} {
		if status, body := node.call(got.Access); status != 200 {
			t.Error(status, body)
		}
		var next tokens
		if status, next = node.token(refreshForm(client, got.Refresh)); status != 200 {
			t.Fatal(next)
		}
		got = next
	}
	if status, _, body := c.form(RevokePath, url.Values{"token": {got.Access}}); status != 200 {
		t.Error(body)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		if status, _ := a.call(got.Access); status == 401 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("another node has not noticed the revocation")
		}
		time.Sleep(20 * time.Millisecond)
	}
}
