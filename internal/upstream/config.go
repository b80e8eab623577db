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
	// The name of the upstream, which qualifies the names of its tools: 1 to 64 characters of A-Z a-z 0-9 _ -. In a map of servers, it is the key.
	Name string `json:"name,omitempty"`
	// Transport to the server. auto uses streamable HTTP, or legacy SSE if the server supports only that. Default: stdio with command, auto with url.
	Transport Transport `json:"transport,omitempty"`

	// Program to start, looked up in PATH.
	Command string `json:"command,omitempty"`
	// Arguments of the program.
	Args []string `json:"args,omitempty"`
	// Environment variables of the program. They override those that inheritEnv passes on.
	Env map[string]telemetry.Secret `json:"env,omitempty"`
	// Working directory of the program. Relative paths are resolved against the folder of the configuration file. Default: Junctor's working directory.
	Cwd string `json:"cwd,omitempty"`
	// Names or globs of the variables that the program inherits from Junctor's environment; ["*"] means all. Default: variables that programs commonly need (PATH, HOME, LANG, proxies, certificates and similar); for servers under backends, all.
	InheritEnv []string `json:"inheritEnv,omitempty"`

	// URL of a remote server, http or https.
	URL string `json:"url,omitempty"`
	// HTTP headers to send with every request to the server.
	Headers map[string]telemetry.Secret `json:"headers,omitempty"`
	// Bearer token to send in the Authorization header.
	AuthorizationToken telemetry.Secret `json:"authorization_token,omitempty"`
	// OAuth 2.1 client for the server. Without it, Junctor detects whether the server requires a login, and registers its own client.
	OAuth *OAuth `json:"oauth,omitempty"`
	// Whether to send the caller's IP address to the server, in the X-Forwarded-For header.
	ForwardClientIP bool `json:"forwardClientIp,omitempty"`

	// OpenAPI document of an HTTP service whose operations become tools: a URL, or a file relative to the folder of the configuration file. OpenAPI 3.0 to 3.2 or Swagger 2.0, as JSON or YAML.
	OpenAPI string `json:"openapi,omitempty"`
	// Base URL of the service that the OpenAPI document describes. Default: the server URL in the document.
	BaseURL string `json:"baseUrl,omitempty"`
	// Operations of the OpenAPI document that become tools. Default: all.
	Operations Operations `json:"operations,omitzero"`
	// Credentials by the name of the security scheme in the OpenAPI document: an API key, a bearer token, "user:password" for HTTP basic authentication, or "clientId:clientSecret" for OAuth 2 client credentials. They are sent only to the service or, for OAuth 2, its token endpoint.
	Credentials map[string]telemetry.Secret `json:"credentials,omitempty"`

	// Idle timeout of a call: the maximum time without a response or progress.
	TimeoutMs setting.Millis `json:"timeoutMs"`
	// Total timeout of a call, regardless of progress.
	MaxTimeoutMs setting.Millis `json:"maxTimeoutMs"`
	// Timeout for starting, connecting and the handshake, and the time that callers wait for a server's first start. If a program exceeds it, each further attempt has twice the time, up to two minutes. Package runners (such as npx, uvx, bunx, pnpm dlx and docker run) have at least five minutes, because they may download the server first.
	StartTimeoutMs setting.Millis `json:"startTimeoutMs"`

	// Whether the server is used.
	Enabled bool `json:"enabled"`
	// Whether to expose the server at /api/mcp/{name}/proxy.
	Proxy bool `json:"proxy,omitempty"`
	// One-line description of the server, for people and models.
	Description string `json:"description,omitempty"`
	// Tags of all tools of the server.
	Tags []string `json:"tags,omitempty"`
	// Whether all callers share one session with the server (shared), or each caller has its own (perCaller). Use perCaller if the server keeps state or asks its users questions.
	SessionMode SessionMode `json:"sessionMode,omitempty"`
	// Which tools of the server are enabled.
	ToolConfiguration ToolConfiguration `json:"tool_configuration"`
	// Maximum number of concurrent calls; 0 means no limit.
	MaxConcurrent int `json:"maxConcurrent,omitempty"`
	// How long a call may wait in the queue when maxConcurrent is reached. This time does not count towards the call's timeouts.
	QueueTimeoutMs setting.Millis `json:"queueTimeoutMs"`
	// Whether only one node runs the server when several nodes share a PostgreSQL store.
	Singleton bool `json:"singleton,omitempty"`

	// Unset names the environment variables that the configuration uses for
	// the server and that have no value. The server is not started.
	Unset []string `json:"-"`
}

// Operations selects operations of an OpenAPI document by glob.
type Operations struct {
	// Globs of operation ids ("issues/*") or of methods and paths ("GET /repos/**"). * matches within a path segment, ** across segments.
	Include []string `json:"include,omitempty"`
	// Globs of operations to leave out. They take precedence over include.
	Exclude []string `json:"exclude,omitempty"`
}

// ToolConfiguration selects the enabled tools of an upstream.
type ToolConfiguration struct {
	// Whether the server's tools are enabled.
	Enabled bool `json:"enabled"`
	// Names or globs of the enabled tools. Default: all.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	// Names or globs of disabled tools. They take precedence over allowed_tools.
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
