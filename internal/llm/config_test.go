package llm_test

import (
	"slices"
	"testing"

	"junctor/internal/llm"
	"junctor/internal/setting"
)

// TestConfigValidate checks that every violated rule of the configuration is
// reported under its own key, and that the defaults are valid.
func TestConfigValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string // keys of the reported problems
	}{
		"defaults":    {llm.DefaultConfig().Validate(), []string{"provider"}},
		"good":        {llm.Config{Provider: llm.Gemini, Model: "m", BaseURL: "http://localhost:1", Temperature: new(2.0)}.Validate(), nil},
		"words":       {llm.Config{Provider: "x", API: "y", ToolMode: "z"}.Validate(), []string{"api", "provider", "toolMode"}},
		"numbers":     {llm.Config{Provider: llm.OpenAI, MaxTokens: -1, ContextWindow: -1, MaxRetries: -1, TimeoutMs: -1, Temperature: new(-1.0)}.Validate(), []string{"contextWindow", "maxRetries", "maxTokens", "temperature", "timeoutMs"}},
		"compatible":  {llm.Config{Provider: llm.OpenAICompatible}.Validate(), []string{"baseUrl", "model"}},
		"bad address": {llm.Config{Provider: llm.OpenAI, BaseURL: "localhost"}.Validate(), []string{"baseUrl"}},
		"responses":   {llm.Config{Provider: llm.Gemini, API: llm.ResponsesAPI}.Validate(), []string{"api"}},
		"too many":    {llm.Config{Provider: llm.OpenAI, MaxTokens: 10, ContextWindow: 5}.Validate(), []string{"maxTokens"}},
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

func TestModelID(t *testing.T) {
	if got := (llm.Config{Provider: llm.OpenAI, Model: "m"}).ID(); got != "openai/m" {
		t.Error(got)
	}
	if got := (llm.Config{Name: "n", Provider: llm.OpenAI}).ID(); got != "n" {
		t.Error(got)
	}
}
