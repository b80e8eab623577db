package chat_test

import (
	"slices"
	"testing"

	"junctor/internal/chat"
	"junctor/internal/setting"
)

// TestConfigValidate checks that every violated rule of the configuration is
// reported under its own key, and that the defaults are valid.
func TestConfigValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string // keys of the reported problems
	}{
		"defaults": {chat.DefaultConfig().Validate(), nil},
		"zero":     {chat.Config{}.Validate(), []string{"maxConnections", "maxIdenticalCalls", "maxMessageBytes", "maxResultBytes", "maxSteps", "messagesPerMinute", "parallelCalls", "pingMs"}},
		"negative": {func() error {
			c := chat.DefaultConfig()
			c.MaxTokenCount, c.RetainNewestMessages, c.SummarizationThreshold, c.MetaToolsAbove, c.MaxSessions = -1, -1, -1, -1, -1
			c.SessionIdleMs, c.DisconnectGraceMs = -1, setting.MaxMillis+1
			return c.Validate()
		}(), []string{"disconnectGraceMs", "maxSessions", "maxTokenCount", "metaToolsAbove", "retainNewestMessages", "sessionIdleMs", "summarizationThreshold"}},
		"summary above the window": {func() error {
			c := chat.DefaultConfig()
			c.MaxTokenCount, c.SummarizationThreshold = 10, 20
			return c.Validate()
		}(), []string{"summarizationThreshold"}},
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
