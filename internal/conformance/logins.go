package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"

	"junctor/internal/http1"
	"junctor/internal/mcpclient"
	"junctor/internal/oauth"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Logins returns an [Options.HTTP] that authorizes requests like the gateway
// does for every upstream, with a user who consents to everything. about is the
// suite's context.
func Logins(address string, about json.RawMessage, s oauth.Store, sealer func() (*store.Sealer, error), log *slog.Logger) (set func(*mcpclient.HTTPOptions), closeLogins func()) {
	server := serverConfig(address, about)
	rt := mcpclient.NewRoundTripper(nil)
	logins := oauth.New(oauth.Options{
		Servers: func(string) (upstream.Config, bool) { return server, true },
		Store:   s, Sealer: sealer, RoundTripper: rt, Redactor: &telemetry.Redactor{}, Log: log,
		Node: "conformance", Version: "1",
	})
	logins.SetCallback("http://127.0.0.1:1" + oauth.CallbackPath) // never requested; the redirect to it is read
	var user sync.Mutex                                           // the user signs in once at a time
	return func(o *mcpclient.HTTPOptions) {
		o.RoundTripper = http1.New(rt) // as for every upstream
		o.Authorize = func(ctx context.Context, r *http.Request, refused *mcpclient.HTTPError) error {
			user.Lock()
			defer user.Unlock()
			return authorize(ctx, logins, server.Name, r, refused)
		}
	}, logins.Close
}

// serverConfig returns the configuration of the suite's server.
func serverConfig(address string, about json.RawMessage) upstream.Config {
	server := upstream.DefaultConfig()
	server.Name, server.URL = "suite", address
	var known struct {
		ID     string           `json:"client_id"`
		Secret telemetry.Secret `json:"client_secret"`
		Issuer string           `json:"issuer"`
		Key    telemetry.Secret `json:"private_key_pem"`
		JWT    telemetry.Secret `json:"valid_jwt"`
		IDP    telemetry.Secret `json:"idp_id_token"`
		IDPURL string           `json:"idp_token_endpoint"`
		IDPID  string           `json:"idp_client_id"`
	}
	_ = json.Unmarshal(about, &known) // most scenarios have no context
	server.OAuth = &upstream.OAuth{
		ClientID: known.ID, ClientSecret: known.Secret, Issuer: known.Issuer,
		ClientMetadataURL: "https://conformance-test.local/client-metadata.json",
	}
	if known.ID != "" && known.Issuer == "" { // the client credentials extension
		server.OAuth.Grant = upstream.ClientCredentials
	}
	server.OAuth.PrivateKey, server.OAuth.Assertion = known.Key, known.JWT
	if known.JWT != "" || known.IDP != "" {
		server.OAuth.Grant = upstream.JWTBearer
	}
	if known.IDP != "" {
		server.OAuth.IdentityProvider = &upstream.IdentityProvider{TokenURL: known.IDPURL, ClientID: known.IDPID, IDToken: known.IDP}
	}
	return server
}

// authorize requests the sign-in address, where the suite consents immediately.
func authorize(ctx context.Context, logins *oauth.Service, server string, r *http.Request, refused *mcpclient.HTTPError) error {
	ctx = tool.WithCaller(ctx, tool.Local) // the suite's user, who may sign in
	err := logins.Authorize(ctx, upstream.Login{Server: server}, r, refused)
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || e.Kind != tool.UpstreamAuthRequired {
		return err
	}
	details, _ := e.Details.(map[string]any)
	address, _ := details["url"].(string)
	if address == "" {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	res, err := (&http.Transport{}).RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	back, err := url.Parse(res.Header.Get("Location"))
	if err != nil || res.StatusCode/100 != 3 {
		return fmt.Errorf("the authorization endpoint answered %s", res.Status)
	}
	if _, err := logins.Complete(ctx, back.Query()); err != nil {
		return err
	}
	return logins.Authorize(ctx, upstream.Login{Server: server}, r, nil)
}
