package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"junctor/internal/address"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// clientFor returns the OAuth client to use with an authorization server: the
// configured one, otherwise a client id metadata document if the server
// supports it, otherwise a dynamic registration, made once per issuer.
func (s *Service) clientFor(ctx context.Context, cfg upstream.Config, f discovered, redirect string) (client, error) {
	own := oauthOf(cfg)
	if own.ClientID != "" {
		return configured(own, f.meta), nil
	}
	if own.ClientMetadataURL != "" && f.meta.ByDocument {
		return client{ID: own.ClientMetadataURL, Method: methodNone}, nil
	}
	issuer := f.meta.name()
	kept, ok, err := s.registration(ctx, issuer, redirect)
	if err != nil {
		return client{}, err
	}
	if ok && kept.Redirect == redirect {
		return kept, nil
	}
	if f.meta.Registration == "" {
		return client{}, &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf(
			"its authorization server does not accept client registrations; register Junctor there manually, with the redirect URI %s, and set oauth.clientId", redirect)}
	}
	c, err := s.register(ctx, f, redirect)
	if err != nil {
		return client{}, err
	}
	s.redactTokens(&record{Client: c})
	return c, s.storeRegistration(ctx, issuer, c)
}

func configured(own upstream.OAuth, meta serverMeta) client {
	c := client{ID: own.ClientID, Secret: own.ClientSecret.Reveal()}
	c.Method = methodFor(c.Secret, meta)
	if own.PrivateKey != "" {
		c.Method = methodKey
	}
	return c
}

// methodFor returns the authentication method of a client. According to RFC
// 8414, a server that lists no methods supports Basic.
func methodFor(secret string, meta serverMeta) string {
	switch {
	case secret == "":
		return methodNone
	case !slices.Contains(meta.Methods, methodBasic) && slices.Contains(meta.Methods, methodPost):
		return methodPost
	}
	return methodBasic
}

// register registers this program (RFC 7591).
func (s *Service) register(ctx context.Context, f discovered, redirect string) (client, error) {
	method := methodBasic
	for _, m := range []string{methodNone, methodBasic, methodPost} {
		if slices.Contains(f.meta.Methods, m) {
			method = m
			break
		}
	}
	grants := []string{"authorization_code"}
	if len(f.meta.Grants) == 0 || slices.Contains(f.meta.Grants, "refresh_token") {
		grants = append(grants, "refresh_token")
	}
	kind := "web"
	if u, err := url.Parse(redirect); err == nil {
		if c, ok := address.OfHost(u.Hostname()); ok && c == address.Loopback {
			kind = "native"
		}
	}
	body := encode(map[string]any{
		"client_name": "Junctor", "redirect_uris": []string{redirect}, "grant_types": grants, "response_types": []string{"code"},
		"token_endpoint_auth_method": method, "application_type": kind,
		"software_id": "junctor", "software_version": s.opts.Version,
	})
	a, err := s.out.ask(ctx, f.reach, http.MethodPost, f.meta.Registration, http.Header{"Content-Type": {"application/json"}}, body)
	if err != nil {
		return client{}, unreachable("its registration endpoint", err)
	}
	if f.unstated && (a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed) {
		// Nothing indicates that there is an authorization server.
		return client{}, &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "it requires credentials but offers no OAuth login; set authorization_token or headers for it"}
	}
	if a.status/100 != 2 {
		err := refusal(a)
		return client{}, &tool.Error{Kind: tool.UpstreamFailed, Err: err, Msg: fmt.Sprintf(
			"its authorization server refused to register Junctor (HTTP %d); register it there manually, with the redirect URI %s, and set oauth.clientId", a.status, redirect)}
	}
	var got struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Method string `json:"token_endpoint_auth_method"`
		Ends   int64  `json:"client_secret_expires_at"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil || got.ID == "" {
		return client{}, &tool.Error{Kind: tool.UpstreamFailed, Msg: "its authorization server's registration cannot be read", Err: err}
	}
	c := client{ID: got.ID, Secret: got.Secret, Method: got.Method, Redirect: redirect}
	if got.Ends > 0 {
		c.Ends = time.Unix(got.Ends, 0).UTC()
	}
	switch c.Method {
	case methodNone, methodBasic, methodPost:
	case "":
		c.Method = methodFor(c.Secret, f.meta)
	default:
		return client{}, &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf(
			"its authorization server requires client authentication by %s, which Junctor does not support", tool.Shorten(c.Method, 60)), Err: errors.ErrUnsupported}
	}
	return c, nil
}
