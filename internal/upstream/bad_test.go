package upstream_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

// Every server here is broken in a different way from the start. The status of
// each must give the reason, and none may affect the good one.
func TestBrokenServerErrors(t *testing.T) {
	t.Parallel()
	web := upstreamtest.Listen(t, upstreamtest.Script{})
	web.Before = func(w http.ResponseWriter, _ *http.Request) bool { upstreamtest.HTML(w); return true }
	drops := upstreamtest.Listen(t, upstreamtest.Script{})
	drops.Before = func(w http.ResponseWriter, _ *http.Request) bool { upstreamtest.Drop(w); return true }
	circle := upstreamtest.Listen(t, upstreamtest.Script{})
	circle.Before = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	away := upstreamtest.Listen(t, upstreamtest.Script{})
	away.Before = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "ftp://example.com/", http.StatusTemporaryRedirect)
		return true
	}
	wants := upstreamtest.Listen(t, upstreamtest.Script{})
	wants.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	nothing := upstreamtest.Listen(t, upstreamtest.Script{})
	nothing.Before = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNotFound); return true }
	refuses := upstreamtest.Listen(t, upstreamtest.Script{})
	refuses.Stop()
	hangs := upstreamtest.Listen(t, upstreamtest.Script{Hang: true})

	program := func(command string) upstream.Config {
		c := upstream.DefaultConfig()
		c.Command = command
		return c
	}
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	address := func(url string) upstream.Config {
		c := upstream.DefaultConfig()
		c.URL = url
		return c
	}
	stdio := func(s upstreamtest.Script) upstream.Config { return upstreamtest.Stdio(t, "x", s) }

	cases := map[string]struct {
		config upstream.Config
		reason []string
		state  upstream.State // Disconnected when empty
		stderr string
		stray  int64
	}{
		"notfound":  {config: program("no-such-program-anywhere"), reason: []string{"not found in PATH", "full path"}},
		"noexec":    {config: program(plain), reason: []string{"may not be executed", "chmod +x"}},
		"exits":     {config: stdio(upstreamtest.Script{Exit: 9, Stderr: []string{"no API key"}}), reason: []string{"exited with code 9", "before it answered", "stderr"}, stderr: "no API key"},
		"garbage":   {config: stdio(upstreamtest.Script{Hang: true, Stray: []string{"Welcome!", "{not json", "ready"}}), reason: []string{"did not answer the handshake within", "startTimeoutMs", "not an MCP message (lines: 3)"}, stray: 3},
		"banner":    {config: stdio(upstreamtest.Script{Exit: 1, Stray: []string{"usage: x"}}), reason: []string{"exited with code 1", "(lines: 1)"}, stray: 1},
		"never":     {config: stdio(upstreamtest.Script{Hang: true}), reason: []string{"did not answer the handshake within"}},
		"wrongids":  {config: stdio(upstreamtest.Script{WrongIDs: true}), reason: []string{"did not answer the handshake within"}},
		"leaves":    {config: stdio(upstreamtest.Script{OldEra: true, LeaveOn: "initialize"}), reason: []string{"exited with code 0 before it answered"}},
		"refuses":   {config: address(refuses.URL), reason: []string{"nothing listens at 127.0.0.1:", "connection refused", "start the server"}},
		"unknown":   {config: address("http://no-such-host.invalid/mcp"), reason: []string{`"no-such-host.invalid" cannot be resolved`}},
		"nottls":    {config: address(strings.Replace(web.URL, "http:", "https:", 1)), reason: []string{"does not speak TLS", "http://"}},
		"html":      {config: web.Config("x"), reason: []string{"web page", "not to an MCP endpoint"}},
		"redirects": {config: circle.Config("x"), reason: []string{"redirects in a loop"}},
		"away":      {config: away.Config("x"), reason: []string{"redirects to another address"}},
		"drops":     {config: drops.Config("x"), reason: []string{"closed the connection before it answered"}},
		"missing":   {config: nothing.Config("x"), reason: []string{"no MCP endpoint", "404"}},
		"hangs":     {config: hangs.Config("x"), reason: []string{"did not answer the handshake within"}},
		"wants":     {config: wants.Config("x"), reason: []string{"requires authorization", "sign in"}, state: upstream.AuthRequired},
		"nobody":    {config: upstream.Config{Transport: upstream.InProcess, Enabled: true, SessionMode: upstream.Shared, TimeoutMs: 1000, MaxTimeoutMs: 1000}, reason: []string{"no server of this name inside"}},
	}
	good := upstreamtest.Stdio(t, "good", upstreamtest.Script{})
	good.StartTimeoutMs = 60_000
	configs := []upstream.Config{good}
	for name, tt := range cases {
		c := tt.config
		c.Name = name
		c.StartTimeoutMs = 60_000
		if strings.Contains(strings.Join(tt.reason, ""), "did not answer") {
			c.StartTimeoutMs = 5000 // the test waits until it expires
		}
		configs = append(configs, c)
	}
	r := newFixture(t, upstream.Options{}, configs...).run()
	if got := r.ok("good", "echo", `{"a":1}`); got != `{"a":1}` {
		t.Errorf("the good server answered %q", got)
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			r := &fixture{Supervisor: r.Supervisor, t: t, changed: make(chan struct{})}
			want := tt.state
			if want == "" {
				want = upstream.Disconnected
			}
			// On a busy machine the first attempts may fail before the program
			// has printed its lines.
			var st upstream.Status
			r.eventually(name+" to fail after its output", func() bool {
				st, _ = r.Diagnose(name)
				return st.State == want && st.Stray >= tt.stray && (tt.stray == 0 || strings.Contains(st.Reason, fmt.Sprintf("(lines: %d)", tt.stray)))
			})
			contains(t, "Reason", st.Reason, tt.reason...)
			if strings.Contains(st.Reason, dir) {
				t.Errorf("Reason %q shows a path of this machine", st.Reason)
			}
			if st.Attempts < 1 || st.Since.IsZero() || st.LastFailure == "" {
				t.Errorf("status %+v", st)
			}
			if tt.stderr != "" && !strings.Contains(strings.Join(st.Stderr, "\n"), tt.stderr) {
				t.Errorf("Stderr = %q, want %q", st.Stderr, tt.stderr)
			}
			if st.Stray < tt.stray {
				t.Errorf("%d stray lines counted, want %d", st.Stray, tt.stray)
			}
			_, err := r.call(name, "echo", `{}`)
			kind := tool.UpstreamFailed
			if want == upstream.AuthRequired {
				kind = tool.UpstreamAuthRequired
			}
			if tool.KindOf(err) != kind || !errors.Is(err, tool.ErrDown) {
				t.Fatalf("call: %v, want kind %s", err, kind)
			}
			contains(t, "the call's error", tool.AsError(err).Msg, append(tt.reason, name)...)
			if kind == tool.UpstreamFailed {
				contains(t, "the call's error", tool.AsError(err).Msg, "has been down since")
			}
		})
	}
	if got := r.ok("good", "echo", `{"a":2}`); got != `{"a":2}` {
		t.Errorf("the good server answered %q", got)
	}
	if st := r.state("good", upstream.Connected); st.Lost != 0 {
		t.Errorf("the good server lost its connection: %+v", st)
	}
}

// Failures during a call are reported to its caller.
func TestFailuresDuringACall(t *testing.T) {
	t.Parallel()
	h := upstreamtest.Listen(t, upstreamtest.Script{})
	r := newFixture(t, upstream.Options{}, upstreamtest.Stdio(t, "child", upstreamtest.Script{}), h.Config("remote")).run()
	for name, tt := range map[string]struct {
		server, tool, arguments string
		want                    []string
	}{
		"a program dies":      {"child", "die", `{}`, []string{"child ended during the call", "exited with code 3"}},
		"100 MB":              {"child", "huge", `{"bytes":100000000}`, []string{"child: ", "too large"}},
		"100 MB over HTTP":    {"remote", "huge", `{"bytes":100000000}`, []string{"remote: ", "too large"}},
		"the stream is cut":   {"remote", "die", `{}`, []string{"remote: ", "dropped the stream before it answered"}},
		"a stray line":        {"child", "stray", `{}`, nil},
		"its own error":       {"child", "refuse", `{}`, []string{"refused"}},
		"after all of it":     {"child", "echo", `{}`, nil},
		"and the remote one":  {"remote", "echo", `{}`, nil},
		"a server nobody has": {"nosuch", "echo", `{}`, []string{`no server "nosuch"`}},
	} {
		t.Run(name, func(t *testing.T) {
			r.state("remote", upstream.Connected)
			r.state("child", upstream.Connected)
			_, err := r.call(tt.server, tt.tool, tt.arguments)
			if tt.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("the call succeeded")
			}
			contains(t, "error", err.Error(), tt.want...)
			if tt.server == "child" && tt.tool == "die" {
				// The call fails before the supervisor notices the loss.
				r.eventually("the loss of the child", func() bool { st, _ := r.StatusOf("child"); return st.Lost > 0 })
			}
		})
	}
	if st, _ := r.StatusOf("child"); st.Lost != 1 {
		t.Errorf("the child was lost %d times, want 1 (it died once): %+v", st.Lost, st)
	}
}
