package llm

import (
	"errors"
	"net/url"
	"strings"

	"junctor/internal/setting"
	"junctor/internal/telemetry"
)

// Config configures one model.
type Config struct {
	// Name by which sessions select the model. Default: provider/model.
	Name string `json:"name,omitempty"`
	// Provider of the model. Use openai-compatible, with baseUrl, for any other service that supports OpenAI's protocol.
	Provider Provider `json:"provider"`
	// Name of the model at the provider.
	Model string `json:"model,omitempty"`
	// OpenAI API to use: chat completions (chat) or responses (responses).
	API API `json:"api,omitempty"`
	// Base URL of the provider's API. Default: the provider's environment variable, such as OPENAI_BASE_URL, or else its standard URL.
	BaseURL string `json:"baseUrl,omitempty"`
	// API key for the provider. Default: the environment variable that the provider's own tools use, such as OPENAI_API_KEY.
	APIKey telemetry.Secret `json:"apiKey,omitempty"`
	// Sampling temperature, from 0 to 2. Default: the provider's.
	Temperature *float64 `json:"temperature,omitempty"`
	// System prompt of conversations with the model.
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// How the model receives tools: native tool calling (native), or fenced blocks in the prompt for models without it (prompt).
	ToolMode ToolMode `json:"toolMode,omitempty"`
	// Maximum number of tokens in a reply. Default: the provider's, or a value that suits the model if the provider requires one.
	MaxTokens int `json:"maxTokens,omitempty"`
	// Size of the context window, in tokens. Default: the known size of the model, or else 128000; 32768 for Ollama.
	ContextWindow int `json:"contextWindow,omitempty"`
	// Maximum number of retries if the provider is busy or fails before the first byte of a reply.
	MaxRetries int `json:"maxRetries"`
	// Idle timeout of a model request.
	TimeoutMs setting.Millis `json:"timeoutMs"`

	// What the environment adds, see [Choose]: headers of the request, and
	// whether the key is a bearer token.
	Headers map[string]string `json:"-"`
	Bearer  bool              `json:"-"`
}

// Provider is the provider of a model.
type Provider string

// The providers.
const (
	Gemini           Provider = "gemini"
	OpenAI           Provider = "openai"
	Anthropic        Provider = "anthropic"
	XAI              Provider = "xai"
	Ollama           Provider = "ollama"
	OpenAICompatible Provider = "openai-compatible"
)

// Values lists the providers.
func (Provider) Values() []string {
	return []string{string(Gemini), string(OpenAI), string(Anthropic), string(XAI), string(Ollama), string(OpenAICompatible)}
}

// API is one of OpenAI's interfaces.
type API string

// OpenAI's interfaces.
const (
	ChatAPI      API = "chat"
	ResponsesAPI API = "responses"
)

// Values lists the interfaces.
func (API) Values() []string { return []string{string(ChatAPI), string(ResponsesAPI)} }

// ToolMode is how a model gets its tools.
type ToolMode string

// The ways a model gets its tools.
const (
	NativeTools ToolMode = "native"
	PromptTools ToolMode = "prompt"
)

// Values lists the ways a model gets its tools.
func (ToolMode) Values() []string { return []string{string(NativeTools), string(PromptTools)} }

// DefaultConfig returns the default values of a model's configuration.
func DefaultConfig() Config {
	return Config{
		API:        ChatAPI,
		ToolMode:   NativeTools,
		MaxRetries: 3,
		TimeoutMs:  120_000,
	}
}

// ID returns the name by which the model is chosen.
func (c Config) ID() string {
	if c.Name != "" {
		return c.Name
	}
	return string(c.Provider) + "/" + c.Model
}

// Info describes the model.
func (c Config) Info() Info {
	return Info{ID: c.ID(), Provider: c.Provider, Model: c.Model, ContextWindow: c.ContextWindow, MaxTokens: c.MaxTokens, SystemPrompt: c.SystemPrompt}
}

// ReplyTokens returns the maximum number of tokens of the reply to req, or 0 if
// the provider decides.
func (c Config) ReplyTokens(req Request) int {
	if req.MaxTokens > 0 && (c.MaxTokens == 0 || req.MaxTokens < c.MaxTokens) {
		return req.MaxTokens
	}
	return c.MaxTokens
}

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	errs := []error{
		setting.OneOf("provider", c.Provider),
		setting.OneOf("api", c.API),
		setting.OneOf("toolMode", c.ToolMode),
		setting.NotNegative("maxTokens", c.MaxTokens),
		setting.NotNegative("contextWindow", c.ContextWindow),
		setting.NotNegative("maxRetries", c.MaxRetries),
		setting.CheckMillis("timeoutMs", c.TimeoutMs),
	}
	wrong := func(key, format string, args ...any) {
		errs = append(errs, setting.Wrong(key, format, args...))
	}
	if c.Provider == "" {
		wrong("provider", "is missing; use one of %s", strings.Join(c.Provider.Values(), ", "))
	}
	if c.Provider == OpenAICompatible && c.BaseURL == "" {
		wrong("baseUrl", "is missing; openai-compatible needs the address of the model's server")
	}
	if c.Model == "" && c.Provider == OpenAICompatible {
		wrong("model", "is missing; openai-compatible needs the name of the model")
	}
	if c.BaseURL != "" {
		if u, err := url.Parse(c.BaseURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			wrong("baseUrl", "must be an http or https address")
		}
	}
	if t := c.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		wrong("temperature", "must be between 0 and 2")
	}
	if c.API == ResponsesAPI && c.Provider != OpenAI && c.Provider != OpenAICompatible && c.Provider != "" {
		wrong("api", "responses is an OpenAI API; %s does not support it", c.Provider)
	}
	if c.MaxTokens > 0 && c.ContextWindow > 0 && c.MaxTokens > c.ContextWindow {
		wrong("maxTokens", "is %d, more than contextWindow (%d)", c.MaxTokens, c.ContextWindow)
	}
	return errors.Join(errs...)
}
