package upstream

import (
	"junctor/internal/setting"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Config describes one upstream: Command for a child process, URL for a
// remote server, OpenAPI for an HTTP service, or none of them and Transport
// InProcess for the built-in one. It holds what is in the file after the loader
// has filled in defaults, converted the keys of other programs, and expanded
// variables.
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
	// Names or globs of the variables of Junctor's own environment that the program may see; ["*"] means all. Default: what programs need to run (PATH, HOME, LANG, proxies, certificates and the like); for servers under backends, all.
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

// Transport is the transport used to reach an upstream.
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

// Values lists the transports that a file may name.
func (Transport) Values() []string {
	return []string{string(Auto), string(Stdio), string(HTTP), string(SSE)}
}

// SessionMode says who shares a session with the upstream.
type SessionMode string

// The session modes.
const (
	Shared    SessionMode = "shared"
	PerCaller SessionMode = "perCaller"
)

// Values lists the session modes.
func (SessionMode) Values() []string { return []string{string(Shared), string(PerCaller)} }

// defaultInheritEnv lists the variables that a child process sees unless
// inheritEnv overrides them: those that programs commonly need, and no secrets.
// Names are case-insensitive on Windows.
func defaultInheritEnv() []string {
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

// DefaultConfig returns the defaults of an upstream.
func DefaultConfig() Config {
	return Config{
		InheritEnv:        defaultInheritEnv(),
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
