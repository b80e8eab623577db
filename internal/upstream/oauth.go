package upstream

import (
	"errors"
	"net/http"

	"junctor/internal/setting"
	"junctor/internal/telemetry"
)

// OAuth configures an OAuth client. Every field is optional: Junctor otherwise
// uses the metadata of the servers and registers itself.
type OAuth struct {
	// Client ID issued by the operator of the authorization server.
	ClientID string `json:"clientId,omitempty"`
	// Client secret of a confidential client.
	ClientSecret telemetry.Secret `json:"clientSecret,omitempty"`
	// Private key of the client, used instead of a client secret (private_key_jwt): PEM, or the path of a PEM file.
	PrivateKey telemetry.Secret `json:"privateKey,omitempty"`
	// Whether all callers share one login (gateway), or each caller signs in separately (caller). caller implies sessionMode perCaller. Default: gateway.
	Per LoginScope `json:"per,omitempty"`
	// How to obtain tokens: authorization_code asks a person to sign in, client_credentials uses the client's own secret or key, and jwt_bearer presents a token of the workload (assertion or assertionFile) or of an enterprise identity provider (identityProvider). Default: authorization_code.
	Grant Grant `json:"grant,omitempty"`
	// Scopes to request. Default: those that the server requires.
	Scopes []string `json:"scopes,omitempty"`
	// Issuer of the authorization server. Set it if the server's metadata names several authorization servers, or none.
	Issuer string `json:"issuer,omitempty"`
	// Authorization endpoint, for authorization servers without metadata.
	AuthorizationURL string `json:"authorizationUrl,omitempty"`
	// Token endpoint, for authorization servers without metadata.
	TokenURL string `json:"tokenUrl,omitempty"`
	// Redirect URI registered for the client, if it is not Junctor's own.
	RedirectURI string `json:"redirectUri,omitempty"`
	// Port of the loopback listener for the login callback, if the registered redirect URI requires one; 0 means any free port.
	CallbackPort int `json:"callbackPort,omitempty"`
	// HTTPS URL of a client ID metadata document, used instead of registering a client.
	ClientMetadataURL string `json:"clientMetadataUrl,omitempty"`

	// Whether to request tokens that are bound to a key (DPoP). Servers that require DPoP do not need this setting.
	DPoP bool `json:"dpop,omitempty"`

	// Token that identifies the workload, for grant jwt_bearer.
	Assertion telemetry.Secret `json:"assertion,omitempty"`
	// File with the token of the workload, for grant jwt_bearer. It is read again for each login.
	AssertionFile string `json:"assertionFile,omitempty"`
	// Enterprise identity provider that decides about access (enterprise-managed authorization), for grant jwt_bearer.
	IdentityProvider *IdentityProvider `json:"identityProvider,omitempty"`
}

// IdentityProvider exchanges a person's ID token for an identity assertion
// (ID-JAG), which the authorization server accepts.
type IdentityProvider struct {
	// Token endpoint of the identity provider.
	TokenURL string `json:"tokenUrl"`
	// Client ID at the identity provider.
	ClientID string `json:"clientId"`
	// Client secret at the identity provider, if any.
	ClientSecret telemetry.Secret `json:"clientSecret,omitempty"`
	// ID token of the person.
	IDToken telemetry.Secret `json:"idToken,omitempty"`
	// File with the ID token. It is read again for each login.
	IDTokenFile string `json:"idTokenFile,omitempty"`
}

// Grant is an OAuth grant type.
type Grant string

// The grants.
const (
	AuthorizationCode Grant = "authorization_code"
	ClientCredentials Grant = "client_credentials"
	JWTBearer         Grant = "jwt_bearer"
)

// Values lists the grants.
func (Grant) Values() []string {
	return []string{string(AuthorizationCode), string(ClientCredentials), string(JWTBearer)}
}

// LoginScope is the set of callers that share a login to an upstream: all
// callers of the gateway, or only one.
type LoginScope string

// The scopes of logins.
const (
	LoginPerGateway LoginScope = "gateway"
	LoginPerCaller  LoginScope = "caller"
)

// Values lists the scopes of logins.
func (LoginScope) Values() []string {
	return []string{string(LoginPerGateway), string(LoginPerCaller)}
}

// Login identifies a login to an upstream.
type Login struct {
	Server string
	// Caller is the ID of the [tool.Caller] whose login it is. It names a
	// person or a key, whatever client they use, and is never used again for
	// another. "" is the login that all callers share.
	Caller string
}

// PersonalLogins reports whether each caller has a login of its own.
func (c Config) PersonalLogins() bool { return c.OAuth != nil && c.OAuth.Per == LoginPerCaller }

// LoginOf returns the login that the requests of a caller use.
func (c Config) LoginOf(caller string) Login {
	if !c.PersonalLogins() {
		caller = ""
	}
	return Login{Server: c.Name, Caller: caller}
}

// validatePersonalLogins checks that no other setting makes callers share a
// login.
func (c Config) validatePersonalLogins() error {
	if !c.PersonalLogins() {
		return nil
	}
	var errs []error
	wrong := func(key, why string) { errs = append(errs, setting.Wrong(key, "%s", why)) }
	if c.URL == "" {
		wrong("oauth.per", "caller needs a server with a url")
	}
	if c.OAuth.Grant != "" && c.OAuth.Grant != AuthorizationCode {
		wrong("oauth.grant", "must be authorization_code when oauth.per is caller: the other grants involve no user")
	}
	if c.Singleton {
		wrong("singleton", "cannot be used when oauth.per is caller")
	}
	if c.AuthorizationToken != "" {
		wrong("authorization_token", "cannot be used when oauth.per is caller: all callers would use it")
	}
	for name := range c.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			wrong("headers", "Authorization cannot be used when oauth.per is caller: all callers would use it")
		}
	}
	return errors.Join(errs...)
}

// Validate reports everything that is wrong with the OAuth settings.
func (o OAuth) Validate() error {
	errs := []error{setting.OneOf("grant", o.Grant), setting.OneOf("per", o.Per)}
	for _, u := range []struct{ key, url string }{
		{"issuer", o.Issuer}, {"authorizationUrl", o.AuthorizationURL}, {"tokenUrl", o.TokenURL},
		{"redirectUri", o.RedirectURI}, {"clientMetadataUrl", o.ClientMetadataURL},
	} {
		if u.url != "" {
			errs = append(errs, httpURL(u.key, u.url))
		}
	}
	if o.CallbackPort < 0 || o.CallbackPort > 65535 {
		errs = append(errs, setting.Wrong("callbackPort", "must be a port, 1 to 65535"))
	}
	if o.Grant == ClientCredentials && (o.ClientID == "" || o.ClientSecret == "" && o.PrivateKey == "") {
		errs = append(errs, setting.Wrong("grant", "client_credentials needs clientId, and clientSecret or privateKey"))
	}
	if o.PrivateKey != "" && (o.ClientID == "" || o.ClientSecret != "") {
		errs = append(errs, setting.Wrong("privateKey", "requires clientId and cannot be combined with clientSecret"))
	}
	given := 0
	for _, set := range []bool{o.Assertion != "", o.AssertionFile != "", o.IdentityProvider != nil} {
		if set {
			given++
		}
	}
	switch {
	case o.Grant == JWTBearer && (o.ClientID == "" || given != 1):
		errs = append(errs, setting.Wrong("grant", "jwt_bearer needs clientId and one of assertion, assertionFile and identityProvider"))
	case o.Grant != JWTBearer && given > 0:
		errs = append(errs, setting.Wrong("grant", "must be jwt_bearer with assertion, assertionFile or identityProvider"))
	}
	if p := o.IdentityProvider; p != nil {
		errs = append(errs, setting.Prefix("identityProvider", p.validate()))
	}
	if o.ClientSecret != "" && o.ClientID == "" {
		errs = append(errs, setting.Wrong("clientSecret", "requires clientId"))
	}
	return errors.Join(errs...)
}

func (p IdentityProvider) validate() error {
	errs := []error{httpURL("tokenUrl", p.TokenURL)}
	if p.ClientID == "" {
		errs = append(errs, setting.Wrong("clientId", "is missing"))
	}
	if (p.IDToken == "") == (p.IDTokenFile == "") {
		errs = append(errs, setting.Wrong("idToken", "set one of idToken and idTokenFile"))
	}
	return errors.Join(errs...)
}
