package app

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"junctor/internal/config"
	"junctor/internal/telemetry"
)

// A probe for Ollama does not replace models that were configured in the
// meantime.
func TestConfiguredModelsOutliveAProbe(t *testing.T) {
	asked, configured := make(chan struct{}), make(chan struct{})
	ollama := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-configured
		_, _ = w.Write([]byte(`{"models":[{"name":"local"}]}`))
	}))
	defer ollama.Close()
	parse := func(text string) *config.Config {
		cfg, _, err := config.Parse("junctor.json", []byte(text), config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	a := &App{opts: Options{Redactor: &telemetry.Redactor{}}, log: slog.New(slog.DiscardHandler)}
	a.config.Store(parse(`{"llm":[{"provider":"ollama","baseUrl":"` + ollama.URL + `/v1"}]}`))
	m := newModelSet(a)
	probed := make(chan struct{})
	go func() {
		defer close(probed)
		m.choose(t.Context(), a.config.Load(), true)
	}()
	select {
	case <-asked:
	case <-probed: // a slow machine may not reach the server in time
	}
	m.choose(t.Context(), parse(`{"llm":[{"name":"mine","provider":"openai","model":"x","apiKey":"a key"}]}`), false)
	close(configured)
	<-probed
	var names []string
	for _, model := range m.set().All() {
		names = append(names, model.Info().ID)
	}
	if !slices.Equal(names, []string{"mine"}) {
		t.Errorf("the models are %q after a probe, want the configured one", names)
	}
}
