package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"junctor/internal/app"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpclient/conformance"
	"junctor/internal/oauth"
	"junctor/internal/secretkey"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// conformanceClient is the program that the official conformance suite starts
// to examine Junctor as a client: the same wire and the same logins as towards
// every upstream. The suite says in the environment what to act out.
func (c *cli) conformanceClient() *cobra.Command {
	return &cobra.Command{
		Use: "conformance-client URL", Hidden: true, Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			scenario, _ := c.lookup("MCP_CONFORMANCE_SCENARIO")
			about, _ := c.lookup("MCP_CONFORMANCE_CONTEXT")
			dir, err := os.MkdirTemp("", "junctor-conformance-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			log := slog.New(slog.NewTextHandler(io.Discard, nil))
			s, err := app.OpenStore(cmd.Context(), store.DefaultConfig(), dir, log)
			if err != nil {
				return err
			}
			defer s.Close()
			server := examiner(args[0], about)
			rt := mcpclient.NewRoundTripper(nil)
			logins := oauth.New(oauth.Options{
				Servers: func(string) (upstream.Config, bool) { return server, true },
				Store:   s, Sealer: secretkey.Sealer("", dir, false), RoundTripper: rt, Redactor: &telemetry.Redactor{}, Log: log,
				Node: "conformance", Version: buildVersion(),
			})
			defer logins.Close()
			logins.SetCallback("http://127.0.0.1:1" + oauth.CallbackPath) // the answer is read from the redirect
			var person sync.Mutex                                         // who does one thing at a time
			return conformance.Run(cmd.Context(), conformance.Options{
				Scenario: scenario, URL: args[0], Context: json.RawMessage(about),
				HTTP: func(o *mcpclient.HTTPOptions) {
					o.RoundTripper = rt
					o.Authorize = func(ctx context.Context, r *http.Request, refused *mcpclient.HTTPError) error {
						person.Lock()
						defer person.Unlock()
						return consenting(ctx, logins, server.Name, r, refused)
					}
				},
			})
		},
	}
}

// examiner is the suite's server as it would stand in a configuration.
func examiner(address, about string) upstream.Config {
	server := upstream.DefaultConfig()
	server.Name, server.URL = "examiner", address
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
	_ = json.Unmarshal([]byte(about), &known) // most scenarios say nothing
	server.OAuth = &upstream.OAuth{
		ClientID: known.ID, ClientSecret: known.Secret, Issuer: known.Issuer,
		ClientMetadataURL: "https://conformance-test.local/client-metadata.json",
	}
	if known.ID != "" && known.Issuer == "" { // the extension of client credentials
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

// consenting plays the person who opens the address and consents to all.
func consenting(ctx context.Context, logins *oauth.Service, server string, r *http.Request, refused *mcpclient.HTTPError) error {
	err := logins.Authorize(ctx, server, r, refused)
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
	return logins.Authorize(ctx, server, r, nil)
}
