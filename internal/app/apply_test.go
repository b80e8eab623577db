package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"junctor/internal/approval"
	"junctor/internal/auth"
	"junctor/internal/catalog"
	"junctor/internal/config"
	"junctor/internal/listing"
	"junctor/internal/llm"
	"junctor/internal/profile"
	"junctor/internal/search"
	"junctor/internal/setting"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

// inForce returns the live settings as the parts of the gateway use them. They
// are read from a.config only if the gateway reads them from there at each
// use.
func (a *App) inForce() *config.Config {
	c := config.Default()
	for _, st := range a.upstreams.Status() {
		if server, ok := a.upstreams.Config(st.Name); ok && server.Transport != upstream.InProcess {
			c.Servers = append(c.Servers, server)
		}
	}
	_, builtin := a.upstreams.Config("junctor")
	c.Builtin = &builtin
	c.ToolRules, c.Profiles = a.catalog.Rules(), a.profiles.CurrentConfig()
	c.Discovery, c.Scripts = a.discovery.CurrentConfig(), a.scripts.CurrentConfig()
	for _, m := range a.models.set().All() {
		c.LLM = append(c.LLM, llm.Config{Name: m.Info().ID})
	}
	c.Chat = a.chat.CurrentConfig()
	c.Approval = a.approvals.CurrentConfig()
	c.Auth, c.CORS.Origins = a.gates.all[0].CurrentConfig()
	x := a.executor.CurrentConfig()
	c.Circuit, c.Limits.LimitConfig = x.Circuit, x.Limits
	c.Limits.MaxSessions = a.discovery.MaxSessions()
	c.Security.SecurityConfig = a.guard.CurrentConfig()
	c.Security.RedactConfig = a.opts.Redactor.CurrentConfig()
	for _, word := range telemetry.Level("").Values() {
		if level := telemetry.Level(word); level.Slog() == a.opts.Level.Level() {
			c.Log.Level = level
		}
	}
	now := a.config.Load() // read at every request
	c.Limits.MaxBodyBytes, c.Limits.MaxStreamsPerCaller = now.Limits.MaxBodyBytes, now.Limits.MaxStreamsPerCaller
	c.Telemetry.Metrics = now.Telemetry.Metrics
	c.PublicURL = now.PublicURL
	c.DebugPort = now.DebugPort // TestAnEditorBringsItsOwnBackends opens and closes it
	return c
}

// another sets other values for settings that are lists or optional.
var another = map[string]func(c *config.Config){
	"mcpServers": func(c *config.Config) {
		s := upstream.DefaultConfig()
		s.Name, s.Command, s.Transport, s.Enabled = "other", "true", upstream.Stdio, false
		c.Servers = []upstream.Config{s}
	},
	"toolRules": func(c *config.Config) {
		c.ToolRules = []catalog.ToolRule{{Pattern: []string{"x:*"}, Tags: []string{"y"}}}
	},
	"profiles":            func(c *config.Config) { c.Profiles = map[string]profile.Config{"p": {Servers: []string{"x"}}} },
	"llm":                 func(c *config.Config) { c.LLM = []llm.Config{{Name: "mine", Provider: llm.Ollama, Model: "m"}} },
	"cors.origins":        func(c *config.Config) { c.CORS.Origins = []string{"https://a.example"} },
	"auth.trustedProxies": func(c *config.Config) { c.Auth.TrustedProxies = []string{"10.0.0.0/8"} },
	"auth.keys":           func(c *config.Config) { c.Auth.Keys = []auth.KeyConfig{{Name: "k", Key: "sixteen-letters-at-least"}} },
	"auth.jwt": func(c *config.Config) {
		c.Auth.JWT = &auth.JWTConfig{Issuer: "https://i.example", Audience: "https://a.example"}
	},
	"auth.oidc": func(c *config.Config) {
		c.Auth.OIDC = &auth.OIDCConfig{Issuer: "https://i.example", ClientID: "junctor"}
	},
	"approval.webhook": func(c *config.Config) {
		c.Approval.Webhook = &approval.Webhook{URL: "https://a.example", Secret: "sixteen-letters-at-least"}
	},
	"publicUrl":         func(c *config.Config) { c.PublicURL = "https://a.example" },
	"builtin":           func(c *config.Config) { yes := false; c.Builtin = &yes },
	"limits.callerRate": func(c *config.Config) { c.Limits.CallerRate = &setting.Rate{Calls: 7, PerMs: 1000} },
	"limits.toolRate":   func(c *config.Config) { c.Limits.ToolRate = &setting.Rate{Calls: 7, PerMs: 1000} },
	"security.redact":   func(c *config.Config) { c.Security.Redact = []string{"abc+"} },
}

// TestApplyReachesEveryLiveSetting changes the live settings one at a time and
// checks the part of the gateway that uses each.
func TestApplyReachesEveryLiveSetting(t *testing.T) {
	r := start(t, `{}`, t.TempDir())
	leaves(reflect.TypeFor[config.Config](), nil, "", "", func(key, apply string, index []int) {
		if apply != "live" {
			return
		}
		cfg := config.Default()
		field := func(c *config.Config) reflect.Value { return reflect.ValueOf(c).Elem().FieldByIndex(index) }
		if change := another[key]; change != nil {
			change(cfg)
		} else if v := field(cfg); !alter(v) {
			t.Errorf("%s: add a value to the table of this test", key)
			return
		}
		r.apply(t.Context(), cfg)
		got, want := field(r.inForce()).Interface(), field(cfg).Interface()
		if key == "llm" {
			want = []llm.Config{{Name: "mine"}}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v is in force after %v was applied", key, got, want)
		}
		r.apply(t.Context(), config.Default())
	})
	if log := r.log.String(); strings.Contains(log, "next start only") {
		t.Errorf("a restart was asked for: %s", log)
	}
}

// leaves calls f for every setting that is not an object.
func leaves(typ reflect.Type, index []int, key, apply string, f func(key, apply string, index []int)) {
	for i := range typ.NumField() {
		sf := typ.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if !sf.IsExported() || name == "" && !sf.Anonymous {
			continue
		}
		mark, under := apply, key
		if own := sf.Tag.Get("apply"); own != "" {
			mark = own
		}
		if !sf.Anonymous {
			under = strings.TrimPrefix(key+"."+name, ".")
		}
		at := append(append([]int(nil), index...), i)
		if sf.Type.Kind() == reflect.Struct {
			leaves(sf.Type, at, under, mark, f)
			continue
		}
		f(under, mark, at)
	}
}

// alter changes the value of a setting; it returns false if the type is not
// supported.
func alter(v reflect.Value) bool {
	switch words, _ := v.Interface().(interface{ Values() []string }); {
	case words != nil:
		for _, w := range words.Values() {
			if w != v.String() {
				v.SetString(w)
				return true
			}
		}
		return false
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.CanInt():
		v.SetInt(v.Int() + 1)
	case v.Kind() == reflect.Float64:
		v.SetFloat(v.Float() / 2)
	default:
		return false
	}
	return true
}

// TestApplyNamesWhatNeedsARestart checks that changed settings that need a
// restart are logged.
func TestApplyNamesWhatNeedsARestart(t *testing.T) {
	r := start(t, `{}`, t.TempDir())
	r.write(`{"log":{"format":"json"},"telemetry":{"metrics":false,"otlp":{"endpoint":"http://127.0.0.1:1"}},"limits":{"maxBodyBytes":2000},"security":{"redact":["winter[0-9]+"]}}`)
	eventually(t, "the change", func() bool { return strings.Contains(r.log.String(), "configuration applied") })
	if log := r.log.String(); !strings.Contains(log, "next start only") || !strings.Contains(log, "log.format") || !strings.Contains(log, "telemetry.otlp") || strings.Contains(log, "maxBodyBytes") {
		t.Errorf("log: %s", log)
	}
	if code, _ := r.ask("GET", "/metrics", ""); code != http.StatusNotFound {
		t.Errorf("metrics: %d", code)
	}
	if code, body := r.ask("POST", "/api/call", `{"tool":"calculate","arguments":{"expression":"`+strings.Repeat("1", 2000)+`"}}`); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body over the new limit: %d %s", code, body)
	}
	r.App.log.Info("code is winter2027")
	if log := r.log.String(); strings.Contains(log, "winter2027") {
		t.Error("the new pattern is not redacted")
	}
	before := strings.Count(r.log.String(), "configuration applied")
	if err := (settings{r.App}).edit(config.Set("none", []byte(`{"command":"true","enabled":false}`))); err != nil {
		t.Fatal(err)
	}
	r.write(`{"log":{"level":"debug"}}`)
	eventually(t, "the last change", func() bool { return r.config.Load().Log.Level == telemetry.LevelDebug })
	eventually(t, "its log line", func() bool { return strings.Count(r.log.String(), "configuration applied") >= before+2 })
	if n := strings.Count(r.log.String(), "configuration applied"); n != before+2 {
		t.Errorf("two changes were applied %d times", n-before)
	}
}

// TestTagsOfAChangedRuleReachSearch searches for tools by a tag from a rule,
// before and after the rule changes.
func TestTagsOfAChangedRuleReachSearch(t *testing.T) {
	server := entry(t, upstreamtest.Stdio(t, "files", upstreamtest.Script{}))
	with := func(tag string) string {
		return fmt.Sprintf(`{"mcpServers":{"files":%s},"toolRules":[{"pattern":"files:*","tags":[%q]}]}`, server, tag)
	}
	r := start(t, with("alpha"), t.TempDir())
	find := func(tag string) int {
		hits, err := r.search.Search(search.Query{Text: "echo", Tags: []string{tag}, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return len(hits)
	}
	eventually(t, "tools with the tag", func() bool { return find("alpha") > 0 })
	r.write(with("beta"))
	eventually(t, "tools with the new tag", func() bool { return find("beta") > 0 })
	if n := find("alpha"); n != 0 {
		t.Errorf("the old tag still finds %d tools", n)
	}
}

// TestApplyNeverMixesConfigurations alternates between two configurations
// while other goroutines read the catalogue, search and call. In each
// configuration a rule disables one of two tools, and the server's settings
// leave out the other. Both are only enabled if the rules of one configuration
// are mixed with the server's settings of the other.
func TestApplyNeverMixesConfigurations(t *testing.T) {
	tools := []json.RawMessage{}
	for _, name := range []string{"one", "two", "echo"} {
		tools = append(tools, json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"the tool %s","inputSchema":{"type":"object"}}`, name, name)))
	}
	url := upstreamtest.Listen(t, upstreamtest.Script{Tools: tools}).Config("files").URL
	with := func(generation, ruledOut, allowed string) string {
		return fmt.Sprintf(`{"mcpServers":{"files":{"url":%q,"description":%[2]q,"tags":[%[2]q],"tool_configuration":{"allowed_tools":["echo",%[4]q]}}},
			"toolRules":[{"pattern":"files:%[3]s","enabled":false},{"pattern":"files:*","tags":["rule %[2]s"]}],"builtin":false}`, url, generation, ruledOut, allowed)
	}
	r := start(t, with("a", "one", "one"), t.TempDir())
	load := func(text string) *config.Config {
		r.write(text)
		cfg, _, err := config.Load(config.Options{File: r.file})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	configs := []*config.Config{load(with("b", "two", "two")), load(with("a", "one", "one"))}
	eventually(t, "the tools", func() bool { return r.catalog.Snapshot().Len() == 3 })

	done := make(chan struct{})
	var readers sync.WaitGroup
	loop := func(check func()) {
		readers.Go(func() {
			for {
				check()
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	loop(func() {
		s := r.catalog.Snapshot().Server("files")
		for _, e := range s.Tools {
			if want := []string{s.Description, "rule " + s.Description}; !slices.Equal(e.Tags, want) || e.Enabled != (e.Name.Tool == "echo") {
				t.Errorf("%s has the tags %q and enabled=%v in configuration %q", e.Name, e.Tags, e.Enabled, s.Description)
			}
		}
	})
	loop(func() {
		snap := r.catalog.Snapshot()
		for _, tag := range []string{"rule a", "rule b"} {
			found, err := r.tools.Search(snap, &tool.Local, listing.Filter{Tags: []string{tag}}, search.Query{Text: "echo"})
			if err != nil || len(found) > 0 && snap.Server("files").Description != strings.TrimPrefix(tag, "rule ") {
				t.Errorf("found %v, %v", found, err)
			}
		}
	})
	loop(func() {
		for name, want := range map[string]tool.Kind{"one": tool.ToolDisabled, "two": tool.ToolDisabled, "echo": ""} {
			_, err := r.executor.Call(t.Context(), tool.Call{Caller: tool.Local, Server: "files", Tool: name, Arguments: json.RawMessage(`{}`)})
			if err == nil && want != "" || err != nil && tool.KindOf(err) != want {
				t.Errorf("call of %s: %v, want %q", name, err, want)
			}
		}
	})
	for range 100 {
		for _, cfg := range configs {
			r.apply(t.Context(), cfg)
		}
	}
	close(done)
	readers.Wait()
}
