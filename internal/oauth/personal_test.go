package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// personal returns a fixture where each caller has a login of its own, and the
// callers.
func personal(t *testing.T) (r *fixture, ada, ben tool.Caller) {
	t.Helper()
	r = newFixture(t, newWorld(t))
	r.cfg.OAuth = &upstream.OAuth{Per: upstream.LoginPerCaller}
	return r, tool.Caller{ID: "key:1", Name: "ada", Servers: []string{"jira"}}, tool.Caller{ID: "sub:https://issuer.example|ben", Name: "ben"}
}

// tokenOf returns the access token that the requests of a caller get.
func tokenOf(t *testing.T, s *Service, caller tool.Caller) string {
	t.Helper()
	req, err := http.NewRequestWithContext(as(t, caller), http.MethodPost, "https://jira.example", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Authorize(req.Context(), upstream.Login{Server: "jira", Caller: caller.ID}, req, nil); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
}

// Each caller signs in separately, and replaces and ends its own login. Its
// requests never carry another caller's token, in another process either.
func TestEachCallerHasItsLogin(t *testing.T) {
	r, ada, ben := personal(t)
	if _, err := call(as(t, ada), r.Service, *r.cfg); err == nil {
		t.Fatal("a call without a login succeeded")
	} else if err := r.complete(urlIn(t, err)); err != nil { // a restricted key may have its own login
		t.Fatal(err)
	}
	if got := tokenOf(t, r.Service, ben); got != "" {
		t.Errorf("a caller without a login has the token %q", got)
	}
	if _, err := call(as(t, ben), r.Service, *r.cfg); strings.Contains(err.Error(), ada.ID) {
		t.Errorf("the error of one caller names another: %v", err)
	} else if err := r.complete(urlIn(t, err)); err != nil {
		t.Fatal(err)
	}
	mine, bens := tokenOf(t, r.Service, ada), tokenOf(t, r.Service, ben)
	if mine == "" || bens == "" || mine == bens {
		t.Fatalf("tokens %q and %q", mine, bens)
	}
	other := r.another()
	if a, b := tokenOf(t, other, ada), tokenOf(t, other, ben); a != mine || b != bens {
		t.Error("another process has other logins")
	}
	// Requests without a caller, and callers without a login, get no
	// token.
	for _, l := range []upstream.Login{{Server: "jira"}, {Server: "jira", Caller: "local"}} {
		req := &http.Request{Header: http.Header{}}
		if err := r.Authorize(t.Context(), l, req.WithContext(t.Context()), nil); req.Header.Get("Authorization") != "" {
			t.Errorf("%+v has a token, %v", l, err)
		}
	}
	generation := func(caller tool.Caller) string {
		t.Helper()
		g, err := r.Generation(t.Context(), upstream.Login{Server: "jira", Caller: caller.ID})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	before, bensBefore := generation(ada), generation(ben)
	if err := r.complete(r.begin(ada)); err != nil { // replaces a working login
		t.Fatal(err)
	}
	if generation(ada) == before || tokenOf(t, r.Service, ada) == mine || generation(ben) != bensBefore || tokenOf(t, r.Service, ben) != bens {
		t.Error("the new login is not the one of its caller alone")
	}
	if was, err := r.End(as(t, ada), "jira"); !was || err != nil {
		t.Fatalf("End = %t, %v", was, err)
	}
	if generation(ada) != "" || tokenOf(t, r.Service, ada) != "" || tokenOf(t, r.Service, ben) != bens {
		t.Error("the end of a login concerns another, or not the caller's")
	}
}

// Each login is refreshed once, however many requests need it, and
// independently of the others.
func TestLoginsAreRefreshedApart(t *testing.T) {
	r, ada, ben := personal(t)
	for _, caller := range []tool.Caller{ada, ben} {
		if err := r.complete(r.begin(caller)); err != nil {
			t.Fatal(err)
		}
		l := upstream.Login{Server: "jira", Caller: caller.ID}
		rec, version, err := r.load(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		rec.Obtained, rec.Expires = rec.Obtained.Add(-2*time.Hour), rec.Expires.Add(-2*time.Hour)
		if _, err := r.save(t.Context(), l, rec, version); err != nil {
			t.Fatal(err)
		}
	}
	s := r.another()
	var wg sync.WaitGroup
	for range 10 {
		for _, caller := range []tool.Caller{ada, ben} {
			wg.Go(func() {
				if status, err := call(as(t, caller), s, *r.cfg); status != 200 || err != nil {
					t.Errorf("%s: %d, %v", caller.Name, status, err)
				}
			})
		}
	}
	wg.Wait()
	r.w.do(func() {
		if r.w.refreshes != 2 || r.w.replays != 0 {
			t.Errorf("%d refreshes and %d replays for two logins", r.w.refreshes, r.w.replays)
		}
	})
	if tokenOf(t, s, ada) == tokenOf(t, s, ben) {
		t.Error("both callers have one token")
	}
	// Unused logins are removed from memory.
	for _, st := range s.states {
		st.asked.Store(time.Now().Add(-2 * idleLoginTTL).UnixNano())
	}
	s.refreshDue(t.Context())
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.states) != 0 {
		t.Errorf("%d logins are in memory", len(s.states))
	}
}

// hiddenFields returns the hidden fields of a form.
func hiddenFields(page string) url.Values {
	fields := url.Values{}
	for _, m := range regexp.MustCompile(`name="(\w+)" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		fields.Set(m[1], html.UnescapeString(m[2]))
	}
	return fields
}

// A person who opens another caller's sign-in URL is shown the caller's name
// before anything is accepted. A browser that is signed in to the gateway as
// another caller is refused.
func TestSignInOfOneCallerIsConfirmed(t *testing.T) {
	r, ada, ben := personal(t)
	browser := tool.Caller{ID: tool.AnonymousID}
	ts := r.face(&browser)
	r.SetCallback(ts.URL + CallbackPath)
	post := func(fields url.Values) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ts.URL+CallbackPath, strings.NewReader(fields.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	back := visit(t, r.begin(ada))
	status, page, header := send(t, "GET", ts.URL+CallbackPath+"?"+back.Encode(), nil)
	if status != 200 || !strings.Contains(page, "ada (key:1)") || !strings.Contains(page, "<form") ||
		!strings.Contains(header.Get("Content-Security-Policy"), "form-action 'self'") || tokenOf(t, r.Service, ada) != "" {
		t.Fatalf("the callback answered %d %s", status, page)
	}
	fields := hiddenFields(page)
	browser = ben
	if status, body := post(fields); status != 403 || tokenOf(t, r.Service, ada) != "" {
		t.Errorf("the browser of another confirmed: %d %s", status, body)
	}
	browser = ada
	if status, body := post(fields); status != 200 || tokenOf(t, r.Service, ada) == "" {
		t.Errorf("the confirmation answered %d %s", status, body)
	}
	if status, _ := post(fields); status != 400 {
		t.Errorf("the confirmation is accepted twice: %d", status)
	}
	if status, _ := post(url.Values{}); status != 400 {
		t.Errorf("an empty form: %d", status)
	}
}

// A process without an HTTP server asks for the confirmation, too, unless one
// of its commands waits for the sign-in.
func TestOwnListenerConfirmsSignInOfOneCaller(t *testing.T) {
	r, ada, ben := personal(t)
	r.SetCallback("")
	address := r.begin(ada)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	callback := u.Query().Get("redirect_uri")
	status, page, _ := send(t, "GET", callback+"?"+visit(t, address).Encode(), nil)
	if status != 200 || !strings.Contains(page, "ada (key:1)") || tokenOf(t, r.Service, ada) != "" {
		t.Fatalf("the callback answered %d %s", status, page)
	}
	resp, err := http.PostForm(callback, hiddenFields(page))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || tokenOf(t, r.Service, ada) == "" {
		t.Errorf("the confirmation answered %s", resp.Status)
	}
	err = r.Login(as(t, ben), "jira", func(address string) {
		if status, body, _ := send(t, "GET", callback+"?"+visit(t, address).Encode(), nil); status != 200 {
			t.Errorf("the callback of a command answered %d %s", status, body)
		}
	})
	if err != nil || tokenOf(t, r.Service, ben) == "" {
		t.Errorf("a command that waits for the sign-in: %v", err)
	}
}

// Callers can end their own logins. Only administrators can end those of
// others and list them.
func TestLoginsOverHTTP(t *testing.T) {
	r, ada, ben := personal(t)
	var actions []string
	r.opts.Audit = func(ctx context.Context, action, target string, detail any) {
		actions = append(actions, tool.CallerFrom(ctx).ID+" "+action+" "+target+" "+string(encode(detail)))
	}
	for _, caller := range []tool.Caller{ada, ben} {
		if err := r.complete(r.begin(caller)); err != nil {
			t.Fatal(err)
		}
	}
	who := ada
	ts := r.face(&who)
	if status, body, _ := send(t, "GET", ts.URL+"/api/mcp/jira/logins", nil); status != 403 || strings.Contains(body, "ben") {
		t.Errorf("logins for a caller: %d %s", status, body)
	}
	if status, _, _ := send(t, "DELETE", ts.URL+"/api/mcp/jira/authorize?caller="+url.QueryEscape(ben.ID), nil); status != 403 {
		t.Errorf("a caller ended another's login: %d", status)
	}
	if status, _, _ := send(t, "DELETE", ts.URL+"/api/mcp/jira/authorize", nil); status != 204 || tokenOf(t, r.Service, ada) != "" {
		t.Errorf("a caller could not end its own login: %d", status)
	}
	who = admin
	var got struct{ Logins []CallerLogin }
	status, body, _ := send(t, "GET", ts.URL+"/api/mcp/jira/logins", nil)
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || len(got.Logins) != 1 || got.Logins[0].Caller != ben.ID || got.Logins[0].Name != "ben" || got.Logins[0].Since.IsZero() {
		t.Errorf("logins = %d %s", status, body)
	}
	if status, _, _ := send(t, "DELETE", ts.URL+"/api/mcp/jira/authorize?caller="+url.QueryEscape(ben.ID), nil); status != 204 || tokenOf(t, r.Service, ben) != "" {
		t.Errorf("an administrator could not end a login: %d", status)
	}
	all := strings.Join(actions, "\n")
	for _, want := range []string{ada.ID + " login.complete jira", ben.ID + " login.complete jira", ada.ID + ` login.end jira {"caller":"key:1"}`, admin.ID + ` login.end jira {"caller":"` + ben.ID + `"}`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in the audit log:\n%s", want, all)
		}
	}
}

// A flow that was begun for a shared login does not become a caller's own, nor
// vice versa.
func TestFlowOfAnotherScopeIsRefused(t *testing.T) {
	r, ada, _ := personal(t)
	own := r.begin(ada)
	r.cfg.OAuth = nil
	shared := r.begin(admin)
	if err := r.complete(own); tool.KindOf(err) != tool.ServerNotFound {
		t.Errorf("the flow of a caller after the change: %v", err)
	}
	r.cfg.OAuth = &upstream.OAuth{Per: upstream.LoginPerCaller}
	if err := r.complete(shared); tool.KindOf(err) != tool.ServerNotFound {
		t.Errorf("the shared flow after the change: %v", err)
	}
	var refused *tool.Error
	if err := r.Authorize(t.Context(), jira, &http.Request{Header: http.Header{}}, nil); !errors.As(err, &refused) || refused.Kind != tool.UpstreamAuthRequired {
		t.Errorf("a connection that callers shared: %v", err)
	}
}

// A shared login cannot be ended by naming one of the callers.
func TestSharedLoginIsNoCallersOwn(t *testing.T) {
	r := newFixture(t, newWorld(t))
	if err := r.complete(r.begin(admin)); err != nil {
		t.Fatal(err)
	}
	who := admin
	if status, body, _ := send(t, "DELETE", r.face(&who).URL+"/api/mcp/jira/authorize?caller=key:1", nil); status != 400 || !strings.Contains(body, "share one login") {
		t.Errorf("ending the login of one caller: %d %s", status, body)
	}
	if was, err := r.End(as(t, admin), "jira"); !was || err != nil {
		t.Errorf("the shared login was ended: %t %v", was, err)
	}
}

// When the key of a caller is revoked, the caller's logins are deleted and
// their tokens revoked. Other callers' logins and shared ones remain.
func TestLoginsOfEndedCallersAreDeleted(t *testing.T) {
	r, ada, ben := personal(t)
	for _, caller := range []tool.Caller{ada, ben} {
		if err := r.complete(r.begin(caller)); err != nil {
			t.Fatal(err)
		}
	}
	shared := upstream.Login{Server: "wiki"}
	if _, err := r.save(t.Context(), shared, &record{Access: "shared"}, store.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if err := r.another().EndLogins(t.Context(), func(caller string) bool { return caller == ada.ID }); err != nil {
		t.Fatal(err)
	}
	for l, want := range map[upstream.Login]bool{{Server: "jira", Caller: ada.ID}: false, {Server: "jira", Caller: ben.ID}: true, shared: true} {
		if rec, _, err := r.load(t.Context(), l); err != nil || (rec != nil) != want {
			t.Errorf("%+v: %v, %v", l, rec != nil, err)
		}
	}
}

// A key that is revoked during a sign-in gets no login, neither a shared one
// nor its own, even if it is revoked while its own is being stored.
func TestSignInOfARevokedKey(t *testing.T) {
	for name, tt := range map[string]struct {
		per    upstream.LoginScope
		checks int // number of checks of the key before it is revoked
	}{
		"shared":                {upstream.LoginPerGateway, 0},
		"own":                   {upstream.LoginPerCaller, 0},
		"own, just stored":      {upstream.LoginPerCaller, 2},
		"shared, code redeemed": {upstream.LoginPerGateway, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, newWorld(t))
			r.cfg.OAuth = &upstream.OAuth{Per: tt.per}
			address := r.begin(whole)
			checks := 0
			r.opts.Revoked = func(_ context.Context, caller string) (bool, error) {
				checks++
				return caller == whole.ID && checks > tt.checks, nil
			}
			if err := r.complete(address); tool.KindOf(err) != tool.Denied {
				t.Errorf("the sign-in ended with %v", err)
			}
			if rec, _, err := r.load(t.Context(), r.cfg.LoginOf(whole.ID)); rec != nil || err != nil {
				t.Errorf("a login is stored, %v", err)
			}
			if len(r.in) > 0 {
				t.Errorf("signed in to %v", r.in)
			}
			r.w.do(func() {
				if len(r.w.access) > 0 || len(r.w.refresh) > 0 {
					t.Errorf("%d access and %d refresh tokens are valid", len(r.w.access), len(r.w.refresh))
				}
			})
		})
	}
}

// A sign-in stores no login if its key cannot be checked.
func TestSignInWithoutKeys(t *testing.T) {
	r, ada, _ := personal(t)
	address := r.begin(ada)
	r.opts.Revoked = func(context.Context, string) (bool, error) { return false, errors.New("the database is away") }
	if err := r.complete(address); tool.KindOf(err) != tool.Internal || tokenOf(t, r.Service, ada) != "" {
		t.Errorf("the sign-in ended with %v", err)
	}
}
