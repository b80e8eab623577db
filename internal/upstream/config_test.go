package upstream_test

import (
	"slices"
	"strings"
	"testing"

	"junctor/internal/setting"
	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// TestConfigValidate checks that every rule of the configuration is reported
// under its own key, and that the defaults break none.
func TestConfigValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string // keys of the problems
	}{
		"command":        {upstream.Config{Name: "a", Command: "x", Args: []string{"y"}, Cwd: "/"}.Validate(), nil},
		"url":            {upstream.Config{Name: "a", URL: "https://x.example.com/mcp", Transport: upstream.SSE, OAuth: &upstream.OAuth{}}.Validate(), nil},
		"in process":     {upstream.Config{Name: "junctor", Transport: upstream.InProcess}.Validate(), nil},
		"zero":           {upstream.Config{}.Validate(), []string{"", "name"}},
		"long name":      {upstream.Config{Name: strings.Repeat("a", 65), Command: "x"}.Validate(), []string{"name"}},
		"both":           {upstream.Config{Name: "a", Command: "x", URL: "http://h"}.Validate(), []string{"url"}},
		"http command":   {upstream.Config{Name: "a", Command: "x", Transport: upstream.HTTP}.Validate(), []string{"transport"}},
		"stdio url":      {upstream.Config{Name: "a", URL: "http://h", Transport: upstream.Stdio}.Validate(), []string{"transport"}},
		"unknown":        {upstream.Config{Name: "a", Command: "x", Transport: "ws", SessionMode: "mine"}.Validate(), []string{"sessionMode", "transport"}},
		"not a URL":      {upstream.Config{Name: "a", URL: "http://[::1"}.Validate(), []string{"url"}},
		"no host":        {upstream.Config{Name: "a", URL: "http://"}.Validate(), []string{"url"}},
		"scheme":         {upstream.Config{Name: "a", URL: "file:///x"}.Validate(), []string{"url"}},
		"password":       {upstream.Config{Name: "a", URL: "http://u:p@h"}.Validate(), []string{"url"}},
		"for programs":   {upstream.Config{Name: "a", URL: "http://h", Args: []string{"x"}, Cwd: "/", Env: map[string]telemetry.Secret{"A": "b"}}.Validate(), []string{"args", "cwd", "env"}},
		"for remotes":    {upstream.Config{Name: "a", Command: "x", Headers: map[string]telemetry.Secret{"A": "b"}, AuthorizationToken: "t", OAuth: &upstream.OAuth{}}.Validate(), []string{"authorization_token", "headers", "oauth"}},
		"header forgery": {upstream.Config{Name: "a", URL: "http://h", Headers: map[string]telemetry.Secret{"A": "b\r\nC: d", "bad name": "x", "": "y"}, AuthorizationToken: "a\nb"}.Validate(), []string{"authorization_token", "headers", "headers", "headers"}},
		"bad variable":   {upstream.Config{Name: "a", Command: "x", Env: map[string]telemetry.Secret{"A=B": "c"}}.Validate(), []string{"env"}},
		"empty globs":    {upstream.Config{Name: "a", Command: "x", InheritEnv: []string{"A", ""}, ToolConfiguration: upstream.ToolConfiguration{AllowedTools: []string{""}, ExcludedTools: []string{""}}}.Validate(), []string{"inheritEnv[1]", "tool_configuration.allowed_tools[0]", "tool_configuration.excluded_tools[0]"}},
		"numbers":        {upstream.Config{Name: "a", Command: "x", TimeoutMs: -1, MaxTimeoutMs: -1, StartTimeoutMs: -1, MaxConcurrent: -1}.Validate(), []string{"maxConcurrent", "maxTimeoutMs", "startTimeoutMs", "timeoutMs"}},
		"timeout order":  {upstream.Config{Name: "a", Command: "x", TimeoutMs: 2, MaxTimeoutMs: 1}.Validate(), []string{"timeoutMs"}},
		"oauth": {upstream.Config{Name: "a", URL: "http://h", OAuth: &upstream.OAuth{
			Grant: upstream.ClientCredentials, ClientSecret: "s", Issuer: "x", CallbackPort: 70000,
		}}.Validate(), []string{"oauth.callbackPort", "oauth.clientSecret", "oauth.grant", "oauth.issuer"}},
		"oauth grant": {upstream.OAuth{Grant: "password"}.Validate(), []string{"grant"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range setting.Problems(tt.err) {
				if p.Msg == "" {
					t.Errorf("%s has no words", p.Key)
				}
				got = append(got, p.Key)
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("problems at %q, want %q: %v", got, tt.want, tt.err)
			}
		})
	}
}

func TestDefaultConfig(t *testing.T) {
	c := upstream.DefaultConfig()
	c.Name, c.Command = "a", "x"
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if !c.Enabled || !c.ForwardClientIP || c.TimeoutMs != 30_000 || c.MaxTimeoutMs != 600_000 || c.StartTimeoutMs != 10_000 || c.SessionMode != upstream.Shared {
		t.Errorf("%+v", c)
	}
}

func TestToolConfigurationAllows(t *testing.T) {
	for name, tt := range map[string]struct {
		c    upstream.ToolConfiguration
		tool string
		want bool
	}{
		"all":      {upstream.ToolConfiguration{Enabled: true}, "x", true},
		"off":      {upstream.ToolConfiguration{}, "x", false},
		"listed":   {upstream.ToolConfiguration{Enabled: true, AllowedTools: []string{"read_*"}}, "read_file", true},
		"unlisted": {upstream.ToolConfiguration{Enabled: true, AllowedTools: []string{"read_*"}}, "write_file", false},
		"excluded": {upstream.ToolConfiguration{Enabled: true, AllowedTools: []string{"*"}, ExcludedTools: []string{"rm"}}, "rm", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.c.Allows(tt.tool); got != tt.want {
				t.Errorf("Allows(%q) = %v", tt.tool, got)
			}
		})
	}
}

// Settings that would make callers share a login are rejected with personal
// logins.
func TestPersonalLoginsAreNotShared(t *testing.T) {
	good := upstream.DefaultConfig()
	good.Name, good.URL, good.OAuth = "x", "https://x.example/mcp", &upstream.OAuth{Per: upstream.LoginPerCaller}
	if err := good.Validate(); err != nil {
		t.Errorf("the configuration is refused: %v", err)
	}
	for want, change := range map[string]func(*upstream.Config){
		"oauth.grant": func(c *upstream.Config) {
			c.OAuth.ClientID, c.OAuth.ClientSecret, c.OAuth.Grant = "a", "b", upstream.ClientCredentials
		},
		"singleton":           func(c *upstream.Config) { c.Singleton = true },
		"authorization_token": func(c *upstream.Config) { c.AuthorizationToken = "t" },
		"headers":             func(c *upstream.Config) { c.Headers = map[string]telemetry.Secret{"authorization": "Bearer t"} },
		"oauth.per":           func(c *upstream.Config) { c.OAuth.Per = "person" },
		"needs a server with": func(c *upstream.Config) {
			c.URL, c.OpenAPI, c.OAuth.ClientID = "", "https://x.example/openapi.json", "a"
		},
	} {
		bad := good
		oauth := *good.OAuth
		bad.OAuth = &oauth
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
