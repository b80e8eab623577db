package telemetry_test

import (
	"slices"
	"testing"

	"junctor/internal/setting"
	"junctor/internal/telemetry"
)

// TestConfigValidate checks that every rule of the configuration is reported
// under its own key, and that the defaults break none.
func TestConfigValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string // keys of the problems
	}{
		"defaults":    {telemetry.DefaultConfig().Validate(), nil},
		"log":         {telemetry.DefaultLogConfig().Validate(), nil},
		"bad log":     {telemetry.LogConfig{Level: "loud", Format: "xml"}.Validate(), []string{"format", "level"}},
		"otlp":        {telemetry.Config{OTLP: &telemetry.OTLPConfig{Endpoint: "https://h:4318", SampleRatio: new(0.5)}}.Validate(), nil},
		"no endpoint": {telemetry.Config{OTLP: &telemetry.OTLPConfig{SampleRatio: new(1.5)}}.Validate(), []string{"otlp.endpoint", "otlp.sampleRatio"}},
		"redact":      {telemetry.RedactConfig{Redact: []string{"a+", "(", "b*"}}.Validate(), []string{"redact[1]", "redact[2]"}},
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
