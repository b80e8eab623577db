package upstream

import (
	"errors"
	"net/url"
	"strings"

	"junctor/internal/setting"
	"junctor/internal/tool"
)

// Validate reports everything that is wrong with the configuration, as
// setting.Problems, and changes nothing.
func (c Config) Validate() error {
	errs := []error{
		setting.OneOf("sessionMode", c.SessionMode),
		setting.CheckMillis("timeoutMs", c.TimeoutMs),
		setting.CheckMillis("maxTimeoutMs", c.MaxTimeoutMs),
		setting.CheckMillis("startTimeoutMs", c.StartTimeoutMs),
		setting.CheckMillis("queueTimeoutMs", c.QueueTimeoutMs),
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
			wrong("headers", "the value of %q contains a line break", name)
		}
	}
	if strings.ContainsAny(c.AuthorizationToken.Reveal(), "\r\n\x00") {
		wrong("authorization_token", "contains a line break")
	}
	errs = append(errs, globs("inheritEnv", c.InheritEnv),
		globs("tool_configuration.allowed_tools", c.ToolConfiguration.AllowedTools),
		globs("tool_configuration.excluded_tools", c.ToolConfiguration.ExcludedTools))
	if c.OAuth != nil {
		errs = append(errs, setting.Prefix("oauth", c.OAuth.Validate()), c.validatePersonalLogins())
	}
	return errors.Join(errs...)
}

// validateReach checks that exactly one of command, url and openapi is set, as
// the transport requires.
func (c Config) validateReach() error {
	var errs []error
	switch {
	case c.Command != "" && c.URL != "":
		errs = append(errs, setting.Wrong("url", "command and url are mutually exclusive; set only one: command starts a program, url connects to a running server"))
	case c.Command == "" && c.URL == "":
		errs = append(errs, setting.Wrong("", "has neither command nor url nor openapi; command starts a program, url connects to a running server, openapi turns an HTTP service into tools"))
	case c.Command != "" && (c.Transport == HTTP || c.Transport == SSE):
		errs = append(errs, setting.Wrong("transport", "%s needs a url, but command is set; remove transport, or set url instead", c.Transport))
	case c.URL != "" && c.Transport == Stdio:
		errs = append(errs, setting.Wrong("transport", "stdio needs a command, but url is set; remove transport, or set command instead"))
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
			errs = append(errs, setting.Wrong("credentials", "the value of %q contains a line break", name))
		}
	}
	return errors.Join(append(errs, globs("operations.include", c.Operations.Include), globs("operations.exclude", c.Operations.Exclude))...)
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
		return setting.Wrong(key, "contains a user name or password; use authorization_token or headers")
	}
	return nil
}

func globs(key string, patterns []string) error {
	var errs []error
	for i, p := range patterns {
		if p == "" {
			errs = append(errs, setting.PrefixIndex(key, i, setting.Wrong("", "is empty; write a name or a glob")))
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
