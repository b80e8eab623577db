package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"
	"time"
)

// canary is a secret that does not look like one: it is masked only if it was
// added or belongs to a key with a secret name.
const canary = "correct horse battery"

// canaryHolder is a type without special support in the logger.
type canaryHolder struct {
	Name     string
	Password string
	Nested   map[string]any
}

type talkative struct{ text string }

func (t talkative) String() string { return t.text }

type valuer struct{ text string }

func (v valuer) LogValue() slog.Value { return slog.GroupValue(slog.String("inner", v.text)) }

// TestSecretsAreNotLogged: a secret is masked in every way that it can be
// logged.
func TestSecretsAreNotLogged(t *testing.T) {
	for _, format := range []LogFormat{FormatText, FormatJSON} {
		for name, known := range map[string]bool{"known": true, "shaped": false} {
			t.Run(fmt.Sprint(format, " ", name), func(t *testing.T) {
				secret := ghToken
				r := &Redactor{}
				if known {
					secret = canary
					r.Add(canary)
				}
				var out bytes.Buffer
				ring := NewRing[LogEntry](100)
				log := NewLogger(LogOptions{Output: &out, Format: format, Redactor: r, Recent: ring})
				ctx := WithRequest(context.Background(), "req "+secret)
				log.InfoContext(ctx, "message "+secret)
				log.Info("m", "s", "x "+secret, "token", "plain", "b", []byte(secret), "raw", json.RawMessage(`{"a":"`+secret+`"}`))
				log.Info("m", "err", fmt.Errorf("wrapped: %w", errors.New("cause "+secret)))
				log.Info("m", "stringer", talkative{secret}, "valuer", valuer{secret}, "secret type", Secret(secret))
				log.Info("m", "any", canaryHolder{Name: secret, Password: secret, Nested: map[string]any{"k": []string{secret}}})
				log.Info("m", "ptr", &canaryHolder{Name: secret}, "list", []string{"a", secret}, "map", map[string]string{"x": secret})
				log.Info("m", slog.Group("g", slog.String("in", secret), slog.Group("h", slog.Any("e", errors.New(secret)))))
				log.Info("m", "unmarshalable", map[string]any{"f": func() {}, "s": secret})
				log.With("bound", secret, "password", secret).WithGroup("grp").With("x", secret).Info("m", "y", secret)
				log.Info("m", "apiKey", canaryHolder{Name: "x"}, "authorization", errors.New("boom"))
				entries, err := json.Marshal(ring.Latest(0))
				if err != nil {
					t.Fatal(err)
				}
				for where, text := range map[string]string{"log": out.String(), "ring": string(entries)} {
					if strings.Contains(text, secret) || strings.Contains(text, "plain") && format == FormatJSON && where == "log" && strings.Contains(text, `"token":"plain"`) {
						t.Errorf("the %s shows the secret:\n%s", where, text)
					}
					if strings.Count(text, Redacted) < 20 {
						t.Errorf("the %s has only %d masks:\n%s", where, strings.Count(text, Redacted), text)
					}
				}
				if format == FormatJSON {
					for line := range strings.Lines(out.String()) {
						if !json.Valid([]byte(line)) {
							t.Errorf("not JSON: %s", line)
						}
					}
				}
			})
		}
	}
}

// TestValuesWithoutSecretsAreLoggedUnchanged: values without secrets are logged
// as slog logs them.
func TestValuesWithoutSecretsAreLoggedUnchanged(t *testing.T) {
	var out bytes.Buffer
	log := NewLogger(LogOptions{Output: &out, Format: FormatJSON, Redactor: &Redactor{}})
	log.Info("m", "n", 1, "d", time.Second, "b", true, "nil", nil, "list", []int{1, 2}, "kind", LogFormat("x"), "e", errors.New("e"), "t", map[string]int{"a": 1})
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "time")
	b, _ := json.Marshal(got)
	want := `{"b":true,"dMs":1000,"e":"e","kind":"x","level":"INFO","list":[1,2],"msg":"m","n":1,"nil":null,"t":{"a":1}}`
	if string(b) != want {
		t.Errorf("line:\n got %s\nwant %s", b, want)
	}
}

func TestLevels(t *testing.T) {
	all := []slog.Level{SlogTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError, SlogFatal}
	for level, want := range map[Level]string{
		LevelTrace: "TRACE DEBUG INFO WARN ERROR FATAL", LevelDebug: "DEBUG INFO WARN ERROR FATAL", LevelInfo: "INFO WARN ERROR FATAL",
		LevelWarn: "WARN ERROR FATAL", LevelError: "ERROR FATAL", LevelFatal: "FATAL", LevelSilent: "", "": "INFO WARN ERROR FATAL",
	} {
		for _, format := range []LogFormat{FormatText, FormatJSON} {
			var out bytes.Buffer
			var v slog.LevelVar
			ring := NewRing[LogEntry](10)
			log := NewLogger(LogOptions{Output: &out, Format: format, Level: &v, Recent: ring})
			v.Set(level.Slog()) // while the logger is in use
			for _, l := range all {
				log.Log(context.Background(), l, "m")
			}
			var got, kept []string
			for line := range strings.Lines(out.String()) {
				for _, l := range all {
					if strings.Contains(line, levelName(l)) {
						got = append(got, levelName(l))
					}
				}
			}
			for _, e := range ring.Latest(0) {
				kept = append(kept, e.Level)
			}
			if strings.Join(got, " ") != want || strings.Join(kept, " ") != want {
				t.Errorf("%s %s: wrote %v, kept %v; want %s", level, format, got, kept, want)
			}
		}
	}
}

func TestAutoFormat(t *testing.T) {
	for terminal, want := range map[bool]string{true: "INFO  hello  a=1\n", false: `"msg":"hello","a":1}` + "\n"} {
		var out bytes.Buffer
		NewLogger(LogOptions{Output: &out, Terminal: terminal, Format: FormatAuto}).Info("hello", "a", 1)
		if !strings.HasSuffix(out.String(), want) {
			t.Errorf("terminal %v: %q, want it to end with %q", terminal, out.String(), want)
		}
	}
}

func TestConsole(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 6e6, time.UTC)
	for name, tt := range map[string]struct {
		colour bool
		log    func(*slog.Logger)
		want   string
	}{
		"plain":     {log: func(l *slog.Logger) { l.Info("m") }, want: "15:04:05.006 INFO  m"},
		"component": {log: func(l *slog.Logger) { l.With("component", "store", "a", 1).Warn("m", "b", "x y") }, want: `15:04:05.006 WARN  store: m  a=1 b="x y"`},
		"its own":   {log: func(l *slog.Logger) { l.Info("m", "component", "chat") }, want: "15:04:05.006 INFO  chat: m"},
		"groups":    {log: func(l *slog.Logger) { l.WithGroup("g").With("a", 1).WithGroup("h").Info("m", slog.Group("i", "b", 2)) }, want: "15:04:05.006 INFO  m  g.a=1 g.h.i.b=2"},
		"values":    {log: func(l *slog.Logger) { l.Info("m", "t", at, "d", 1234567*time.Nanosecond, "e", "") }, want: `15:04:05.006 INFO  m  t=2026-01-02T15:04:05Z d=1.235ms e=""`},
		"control":   {log: func(l *slog.Logger) { l.Info("a\nb\x1b[31m", "k", "x\ny", "=", "a=b") }, want: `15:04:05.006 INFO  a\nb\x1b[31m  k="x\ny" =="a=b"`},
		"colour":    {colour: true, log: func(l *slog.Logger) { l.Error("m", "a", 1) }, want: "\x1b[2m15:04:05.006\x1b[0m \x1b[31mERROR\x1b[0m m  \x1b[2ma=\x1b[0m1"},
		"no group":  {log: func(l *slog.Logger) { l.WithGroup("").Debug("m") }, want: "15:04:05.006 DEBUG m"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			h := newConsole(&out, SlogTrace, tt.colour)
			tt.log(slog.New(fixedTime{h, at}))
			if got := strings.TrimSuffix(out.String(), "\n"); got != tt.want {
				t.Errorf("\n got %q\nwant %q", got, tt.want)
			}
		})
	}
}

// fixedTime sets the time of every record.
type fixedTime struct {
	slog.Handler
	at time.Time
}

func (f fixedTime) Handle(ctx context.Context, r slog.Record) error {
	r.Time = f.at
	return f.Handler.Handle(ctx, r)
}
func (f fixedTime) WithAttrs(a []slog.Attr) slog.Handler {
	return fixedTime{f.Handler.WithAttrs(a), f.at}
}
func (f fixedTime) WithGroup(n string) slog.Handler { return fixedTime{f.Handler.WithGroup(n), f.at} }

// TestHandlerPassesSlogtest runs the handler tests of the standard library.
func TestHandlerPassesSlogtest(t *testing.T) {
	var out bytes.Buffer
	ring := NewRing[LogEntry](100)
	h := (&Redactor{}).Handler(newLines(&out, ring, slog.LevelInfo))
	err := slogtest.TestHandler(h, func() []map[string]any {
		var all []map[string]any
		for line := range strings.Lines(out.String()) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
		return all
	})
	if err != nil {
		t.Error(err)
	}
}

func TestContextIDsAreLogged(t *testing.T) {
	var out bytes.Buffer
	log := NewLogger(LogOptions{Output: &out, Format: FormatJSON})
	ctx := context.Background()
	if RequestID(ctx) != "" || TraceID(ctx) != "" {
		t.Error("an empty context knows something")
	}
	trace := newTrace()
	ctx = WithTrace(WithSession(WithRequest(ctx, "r1"), "s1"), trace)
	if RequestID(ctx) != "r1" || TraceID(ctx) != trace.TraceID().String() {
		t.Errorf("the context knows %q, %q", RequestID(ctx), TraceID(ctx))
	}
	log.InfoContext(ctx, "m", "a", 1)
	want := `"msg":"m","a":1,"requestId":"r1","sessionId":"s1","traceId":"` + trace.TraceID().String() + `"}` + "\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("line %s, want it to end with %s", out.String(), want)
	}
	out.Reset()
	log.With("component", "store").InfoContext(WithRequest(ctx, "r2"), "m", "sessionId", "mine")
	for key, want := range map[string]string{"component": "store", "sessionId": "mine", "requestId": "r2"} {
		if strings.Count(out.String(), `"`+key+`"`) != 1 || !strings.Contains(out.String(), `"`+key+`":"`+want+`"`) {
			t.Errorf("%s: want %s once in %s", key, want, out.String())
		}
	}
}

func TestRing(t *testing.T) {
	r := NewRing[int](3)
	if got := r.Latest(0); len(got) != 0 {
		t.Errorf("an empty ring has %v", got)
	}
	for i := range 5 {
		r.Add(i)
	}
	for n, want := range map[int]string{0: "[2 3 4]", 2: "[3 4]", 9: "[2 3 4]"} {
		if got := fmt.Sprint(r.Latest(n)); got != want {
			t.Errorf("Latest(%d) = %s, want %s", n, got, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	latest, more, missed := r.Follow(ctx, 1)
	if fmt.Sprint(latest) != "[4]" {
		t.Errorf("Follow began with %v", latest)
	}
	for i := range cap(more) + 7 {
		r.Add(100 + i)
	}
	if got := <-more; got != 100 {
		t.Errorf("the first that followed is %d", got)
	}
	if missed() != 7 || missed() != 0 {
		t.Error("what was missed is not counted once")
	}
	cancel()
	for followed := 1; followed > 0; {
		r.mu.Lock()
		followed = len(r.followers)
		r.mu.Unlock()
	}
}

// brokenWriter always fails.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestWriteErrorIsReturned(t *testing.T) {
	ring := NewRing[LogEntry](2)
	log := NewLogger(LogOptions{Output: brokenWriter{}, Terminal: true, Recent: ring})
	if err := log.Handler().Handle(context.Background(), slog.NewRecord(time.Now(), slog.LevelInfo, "m", 0)); err == nil {
		t.Error("a failed write is not reported")
	}
	if len(ring.Latest(0)) != 1 {
		t.Error("one output's failure kept the line from the other")
	}
}

func TestSecret(t *testing.T) {
	s := Secret(canary)
	b, err := json.Marshal(map[string]any{"a": s, "e": Secret("")})
	if err != nil || string(b) != `{"a":"[redacted]","e":""}` {
		t.Errorf("JSON = %s, %v", b, err)
	}
	for _, verb := range []string{"%v", "%s", "%+v", "%#v", "%q"} {
		if got := fmt.Sprintf(verb, s) + fmt.Sprintf(verb, struct{ S Secret }{s}); strings.Contains(got, canary) {
			t.Errorf("%s shows %s", verb, got)
		}
	}
	if s.Reveal() != canary {
		t.Error("Reveal does not")
	}
}

func TestDurationsHaveAUnit(t *testing.T) {
	for _, format := range []LogFormat{FormatJSON, FormatText} {
		var out bytes.Buffer
		log := NewLogger(LogOptions{Output: &out, Format: format})
		log.With("wait", 2*time.Second).Info("done", "took", 1234567*time.Nanosecond, slog.Group("step", "took", time.Millisecond), "n", 3)
		want := []string{`"waitMs":2000,`, `"tookMs":1.234,`, `"step":{"tookMs":1},`, `"n":3}`}
		if format == FormatText {
			want = []string{" waitMs=2000 ", " tookMs=1.234 ", " step.tookMs=1 ", " n=3"}
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: no %s in %s", format, w, out.String())
			}
		}
	}
}
