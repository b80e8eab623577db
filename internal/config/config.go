package config

import (
	"errors"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/approval"
	"junctor/internal/auth"
	"junctor/internal/catalog"
	"junctor/internal/chat"
	"junctor/internal/codemode"
	"junctor/internal/discovery"
	"junctor/internal/executor"
	"junctor/internal/httpserver"
	"junctor/internal/llm"
	"junctor/internal/profile"
	"junctor/internal/setting"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// Config is the whole configuration: the file, the environment and the
// defaults, merged and validated.
//
// The tag apply says when a changed setting takes effect: live, in the running
// gateway, or restart, at its next start. It applies to everything below a
// field that has no tag of its own.
type Config struct {
	// MCP servers by name.
	Servers []upstream.Config `json:"mcpServers,omitempty" apply:"live"`
	// Rules for tools, matched by pattern. For each field, the last matching rule that sets it applies.
	ToolRules []catalog.ToolRule `json:"toolRules,omitempty" apply:"live"`
	// Named subsets of the servers and tools, to which callers and credentials can be restricted.
	Profiles map[string]profile.Config `json:"profiles,omitempty" apply:"live"`
	// The MCP API for agents.
	Discovery discovery.Config `json:"discovery" apply:"live"`
	// Limits of run_code scripts.
	Scripts codemode.Config `json:"scripts" apply:"live"`
	// Models for the chat and agentify: one model, or a list whose first model is the default. Default: one model for each provider whose API key is in the environment, or else the models of a running Ollama server.
	LLM []llm.Config `json:"llm,omitempty" apply:"live"`
	// Chat sessions: history, tool calls and limits.
	Chat chat.Config `json:"chat" apply:"live"`
	// Approval of calls by a person.
	Approval approval.Config `json:"approval" apply:"live"`
	// Address of the HTTP APIs, as host:port. Any host other than loopback requires authentication.
	Listen string `json:"listen" apply:"restart"`
	// URL at which clients and browsers reach the gateway, as scheme://host, such as https://tools.example.com. Default: the address of the listener.
	PublicURL string `json:"publicUrl,omitempty" apply:"live"`
	// TLS of the listener. Default: plain HTTP.
	TLS httpserver.TLSConfig `json:"tls" apply:"restart"`
	// Web pages that may call the HTTP APIs.
	CORS CORS `json:"cors" apply:"live"`
	// Limits on calls, results and requests.
	Limits Limits `json:"limits" apply:"live"`
	// Authentication and authorization for the HTTP APIs.
	Auth auth.Config `json:"auth" apply:"live"`
	// The circuit breaker of each tool.
	Circuit executor.CircuitConfig `json:"circuit" apply:"live"`
	// Storage of calls, sessions, tokens and keys.
	Store store.Config `json:"store" apply:"restart"`
	// Protection against changed tools and leaked secrets.
	Security Security `json:"security" apply:"live"`
	// Log output of the gateway process.
	Log telemetry.LogConfig `json:"log" apply:"live"`
	// Metrics and traces.
	Telemetry telemetry.Config `json:"telemetry" apply:"live"`
	// Whether to add the built-in server, named junctor. Default: only if no other server is enabled.
	Builtin *bool `json:"builtin,omitempty" apply:"live"`
	// Port of agentify's debug interface on loopback; 0 disables it.
	DebugPort int `json:"debugPort,omitempty" apply:"live"`

	place Place
	from  map[string]*node
	src   *source
	env   *environment
	files []string // files that were read or looked for
	state string   // fingerprint of files
}

// CORS lists the web pages that may call the HTTP APIs.
type CORS struct {
	// Allowed origins, such as https://app.example.com; ["*"] allows any. Default: only Junctor's own page.
	Origins []string `json:"origins,omitempty"`
}

// Limits has the limits on calls, results and requests.
type Limits struct {
	executor.LimitConfig
	// Maximum size of a request body, in bytes.
	MaxBodyBytes int `json:"maxBodyBytes"`
	// Maximum number of open streams per caller, not counting those of MCP and the chat; 0 means no limit.
	MaxStreamsPerCaller int `json:"maxStreamsPerCaller"`
	// Maximum number of MCP sessions; 0 means no limit.
	MaxSessions int `json:"maxSessions"`
}

// Security configures the protection against changed tools and leaked secrets.
type Security struct {
	catalog.SecurityConfig
	telemetry.RedactConfig
}

// defaultListen is the default of Listen.
const defaultListen = "127.0.0.1:8787"

// Default returns the default configuration.
func Default() *Config {
	x := executor.DefaultConfig()
	return &Config{
		Discovery: discovery.DefaultConfig(),
		Scripts:   codemode.DefaultConfig(),
		Chat:      chat.DefaultConfig(),
		Approval:  approval.DefaultConfig(),
		Listen:    defaultListen,
		Limits:    Limits{LimitConfig: x.Limits, MaxBodyBytes: 16 << 20, MaxStreamsPerCaller: 64, MaxSessions: 10_000},
		Auth:      auth.DefaultConfig(),
		Circuit:   x.Circuit,
		Store:     store.DefaultConfig(),
		Security:  Security{SecurityConfig: catalog.DefaultSecurityConfig()},
		Log:       telemetry.DefaultLogConfig(),
		Telemetry: telemetry.DefaultConfig(),
	}
}

// Validate reports everything that is wrong, as setting.Problems.
func (c *Config) Validate() error {
	var errs []error
	for _, s := range c.Servers {
		errs = append(errs, setting.Prefix(joinKey("mcpServers", s.Name), s.Validate()))
	}
	for i, r := range c.ToolRules {
		errs = append(errs, setting.PrefixIndex("toolRules", i, r.Validate()))
	}
	errs = append(errs, c.validProfiles())
	names := map[string]bool{}
	for i, m := range c.LLM {
		errs = append(errs, setting.PrefixIndex("llm", i, m.Validate()))
		if names[m.ID()] {
			errs = append(errs, setting.PrefixIndex("llm", i, setting.Wrong("name", "there is another model named %q; give one of them a name", m.ID())))
		}
		names[m.ID()] = true
	}
	errs = append(errs,
		setting.Prefix("discovery", c.Discovery.Validate()),
		setting.Prefix("scripts", c.Scripts.Validate()),
		setting.Prefix("chat", c.Chat.Validate()),
		setting.Prefix("approval", c.Approval.Validate()),
		validListen(c.Listen),
		c.validPublicURL(),
		setting.Prefix("tls", c.TLS.Validate()),
		setting.Prefix("cors", c.CORS.Validate()),
		setting.Prefix("limits", c.Limits.Validate()),
		setting.Prefix("auth", c.Auth.Validate()),
		setting.Prefix("circuit", c.Circuit.Validate()),
		setting.Prefix("store", c.Store.Validate()),
		setting.Prefix("security", c.Security.SecurityConfig.Validate()),
		setting.Prefix("security", c.Security.RedactConfig.Validate()),
		setting.Prefix("log", c.Log.Validate()),
		setting.Prefix("telemetry", c.Telemetry.Validate()),
	)
	if slices.Contains(c.CORS.Origins, "*") && auth.IsLoopback(c.Listen) && c.Auth.Loopback != auth.LoopbackKey {
		errs = append(errs, setting.Wrong("cors.origins", `"*" lets every web page that you visit run tools here, because this listener asks for no key; name the origins, or set auth.loopback to "key"`))
	}
	if c.DebugPort < 0 || c.DebugPort > 65535 {
		errs = append(errs, setting.Wrong("debugPort", "must be a port, 1 to 65535, or 0 for none"))
	}
	return errors.Join(errs...)
}

// validProfiles validates the profiles, and that those of keys and rules exist.
func (c *Config) validProfiles() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		p := c.Profiles[name]
		errs = append(errs, setting.Prefix(joinKey("profiles", name), errors.Join(
			profile.CheckName(name), p.Validate(), setting.OneOf("mode", discovery.Mode(p.Mode)),
		)))
	}
	known := func(key string, i int, field, name string) {
		if _, ok := c.Profiles[name]; !ok && name != "" {
			errs = append(errs, setting.Prefix("auth", setting.PrefixIndex(key, i, setting.Wrong(field, "there is no profile %q; define it under profiles", name))))
		}
	}
	for i, k := range c.Auth.Keys {
		known("keys", i, "profile", k.Profile)
	}
	rules := func(key string, list []auth.JWTRule) {
		for i, r := range list {
			for j, name := range r.Profiles {
				known(key, i, "profiles["+strconv.Itoa(j)+"]", name)
			}
		}
	}
	if c.Auth.JWT != nil {
		rules("jwt.rules", c.Auth.JWT.Rules)
	}
	if c.Auth.OIDC != nil {
		rules("oidc.rules", c.Auth.OIDC.Rules)
	}
	return errors.Join(errs...)
}

// Validate reports every invalid origin.
func (c CORS) Validate() error {
	var errs []error
	for i, o := range c.Origins {
		u, err := url.Parse(o)
		if o != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != o) {
			errs = append(errs, setting.PrefixIndex("origins", i, setting.Wrong("", `%q is not an origin; write scheme://host, such as "https://app.example.com", with no path`, o)))
		}
	}
	return errors.Join(errs...)
}

// Validate reports everything that is wrong with the limits.
func (l Limits) Validate() error {
	errs := []error{
		l.LimitConfig.Validate(),
		setting.NotNegative("maxStreamsPerCaller", l.MaxStreamsPerCaller),
		setting.NotNegative("maxSessions", l.MaxSessions),
	}
	if l.MaxBodyBytes < 1024 {
		errs = append(errs, setting.Wrong("maxBodyBytes", "must be at least 1024"))
	}
	return errors.Join(errs...)
}

func validListen(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		if n, perr := strconv.Atoi(port); perr == nil && n >= 0 && n <= 65535 {
			return nil
		}
	}
	return setting.Wrong("listen", "%q is not host:port; write an address such as %q", addr, defaultListen)
}

// validPublicURL validates publicUrl and the settings that depend on it.
func (c *Config) validPublicURL() error {
	if c.PublicURL == "" {
		if c.Auth.Server {
			return setting.Wrong("auth.server", "needs publicUrl, the address by which clients reach the gateway, such as https://tools.example.com")
		}
		return nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Scheme+"://"+u.Host != c.PublicURL || strings.ToLower(c.PublicURL) != c.PublicURL {
		return setting.Wrong("publicUrl", `%q is not scheme://host in lower case, such as "https://tools.example.com", with no path`, c.PublicURL)
	}
	if c.Auth.Server && u.Scheme != "https" && !auth.IsLoopback(net.JoinHostPort(u.Hostname(), "1")) {
		return setting.Wrong("publicUrl", "must be https with auth.server, unless it is on this machine: tokens would be sent unencrypted")
	}
	if c.Auth.Server && c.Auth.JWT != nil && strings.TrimSuffix(c.Auth.JWT.Issuer, "/") == c.PublicURL {
		return setting.Wrong("auth.jwt.issuer", "is this gateway itself, whose tokens auth.server checks already; name another issuer or leave auth.jwt out")
	}
	return nil
}

// Place returns where the configuration came from.
func (c *Config) Place() Place { return c.place }

// Lookup returns a variable from the first of these that has it: the real
// environment, the .env beside the file, that of the working folder unless the
// configuration was loaded without it, and the configuration itself.
func (c *Config) Lookup(name string) (string, bool) {
	if c.env == nil {
		return "", false
	}
	v, _, ok := c.env.lookup(name)
	return v, ok
}

// Server returns the upstream of that name.
func (c *Config) Server(name string) (upstream.Config, bool) {
	for _, s := range c.Servers {
		if s.Name == name {
			return s, true
		}
	}
	return upstream.Config{}, false
}
