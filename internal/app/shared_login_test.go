package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/postgres/pgtest"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// refusing is a service that responds with 401 to all requests except those
// for a token.
func refusing(t *testing.T) string {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"access_token":%q,"refresh_token":"again","token_type":"Bearer","expires_in":3600}`, r.FormValue("grant_type"))
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(service.Close)
	return service.URL
}

// signInAddress calls a tool and returns the sign-in URL in the error, or ""
// if there is none. It fails the test unless the error requires a sign-in.
func (r *fixture) signInAddress(name string, caller tool.Caller) string {
	r.t.Helper()
	result, err := r.executor.Call(r.t.Context(), tool.Call{Tool: name, Caller: caller, Arguments: json.RawMessage(`{}`)})
	return addressOf(r.t, caller, result.Raw, err)
}

func addressOf(t *testing.T, caller tool.Caller, raw json.RawMessage, err error) string {
	t.Helper()
	if tool.KindOf(err) != tool.UpstreamAuthRequired || !strings.Contains(err.Error(), "sign-in") {
		t.Fatalf("the call of %s: %s, %v; want %s", caller, raw, err, tool.UpstreamAuthRequired)
	}
	details, _ := tool.AsError(err).Details.(map[string]any)
	address, _ := details["url"].(string)
	if strings.Contains(err.Error(), "state=") != (address != "") {
		t.Errorf("%s: %v, with the details %v", caller, err, details)
	}
	return address
}

// flows returns the number of pending sign-ins.
func (r *fixture) flows() int {
	r.t.Helper()
	values, err := r.store.Values(r.t.Context(), "oauth-flows")
	if err != nil {
		r.t.Fatal(err)
	}
	return len(values)
}

var (
	limitedKey = tool.Caller{ID: "key:limited", Tools: []string{"*:me"}}
	wholeKey   = tool.Caller{ID: "key:whole"}
	adminKey   = tool.Caller{ID: "key:admin", Admin: true}
)

// TestSignInToOpenAPIServiceNeedsRights calls an operation that needs a shared
// login.
func TestSignInToOpenAPIServiceNeedsRights(t *testing.T) {
	service := refusing(t)
	path := filepath.Join(t.TempDir(), "openapi.json")
	document := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"servers":[{"url":"` + service + `"}],
		"paths":{"/me":{"get":{"operationId":"me","security":[{"person":[]}],"responses":{}}}},
		"components":{"securitySchemes":{"person":{"type":"oauth2","flows":{"authorizationCode":{"authorizationUrl":"/login","tokenUrl":"/token","scopes":{}}}}}}}`
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, fmt.Sprintf(`{"mcpServers":{"tracker":{"openapi":%q,"oauth":{"clientId":"c"}}}}`, path), t.TempDir())
	r.connected("tracker")
	if address := r.signInAddress("tracker:me", limitedKey); address != "" || r.flows() > 0 {
		t.Errorf("a limited key can make the first login: %s (%d sign-ins)", address, r.flows())
	}
	address := r.signInAddress("tracker:me", wholeKey)
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, service+"/login?") {
		t.Fatalf("a key without limits has to open %q, %v", address, err)
	}
	if code, body := r.as("GET", "/oauth/callback?code=x&state="+u.Query().Get("state"), ""); code != 200 {
		t.Fatalf("the sign-in: %d %s", code, body)
	}

	// The login is usable now, but the service still refuses the operation.
	// The first call refreshes the token.
	for range 2 {
		_, _ = r.executor.Call(t.Context(), tool.Call{Tool: "tracker:me", Caller: limitedKey, Arguments: json.RawMessage(`{}`)})
	}
	for _, caller := range []tool.Caller{limitedKey, wholeKey} {
		if address := r.signInAddress("tracker:me", caller); address != "" || r.flows() > 0 {
			t.Errorf("%s can replace a login that works: %s (%d sign-ins)", caller, address, r.flows())
		}
	}
	if address := r.signInAddress("tracker:me", adminKey); address == "" {
		t.Error("an administrator is not told where to sign in")
	}
}

// TestSignInThroughAnotherNodeNeedsRights calls a server that another node
// runs, and resumes a task of it. That node must respect the caller's rights.
func TestSignInThroughAnotherNodeNeedsRights(t *testing.T) {
	service := refusing(t)
	cfg := fmt.Sprintf(`{"store":{"url":%q},"mcpServers":{"one":{"url":%q,"singleton":true,"oauth":{"clientId":"c","authorizationUrl":%q,"tokenUrl":%q}}}}`,
		pgtest.New(t).Database(t), service+"/mcp", service+"/login", service+"/token")
	secret := func(o *Options) { o.SecretKey = telemetry.Secret(strings.Repeat("ab", 32)) }
	owner := start(t, cfg, t.TempDir(), secret)
	eventually(t, "the refused connection", func() bool {
		st, _ := owner.upstreams.StatusOf("one")
		return strings.Contains(st.Reason, "sign-in")
	})
	other := start(t, cfg, t.TempDir(), secret)
	eventually(t, "the node that runs the server", func() bool {
		st, _ := other.upstreams.StatusOf("one")
		return st.Node == owner.nodes.ID()
	})
	forward := func(caller tool.Caller) string {
		t.Helper()
		raw, err := other.executor.Forward(t.Context(), tool.Forward{Caller: caller, Server: "one", Method: "prompts/list", Params: json.RawMessage(`{}`)})
		return addressOf(t, caller, raw, err)
	}
	limited := tool.Caller{ID: "key:limited", Tools: []string{"one:*"}}
	open := tool.Caller{ID: tool.Local.ID, Servers: []string{"one"}} // the caller of an open loopback listener
	for _, caller := range []tool.Caller{limited, open} {
		if address := forward(caller); address != "" || other.flows() > 0 {
			t.Errorf("%s, which is limited, can make the first login: %s (%d sign-ins)", caller, address, other.flows())
		}
	}
	for _, node := range []*fixture{owner, other} {
		result, err := node.resumeTask(t.Context(), &waiting.Record{Caller: limited.ID, Tool: "one:me", Task: tool.ServerTask{Server: "one", ID: "7"}}, nil)
		if address := addressOf(t, limited, result.Raw, err); address != "" || other.flows() > 0 {
			t.Errorf("a resumed task can make the first login: %s (%d sign-ins)", address, other.flows())
		}
	}
	for _, caller := range []tool.Caller{wholeKey, adminKey} {
		if address := forward(caller); !strings.HasPrefix(address, service+"/login?") {
			t.Errorf("%s has to open %q", caller, address)
		}
	}
}
