package upstream

import (
	"errors"
	"net/url"
	"strings"

	"junctor/internal/setting"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Config describes one upstream: Command for a child process, URL for a
// remote server, OpenAPI for an HTTP service, or none of them and Transport
// InProcess for the built-in one. It
// holds what is in the file after the loader has filled in defaults, settled
// the words that other programs use, and expanded variables.
type Config struct {
	// The name of the upstream, by which tools are qualified: 1 to 64 of A-Z a-z 0-9 _ -. In a map of servers it is the map's key.
	Name string `json:"name,omitempty"`
	// How to talk to the server. Without it, command means stdio and url means auto (streamable HTTP, and legacy SSE where the server speaks only that).
	Transport Transport `json:"transport,omitempty"`

	// The program to start; looked up in PATH.
	Command string `json:"command,omitempty"`
	// The arguments of the program.
	Args []string `json:"args,omitempty"`
	// Environment variables given to the program, over those that inheritEnv lets through.
	Env map[string]telemetry.Secret `json:"env,omitempty"`
	// The folder in which the program starts; relative paths are taken from the configuration file's folder. Default: that of Junctor.
	Cwd string `json:"cwd,omitempty"`
	// Names or globs of the variables of Junctor's own environment that the program may see; ["*"] means all. Default: what programs need to run (PATH, HOME, LANG, proxies, certificates and the like).
	InheritEnv []string `json:"inheritEnv,omitempty"`

	// The address of a remote server, http or https.
	URL string `json:"url,omitempty"`
	// HTTP headers sent with every request to the server.
	Headers map[string]telemetry.Secret `json:"headers,omitempty"`
	// A bearer token for the server, sent as the Authorization header.
	AuthorizationToken telemetry.Secret `json:"authorization_token,omitempty"`
	// OAuth 2.1 for the server. Without it Junctor finds out by itself whether a login is needed and registers itself; with it the client is configured.
	OAuth *OAuth `json:"oauth,omitempty"`
	// Tell the server the address of the caller (X-Forwarded-For).
	ForwardClientIP bool `json:"forwardClientIp,omitempty"`

	// The OpenAPI document of an HTTP service whose operations become tools: an address, or a file (relative to the configuration file's folder). JSON or YAML; OpenAPI 3.0 to 3.2 or Swagger 2.0.
	OpenAPI string `json:"openapi,omitempty"`
	// The address of the service that the OpenAPI document describes. Default: what the document says.
	BaseURL string `json:"baseUrl,omitempty"`
	// Which operations of the OpenAPI document become tools. Default: all.
	Operations Operations `json:"operations,omitzero"`
	// Credentials by the name of the security scheme in the OpenAPI document: an API key, a bearer token, "user:password" for HTTP basic, or "clientId:clientSecret" for OAuth 2 client credentials. They are sent to the service alone.
	Credentials map[string]telemetry.Secret `json:"credentials,omitempty"`

	// Idle timeout of a call: how long it may take without a response or progress.
	TimeoutMs setting.Millis `json:"timeoutMs"`
	// Total timeout of a call, with or without progress.
	MaxTimeoutMs setting.Millis `json:"maxTimeoutMs"`
	// How long starting, connecting and the handshake may take, and how long callers wait for a server that starts for the first time. A program that needed longer gets twice the time on each further attempt, up to two minutes. Package runners (npx, uvx, bunx, pnpm dlx, docker run) may take five minutes, because they download the server first.
	StartTimeoutMs setting.Millis `json:"startTimeoutMs"`

	// Whether the upstream is used at all.
	Enabled bool `json:"enabled"`
	// Make the server available at /api/mcp/{name}/proxy.
	Proxy bool `json:"proxy,omitempty"`
	// One line about the server, for people and models.
	Description string `json:"description,omitempty"`
	// Tags that all tools of the server carry.
	Tags []string `json:"tags,omitempty"`
	// One session for all callers, or one for each caller; the latter where a server keeps state or asks its users.
	SessionMode SessionMode `json:"sessionMode,omitempty"`
	// Which tools of the server are enabled.
	ToolConfiguration ToolConfiguration `json:"tool_configuration"`
	// How many calls may be in flight at once; 0 means no limit.
	MaxConcurrent int `json:"maxConcurrent,omitempty"`
	// How long a call may wait for its turn under maxConcurrent; that time does not count as the server's.
	QueueTimeoutMs setting.Millis `json:"queueTimeoutMs"`
	// Run the server on one node alone when several share a PostgreSQL store.
	Singleton bool `json:"singleton,omitempty"`

	// Unset names the environment variables that the configuration uses for
	// the server and that have no value. The server is not started.
	Unset []string `json:"-"`
}

// OAuth is a client configured by hand. Every field may be empty; Junctor
// then asks the servers' metadata or registers itself.
type OAuth struct {
	// The client id given by the authorization server's operator.
	ClientID string `json:"clientId,omitempty"`
	// The client secret, for confidential clients.
	ClientSecret telemetry.Secret `json:"clientSecret,omitempty"`
	// The client's private key in place of a secret (private_key_jwt): PEM, or the path of a PEM file.
	PrivateKey telemetry.Secret `json:"privateKey,omitempty"`
	// How tokens are obtained: authorization_code asks a person, client_credentials uses the client's own secret or key, jwt_bearer presents a token of the workload (assertion) or of the enterprise (identityProvider).
	Grant Grant `json:"grant,omitempty"`
	// The scopes to ask for. Default: what the server says it needs.
	Scopes []string `json:"scopes,omitempty"`
	// The authorization server to use where the resource names several, or none.
	Issuer string `json:"issuer,omitempty"`
	// The authorization endpoint, for servers without metadata.
	AuthorizationURL string `json:"authorizationUrl,omitempty"`
	// The token endpoint, for servers without metadata.
	TokenURL string `json:"tokenUrl,omitempty"`
	// The redirect URI that was registered for the client, when it is not Junctor's own.
	RedirectURI string `json:"redirectUri,omitempty"`
	// The port of the loopback listener at login, when the registered redirect URI asks for one; 0 means any free port.
	CallbackPort int `json:"callbackPort,omitempty"`
	// The https address of a client id metadata document to present instead of registering.
	ClientMetadataURL string `json:"clientMetadataUrl,omitempty"`

	// Ask for tokens that are bound to a key (DPoP). Servers that require it are served so without this setting.
	DPoP bool `json:"dpop,omitempty"`

	// With grant jwt_bearer: the token that identifies the workload.
	Assertion telemetry.Secret `json:"assertion,omitempty"`
	// With grant jwt_bearer: the file that contains the token of the workload. It is read again for each login.
	AssertionFile string `json:"assertionFile,omitempty"`
	// With grant jwt_bearer: the identity provider of an enterprise that decides about access (enterprise-managed authorization).
	IdentityProvider *IdentityProvider `json:"identityProvider,omitempty"`
}

// IdentityProvider exchanges a person's ID token for an identity assertion
// (ID-JAG), which the authorization server accepts.
type IdentityProvider struct {
	// The token endpoint of the identity provider.
	TokenURL string `json:"tokenUrl"`
	// The client id at the identity provider.
	ClientID string `json:"clientId"`
	// The client secret at the identity provider, if there is one.
	ClientSecret telemetry.Secret `json:"clientSecret,omitempty"`
	// The ID token of the person.
	IDToken telemetry.Secret `json:"idToken,omitempty"`
	// The file that contains the ID token. It is read again for each login.
	IDTokenFile string `json:"idTokenFile,omitempty"`
}

// Operations selects operations of an OpenAPI document by glob.
type Operations struct {
	// Globs of operation ids ("issues/*") or of methods and paths ("GET /repos/**"); * matches within a part between slashes, ** across them.
	Include []string `json:"include,omitempty"`
	// Globs of operations that do not become tools; they win over include.
	Exclude []string `json:"exclude,omitempty"`
}

// ToolConfiguration narrows the tools of an upstream.
type ToolConfiguration struct {
	// Whether the server's tools are enabled.
	Enabled bool `json:"enabled"`
	// Names or globs of the enabled tools. Default: all.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	// Names or globs of disabled tools; they win over allowed_tools.
	ExcludedTools []string `json:"excluded_tools,omitempty"`
}

// Allows reports whether the upstream's tool of this name is offered.
func (t ToolConfiguration) Allows(name string) bool {
	if !t.Enabled || tool.MatchAny(t.ExcludedTools, name) {
		return false
	}
	return len(t.AllowedTools) == 0 || tool.MatchAny(t.AllowedTools, name)
}

// Transport is the way to an upstream.
type Transport string

// The transports. InProcess and OpenAPI are not written in files: the first is
// the built-in upstream's, the second follows from openapi.
const (
	Auto      Transport = "auto"
	Stdio     Transport = "stdio"
	HTTP      Transport = "http"
	SSE       Transport = "sse"
	InProcess Transport = "inprocess"
	OpenAPI   Transport = "openapi"
)

// Words lists the transports that a file may name.
func (Transport) Words() []string {
	return []string{string(Auto), string(Stdio), string(HTTP), string(SSE)}
}

// SessionMode says who shares a session with the upstream.
type SessionMode string

// The session modes.
const (
	Shared    SessionMode = "shared"
	PerCaller SessionMode = "perCaller"
)

// Words lists the session modes.
func (SessionMode) Words() []string { return []string{string(Shared), string(PerCaller)} }

// Grant is an OAuth grant type.
type Grant string

// The grants.
const (
	AuthorizationCode Grant = "authorization_code"
	ClientCredentials Grant = "client_credentials"
	JWTBearer         Grant = "jwt_bearer"
)

// Words lists the grants.
func (Grant) Words() []string {
	return []string{string(AuthorizationCode), string(ClientCredentials), string(JWTBearer)}
}

// DefaultInheritEnv lists the variables that a child process sees unless
// inheritEnv says otherwise: what programs need to run anywhere, and no
// secret. Names are compared without case on Windows.
func DefaultInheritEnv() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "TMPDIR", "XDG_*",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
		"npm_config_*", "NPM_CONFIG_*",
		// Windows
		"SystemRoot", "SystemDrive", "WINDIR", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
		"HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "ProgramFiles", "ProgramFiles(x86)",
		"ProgramW6432", "CommonProgramFiles", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "OS",
	}
}

// DefaultConfig returns what holds for an upstream where its entry is silent.
func DefaultConfig() Config {
	return Config{
		InheritEnv:        DefaultInheritEnv(),
		ForwardClientIP:   true,
		TimeoutMs:         30_000,
		MaxTimeoutMs:      600_000,
		StartTimeoutMs:    10_000,
		QueueTimeoutMs:    60_000,
		Enabled:           true,
		SessionMode:       Shared,
		ToolConfiguration: ToolConfiguration{Enabled: true},
	}
}

// Validate reports everything that is wrong with the configuration, as
// setting.Problems, and changes nothing.
func (c Config) Validate() error {
	errs := []error{
		setting.OneOf("sessionMode", c.SessionMode),
		setting.Span("timeoutMs", c.TimeoutMs),
		setting.Span("maxTimeoutMs", c.MaxTimeoutMs),
		setting.Span("startTimeoutMs", c.StartTimeoutMs),
		setting.Span("queueTimeoutMs", c.QueueTimeoutMs),
		setting.NotNegative("maxConcurrent", c.MaxConcurrent),
	}
	wrong := func(key, format string, args ...any) {
		errs = append(errs, setting.Wrong(key, format, args...))
	}
	if !tool.ValidServer(c.Name) {
		wrong("name", "invalid server name %q; use 1 to %d characters of A-Z a-z 0-9 _ -", c.Name, tool.MaxServerName)
	}
	switch {
	case c.OpenAPI != "":
		errs = append(errs, c.validateOpenAPI())
	case c.Transport != InProcess:
		errs = append(errs, setting.OneOf("transport", c.Transport), c.validateReach())
	}
	if c.MaxTimeoutMs > 0 && c.TimeoutMs > c.MaxTimeoutMs {
		wrong("timeoutMs", "is %d, more than maxTimeoutMs (%d)", c.TimeoutMs, c.MaxTimeoutMs)
	}
	for name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			wrong("env", "%q cannot name an environment variable", name)
		}
	}
	for name, value := range c.Headers {
		if !validHeaderName(name) {
			wrong("headers", "%q cannot name an HTTP header", name)
		}
		if strings.ContainsAny(value.Reveal(), "\r\n\x00") {
			wrong("headers", "the value of %q has a line break in it", name)
		}
	}
	if strings.ContainsAny(c.AuthorizationToken.Reveal(), "\r\n\x00") {
		wrong("authorization_token", "has a line break in it")
	}
	errs = append(errs, globs("inheritEnv", c.InheritEnv),
		globs("tool_configuration.allowed_tools", c.ToolConfiguration.AllowedTools),
		globs("tool_configuration.excluded_tools", c.ToolConfiguration.ExcludedTools))
	if c.OAuth != nil {
		errs = append(errs, setting.Under("oauth", c.OAuth.Validate()))
	}
	return errors.Join(errs...)
}

// validateReach checks that there is exactly one way to the server.
func (c Config) validateReach() error {
	var errs []error
	switch {
	case c.Command != "" && c.URL != "":
		errs = append(errs, setting.Wrong("url", "command and url contradict each other; keep one: command starts a program, url connects to a running server"))
	case c.Command == "" && c.URL == "":
		errs = append(errs, setting.Wrong("", "has neither command nor url nor openapi; command starts a program, url connects to a running server, openapi makes tools of an HTTP service"))
	case c.Command != "" && (c.Transport == HTTP || c.Transport == SSE):
		errs = append(errs, setting.Wrong("transport", "%s needs a url, but there is a command; remove the transport or write url", c.Transport))
	case c.URL != "" && c.Transport == Stdio:
		errs = append(errs, setting.Wrong("transport", "stdio needs a command, but there is a url; remove the transport or write command"))
	}
	if c.URL != "" {
		errs = append(errs, httpURL("url", c.URL))
	} else if c.Command != "" {
		for key, set := range map[string]bool{
			"headers":             len(c.Headers) > 0,
			"authorization_token": c.AuthorizationToken != "",
			"oauth":               c.OAuth != nil,
		} {
			if set {
				errs = append(errs, setting.Wrong(key, "is for servers with a url; a program gets its secrets in env"))
			}
		}
	}
	if c.Command == "" && c.URL != "" {
		for key, set := range map[string]bool{"args": len(c.Args) > 0, "cwd": c.Cwd != "", "env": len(c.Env) > 0} {
			if set {
				errs = append(errs, setting.Wrong(key, "is for servers with a command; a remote server gets headers"))
			}
		}
	}
	return errors.Join(errs...)
}

// validateOpenAPI checks an entry that describes an HTTP service.
func (c Config) validateOpenAPI() error {
	var errs []error
	for key, set := range map[string]bool{
		"command": c.Command != "", "url": c.URL != "", "args": len(c.Args) > 0, "cwd": c.Cwd != "", "env": len(c.Env) > 0,
		"proxy": c.Proxy,
	} {
		if set {
			errs = append(errs, setting.Wrong(key, "cannot be used with openapi"))
		}
	}
	if c.Transport != OpenAPI && c.Transport != Auto && c.Transport != "" {
		errs = append(errs, setting.Wrong("transport", "cannot be used with openapi"))
	}
	if strings.Contains(c.OpenAPI, "://") {
		errs = append(errs, httpURL("openapi", c.OpenAPI))
	}
	if c.BaseURL != "" {
		errs = append(errs, httpURL("baseUrl", c.BaseURL))
	}
	if c.OAuth != nil && c.OAuth.ClientID == "" && c.OAuth.Issuer == "" {
		errs = append(errs, setting.Wrong("oauth", "needs clientId with openapi: the id that the service gave your client"))
	}
	for name, value := range c.Credentials {
		if strings.ContainsAny(value.Reveal(), "\r\n\x00") {
			errs = append(errs, setting.Wrong("credentials", "the value of %q has a line break in it", name))
		}
	}
	return errors.Join(append(errs, globs("operations.include", c.Operations.Include), globs("operations.exclude", c.Operations.Exclude))...)
}

// Validate reports everything that is wrong with the OAuth settings.
func (o OAuth) Validate() error {
	errs := []error{setting.OneOf("grant", o.Grant)}
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
		errs = append(errs, setting.Wrong("privateKey", "needs clientId, and takes the place of clientSecret"))
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
		errs = append(errs, setting.Under("identityProvider", p.validate()))
	}
	if o.ClientSecret != "" && o.ClientID == "" {
		errs = append(errs, setting.Wrong("clientSecret", "is of no use without clientId"))
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

func httpURL(key, raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return setting.Wrong(key, "is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return setting.Wrong(key, "must begin with http:// or https://")
	case u.Hostname() == "":
		return setting.Wrong(key, "has no host")
	case u.User != nil:
		return setting.Wrong(key, "has a user name or password in it; use authorization_token or headers")
	}
	return nil
}

func globs(key string, patterns []string) error {
	var errs []error
	for i, p := range patterns {
		if p == "" {
			errs = append(errs, setting.UnderIndex(key, i, setting.Wrong("", "is empty; write a name or a glob")))
		}
	}
	return errors.Join(errs...)
}

func validHeaderName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?={}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}
