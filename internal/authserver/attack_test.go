package authserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/store"
)

// TestHostsThatLookLikeOthers checks that hosts with non-ASCII letters are
// rejected, even percent-encoded, because the consent page shows hosts.
func TestHostsThatLookLikeOthers(t *testing.T) {
	r := newFixture(t)
	r.opts.Fetch = func(_ context.Context, id string, _ int64) ([]byte, error) {
		return fmt.Appendf(nil, `{"client_id":%q,"redirect_uris":["https://client.example/"]}`, id), nil
	}
	for _, host := range []string{"\u0430pple.com", "%D0%B0pple.com", "apple.com\u2215.evil.example", "apple.com%E2%88%95.evil.example"} {
		if err := checkRedirect("https://" + host + "/back"); err == nil {
			t.Errorf("the redirect URI of %s is accepted", host)
		}
		if c, e, err := r.client(t.Context(), "https://"+host+"/client.json"); e == nil || err != nil {
			t.Errorf("the client of %s is accepted, and shown as %q: %v", host, c.host(), err)
		}
	}
	if _, e, err := r.client(t.Context(), "https://xn--pple-43d.com/client.json"); e != nil || err != nil {
		t.Error("an international name in its ASCII form:", e, err)
	}
}

// TestAuditIsNotFlooded repeats requests that end a consent. Only the first is
// recorded.
func TestAuditIsNotFlooded(t *testing.T) {
	r := newFixture(t)
	r.key = r.addKey("alice")
	var revoked atomic.Int32
	var detail atomic.Value
	r.opts.Audit = func(_ context.Context, action, _ string, d any) {
		if action == "client.revoke" {
			revoked.Add(1)
			detail.Store(fmt.Sprint(d))
		}
	}
	client := r.newClient()
	a := r.attempt(client)
	form := a.exchange(a.consent(r.key).Get("code"))
	for range 5 {
		r.token(form)
	}
	if n := revoked.Load(); n != 1 || !strings.Contains(detail.Load().(string), "redirect:client.example") {
		t.Error("a code that was used five times is recorded", n, "times:", detail.Load())
	}
	revoked.Store(0)
	_, got := r.token(a.exchange(a.consent(r.key).Get("code")))
	for range 5 {
		if status, _, body := r.form(RevokePath, map[string][]string{"token": {got.Access}, "client_id": {client}}); status != 200 {
			t.Error(status, body)
		}
	}
	if n := revoked.Load(); n != 1 || !strings.Contains(detail.Load().(string), "person:alice") {
		t.Error("a token that was revoked five times is recorded", n, "times:", detail.Load())
	}
}

// TestAuditNamesWhoGetsTheTokens: anyone can register a client under any name.
// So the audit entry of a consent contains the redirect target, and
// registrations, which need no consent, are not audited.
func TestAuditNamesWhoGetsTheTokens(t *testing.T) {
	r := newFixture(t)
	entries := make(chan string, 10)
	r.opts.Audit = func(_ context.Context, action, _ string, d any) { entries <- fmt.Sprint(action, " ", d) }
	r.signIn()
	if len(entries) != 1 {
		t.Fatalf("%d entries in the audit log, want that of the consent", len(entries))
	}
	if e := <-entries; !strings.HasPrefix(e, "client.consent ") || !strings.Contains(e, "redirect:client.example") {
		t.Errorf("the audit log has %q", e)
	}
	long := Grant{Client: "https://evil.example/?" + strings.Repeat("&", maxURI), Redirect: strings.Repeat("&", maxURI)}
	if detail, err := json.Marshal(long.detail()); err != nil || len(detail) > 8<<10 {
		t.Errorf("a detail of %d bytes, %v: too many for the audit log", len(detail), err)
	}
}

// TestClientsLeaveSessionsAlone checks that a client with a token for the
// whole gateway cannot list the person's page sessions.
func TestClientsLeaveSessionsAlone(t *testing.T) {
	r := newFixture(t)
	r.key = r.addKey("alice")
	a := r.attempt(r.newClient())
	a.query.Set("resource", r.url)
	if _, _, body := r.do("GET", ConsentPath+"?"+a.query.Encode(), nil, ""); !strings.Contains(body, "every interface under "+r.url) {
		t.Error("the page does not say that the token is for more than tools:", body)
	}
	_, got := r.token(a.exchange(a.consent(r.key).Get("code")))
	as := map[string]string{"Authorization": "Bearer " + got.Access}
	if status, _, body := r.do("GET", "/api/page-sessions", as, ""); status != http.StatusForbidden {
		t.Error(status, body)
	}
	if status, _, body := r.do("DELETE", "/api/page-sessions/x", as, ""); status != http.StatusForbidden {
		t.Error(status, body)
	}
	a.query.Set("resource", r.url+"/mcp")
	if _, _, body := r.do("GET", ConsentPath+"?"+a.query.Encode(), nil, ""); strings.Contains(body, "every interface") {
		t.Error(body)
	}
}

// TestFloodOfRegistrationsDoesNotLockOutClients fills the registrations. The
// oldest one without a consent is replaced; one in use is not.
func TestFloodOfRegistrationsDoesNotLockOutClients(t *testing.T) {
	r := newFixture(t)
	now := time.Now()
	for i := range maxClients {
		ttl := unusedClientTTL - time.Duration(maxClients-i)*time.Second
		if i == 0 {
			ttl = usedClientTTL
		}
		if _, err := r.store.PutValue(t.Context(), store.Value{Space: spaceClients, Name: fmt.Sprint("client-", i), Data: []byte(`{}`), Expires: now.Add(ttl)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	r.newClient()
	all, err := r.store.Values(t.Context(), spaceClients)
	if err != nil || len(all) != maxClients {
		t.Error(len(all), err)
	}
	for name, want := range map[string]bool{"client-0": true, "client-1": false, "client-2": true} {
		if _, err := r.store.Value(t.Context(), spaceClients, name); (err == nil) != want {
			t.Error(name, err)
		}
	}
}

// TestRefusedDocumentsAreNotRemembered checks that a document that was refused
// because of the rate limit is read once the limit allows it.
func TestRefusedDocumentsAreNotRemembered(t *testing.T) {
	r := newFixture(t)
	r.opts.Fetch = func(_ context.Context, id string, _ int64) ([]byte, error) {
		return fmt.Appendf(nil, `{"client_id":%q,"redirect_uris":["https://client.example/"]}`, id), nil
	}
	for r.limits.fetch() {
	}
	const id = "https://client.example/client.json"
	if _, e, _ := r.client(t.Context(), id); e == nil || e.code != "temporarily_unavailable" {
		t.Fatal(e)
	}
	r.limits.mu.Lock()
	r.limits.fetches = nil
	r.limits.mu.Unlock()
	if _, e, _ := r.client(t.Context(), id); e != nil {
		t.Error(e)
	}
	for i := range 2 * maxDocuments {
		_, _, _ = r.client(t.Context(), fmt.Sprint("x://", i))
	}
	if len(r.documents.known) != 1 {
		t.Error(len(r.documents.known), "documents are remembered")
	}
}
