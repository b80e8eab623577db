package app

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"junctor/internal/config"
	"junctor/internal/telemetry"
)

// A change of other settings keeps the models of a local Ollama.
func TestProbedModelsOutliveAConfigurationChange(t *testing.T) {
	var model atomic.Pointer[string]
	model.Store(new("local"))
	ollama := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"models":[{"name":"` + *model.Load() + `"}]}`))
	}))
	defer ollama.Close()
	host := ollama.URL
	parse := func(text string) *config.Config {
		env := map[string]string{"OLLAMA_HOST": host}
		cfg, _, err := config.Parse("junctor.json", []byte(text), config.Options{LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	a := &App{opts: Options{Redactor: &telemetry.Redactor{}}, log: slog.New(slog.DiscardHandler)}
	a.config.Store(parse(`{}`))
	m := newModelSet(a)
	for m.choose(t.Context(), a.config.Load(), true); len(m.set().All()) == 0; { // a slow machine may not answer in time
		m.choose(t.Context(), a.config.Load(), true)
	}
	apply := func(text string) (names []string) {
		a.config.Store(parse(text))
		m.choose(t.Context(), a.config.Load(), false)
		for _, model := range m.set().All() {
			names = append(names, model.Info().ID)
		}
		return names
	}
	if got := apply(`{"limits":{"maxSessions":3}}`); !slices.Equal(got, []string{"ollama/local"}) {
		t.Errorf("the models are %q after a change of another setting", got)
	}
	if got := apply(`{"llm":[{"name":"mine","provider":"openai","model":"x","apiKey":"a key"}]}`); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("the models are %q, want the configured one", got)
	}
	if got := apply(`{}`); !slices.Equal(got, []string{"ollama/local"}) {
		t.Errorf("the models are %q without the configured one", got)
	}
	// The new probe after the change finds another model.
	model.Store(new("newer"))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = m.run(ctx) }()
	eventually(t, "the other model", func() bool {
		all := m.set().All()
		return len(all) == 1 && all[0].Info().ID == "ollama/newer"
	})
	stop()
	<-done
	host = "127.0.0.1:1"
	if got := apply(`{}`); got != nil {
		t.Errorf("the models are %q for an Ollama at another address", got)
	}
}

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
