package oauth

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"junctor/internal/http1"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// flows returns the number of pending sign-ins.
func (r *fixture) flows() int {
	r.t.Helper()
	values, err := r.store.Values(r.t.Context(), spaceFlows)
	if err != nil {
		r.t.Fatal(err)
	}
	return len(values)
}

// An anonymous caller cannot begin a sign-in, whatever its rights and whoever
// the login belongs to.
func TestAnonymousCallerCannotBeginSignIn(t *testing.T) {
	for name, per := range map[string]upstream.LoginScope{"shared": upstream.LoginPerGateway, "of each caller": upstream.LoginPerCaller} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, newWorld(t))
			r.cfg.OAuth = &upstream.OAuth{Per: per}
			for _, caller := range []tool.Caller{{}, {Admin: true}, tool.Anonymous, {ID: tool.AnonymousID}, {ID: tool.AnonymousID, Admin: true}} {
				if err := r.mayBegin(t.Context(), *r.cfg, r.state(r.cfg.LoginOf(caller.ID)), caller); tool.KindOf(err) != tool.Denied {
					t.Errorf("mayBegin of %+v: %v", caller, err)
				}
				if _, err := call(as(t, caller), r.Service, *r.cfg); tool.KindOf(err) != tool.UpstreamAuthRequired || strings.Contains(err.Error(), "http://") {
					t.Errorf("a call of %+v: %v", caller, err)
				}
				if err := r.SignIn(as(t, caller), "jira"); tool.KindOf(err) != tool.UpstreamAuthRequired || strings.Contains(err.Error(), "http://") {
					t.Errorf("SignIn of %+v: %v", caller, err)
				}
				ts := r.face(&caller)
				if status, body, _ := send(t, "POST", ts.URL+"/api/mcp/jira/authorize", nil); status/100 == 2 || strings.Contains(body, "state=") {
					t.Errorf("the page of %+v: %d %s", caller, status, body)
				}
			}
			if _, err := call(t.Context(), r.Service, *r.cfg); tool.KindOf(err) != tool.UpstreamAuthRequired || strings.Contains(err.Error(), "http://") {
				t.Errorf("a call without a caller: %v", err)
			}
			if n := r.flows(); n > 0 {
				t.Errorf("%d sign-ins have begun", n)
			}
			if _, err := call(as(t, whole), r.Service, *r.cfg); urlIn(t, err) == "" || r.flows() != 1 {
				t.Errorf("a caller with a name: %v", err)
			}
		})
	}
}

// A login with the gateway's own credentials involves no user, and needs no caller.
func TestOwnCredentialsNeedNoCaller(t *testing.T) {
	r := newFixture(t, newWorld(t))
	r.cfg.OAuth = &upstream.OAuth{Grant: upstream.ClientCredentials, ClientID: "robot", ClientSecret: "robot secret?", Scopes: []string{"x"}}
	if status, err := call(t.Context(), r.Service, *r.cfg); status != 200 || err != nil {
		t.Errorf("a call without a caller: %d, %v", status, err)
	}
}

// The request that closes a session has no caller. A 401 response to it does
// not begin a sign-in.
func TestClosingASessionBeginsNoSignIn(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	refused := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		switch q.Method {
		case http.MethodPost:
			body, _ := io.ReadAll(q.Body)
			if !strings.Contains(string(body), `"id":`) {
				rw.WriteHeader(http.StatusAccepted)
				return
			}
			id, _, _ := strings.Cut(strings.SplitN(string(body), `"id":`, 2)[1], ",")
			rw.Header().Set("Mcp-Session-Id", "s")
			rw.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(rw, `{"jsonrpc":"2.0","id":`+strings.Trim(id, "}")+`,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
		case http.MethodDelete:
			refused <- struct{}{}
			rw.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			rw.WriteHeader(http.StatusUnauthorized)
		default:
			rw.WriteHeader(http.StatusMethodNotAllowed)
		}
	}))
	t.Cleanup(server.Close)
	r.cfg.URL = server.URL
	r.cfg.OAuth = &upstream.OAuth{ClientID: "me", AuthorizationURL: w.as.URL + "/authorize", TokenURL: w.as.URL + "/token"}
	transport := mcpclient.NewHTTP(mcpclient.HTTPOptions{
		URL: server.URL, RoundTripper: http1.New(mcpclient.NewRoundTripper(nil)), StreamableOnly: true, NoStandalone: true,
		Authorize: func(ctx context.Context, q *http.Request, refused *mcpclient.HTTPError) error {
			return r.Authorize(ctx, upstream.Login{Server: "jira"}, q, refused)
		},
	})
	c, err := mcpclient.Connect(as(t, tool.Local), transport, mcpclient.Options{Name: "test", Protocol: mcp.Version20250618, Pin: true, DiscoverTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if len(refused) == 0 {
		t.Fatal("the session was not closed")
	}
	if n := r.flows(); n > 0 {
		t.Errorf("%d sign-ins have begun", n)
	}
}
