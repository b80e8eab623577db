// Package models creates the models that a configuration describes. It is the
// only package that imports all SDK adapters.
package models

import (
	"fmt"
	"log/slog"
	"net/http"

	"junctor/internal/llm"
	"junctor/internal/llm/anthropic"
	"junctor/internal/llm/gemini"
	"junctor/internal/llm/openai"
	"junctor/internal/telemetry"
)

// New returns the model that cfg, completed by [llm.Choose], describes, with
// retries and its tool mode. transport may be nil. It sends nothing.
func New(cfg llm.Config, transport http.RoundTripper, log *slog.Logger) (llm.Model, error) {
	var m llm.Model
	switch cfg.Provider {
	case llm.Gemini:
		m = gemini.New(cfg, transport)
	case llm.Anthropic:
		m = anthropic.New(cfg, transport)
	case llm.OpenAI, llm.XAI, llm.Ollama, llm.OpenAICompatible:
		m = openai.New(cfg, transport)
	default:
		return nil, fmt.Errorf("llm.provider: %q is not known; use one of %v", cfg.Provider, cfg.Provider.Values())
	}
	m = llm.WithDebugLog(m, log.With(telemetry.KeyComponent, "llm"))
	m = llm.WithRetries(m, cfg.MaxRetries, log.With(telemetry.KeyComponent, "llm"))
	if cfg.ToolMode == llm.PromptTools {
		m = llm.WithPromptTools(m)
	}
	return m, nil
}

// NewSet returns the models of all configurations, the default first.
func NewSet(cfgs []llm.Config, transport http.RoundTripper, log *slog.Logger) (*llm.Set, error) {
	var all []llm.Model
	for _, cfg := range cfgs {
		m, err := New(cfg, transport, log)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return llm.NewSet(all...), nil
}
