package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"junctor/internal/telemetry"
)

// Default base URLs of the providers without an SDK.
const (
	xaiURL    = "https://api.x.ai/v1"
	ollamaURL = "http://127.0.0.1:11434/v1"
)

// defaultModels are used if only a key is configured. They have names that the
// providers keep available, can call tools, and are neither the most expensive
// nor the weakest models.
var defaultModels = map[Provider]string{
	Gemini:    "gemini-flash-latest",
	OpenAI:    "gpt-5.5",
	Anthropic: "claude-sonnet-5-5",
	XAI:       "grok-4.6",
}

// keyVariables returns the environment variables of a provider's key, in order
// of preference.
func keyVariables(p Provider) []string {
	switch p {
	case Gemini:
		return []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}
	case OpenAI:
		return []string{"OPENAI_API_KEY"}
	case Anthropic:
		return []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}
	case XAI:
		return []string{"XAI_API_KEY"}
	case Ollama:
		return []string{"OLLAMA_API_KEY"}
	}
	return nil
}

func urlVariable(p Provider) string {
	switch p {
	case Gemini:
		return "GOOGLE_GEMINI_BASE_URL"
	case OpenAI:
		return "OPENAI_BASE_URL"
	case Anthropic:
		return "ANTHROPIC_BASE_URL"
	case XAI:
		return "XAI_BASE_URL"
	}
	return ""
}

// NoModel is the message to the user if no model is configured.
const NoModel = "no model is set up; set GEMINI_API_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY or XAI_API_KEY, or add \"llm\" to the configuration, or start Ollama (ollama serve), then try again"

// Choose returns the models to use, the default first. Settings that a
// configuration leaves open are filled in from the environment and the defaults
// of the provider and model. Without configurations, it returns one model for
// each provider whose key is in the environment or, if there is none, the
// models of a running Ollama server. The result may be empty; see [NoModel].
//
// env looks up an environment variable. ollama lists the models of an Ollama
// server at a base URL, see [ProbeOllama]; it may be nil.
func Choose(configs []Config, env func(string) string, ollama func(baseURL string) []string) []Config {
	var out []Config
	for _, c := range configs {
		out = append(out, c.complete(env, ollama))
	}
	if len(out) > 0 {
		return out
	}
	for _, p := range []Provider{Gemini, OpenAI, Anthropic, XAI} {
		c := DefaultConfig()
		c.Provider = p
		if c = c.complete(env, nil); c.APIKey != "" {
			out = append(out, c)
		}
	}
	if len(out) > 0 || ollama == nil {
		return out
	}
	base := DefaultConfig()
	base.Provider = Ollama
	base = base.complete(env, nil)
	for _, model := range ollama(base.BaseURL) {
		c := base
		c.Model = model
		out = append(out, c)
	}
	return out
}

func (c Config) complete(env func(string) string, ollama func(string) []string) Config {
	if c.APIKey == "" {
		for _, name := range keyVariables(c.Provider) {
			if v := env(name); v != "" {
				c.APIKey = telemetry.Secret(v)
				c.Bearer = name == "ANTHROPIC_AUTH_TOKEN"
				break
			}
		}
	}
	if c.BaseURL == "" {
		if name := urlVariable(c.Provider); name != "" {
			c.BaseURL = env(name)
		}
	}
	switch c.Provider {
	case OpenAI:
		c.header("OpenAI-Organization", env("OPENAI_ORG_ID"))
		c.header("OpenAI-Project", env("OPENAI_PROJECT_ID"))
	case XAI:
		if c.BaseURL == "" {
			c.BaseURL = xaiURL
		}
	case Ollama:
		if c.BaseURL == "" {
			c.BaseURL = ollamaHost(env("OLLAMA_HOST"))
		} else if u, err := url.Parse(c.BaseURL); err == nil && strings.Trim(u.Path, "/") == "" {
			c.BaseURL = u.JoinPath("v1").String()
		}
		if c.Model == "" && ollama != nil {
			if models := ollama(c.BaseURL); len(models) > 0 {
				c.Model = models[0]
			}
		}
	}
	if c.Model == "" {
		c.Model = defaultModels[c.Provider]
	}
	window, output := Limits(c.Provider, c.Model)
	if c.ContextWindow == 0 {
		c.ContextWindow = window
	}
	if c.MaxTokens == 0 {
		c.MaxTokens = output
	}
	return c
}

func (c *Config) header(name, value string) {
	if value == "" {
		return
	}
	if c.Headers == nil {
		c.Headers = map[string]string{}
	}
	c.Headers[name] = value
}

// ollamaHost parses OLLAMA_HOST as Ollama's own programs do: a host, a port or
// a URL, with or without a scheme.
func ollamaHost(v string) string {
	if v == "" {
		return ollamaURL
	}
	if !strings.Contains(v, "://") {
		v = "http://" + v
	}
	u, err := url.Parse(v)
	if err != nil {
		return ollamaURL
	}
	host, port := u.Hostname(), u.Port()
	if host == "" || host == "0.0.0.0" || host == "::" { // a listen address, to which clients cannot connect
		host = "127.0.0.1"
	}
	if port == "" {
		port = "11434"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return u.Scheme + "://" + net.JoinHostPort(host, port) + "/v1"
}

// ProbeOllama returns the models of the Ollama server at baseURL. An error
// means that there is no server.
func ProbeOllama(ctx context.Context, client *http.Client, baseURL string) ([]string, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("address of Ollama: %w", err)
	}
	u.Path, u.RawQuery = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")+"/api/tags", ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list models of Ollama: HTTP %d", res.StatusCode)
	}
	var list struct {
		Models []struct {
			Name    string `json:"name"`
			Details struct {
				Family string `json:"family"`
			} `json:"details"`
		} `json:"models"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 4<<20)).Decode(&list); err != nil {
		return nil, fmt.Errorf("list models of Ollama: %w", err)
	}
	var names []string
	for _, m := range list.Models {
		// Embedding models cannot chat.
		if m.Name != "" && !strings.Contains(m.Details.Family, "bert") && !strings.Contains(m.Name, "embed") {
			names = append(names, m.Name)
		}
	}
	return names, nil
}

// Set is the set of models that a session can choose from.
type Set struct{ models []Model }

// NewSet returns a set whose default is the first model.
func NewSet(models ...Model) *Set { return &Set{models: models} }

// All returns the models, the default first.
func (s *Set) All() []Model { return slices.Clone(s.models) }

// Get returns the model with the id, or the default for an empty id. It returns
// nil if there is none.
func (s *Set) Get(id string) Model {
	for _, m := range s.models {
		if id == "" || m.Info().ID == id {
			return m
		}
	}
	return nil
}
