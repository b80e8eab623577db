package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

func TestChildrenInheritOnlyListedVariables(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := upstreamtest.Stdio(t, "x", upstreamtest.Script{})
	cfg.Cwd = dir
	cfg.InheritEnv = []string{"PATH", "ALLOWED_*"}
	cfg.Env["OWN"] = telemetry.Secret("own value")
	cfg.Env["ALLOWED_TWO"] = "over"
	r := newFixture(t, upstream.Options{Environ: []string{"PATH=/usr/bin:/bin", "ALLOWED_ONE=1", "ALLOWED_TWO=2", "SECRET=no"}}, cfg).run()
	got := r.ok("x", "environ", `{}`)
	contains(t, "environ", got, dir+"\n", "\nOWN=own value", "\nALLOWED_ONE=1", "\nALLOWED_TWO=over", "\nPATH=/usr/bin:/bin")
	if strings.Contains(got, "SECRET") {
		t.Errorf("a secret got through: %s", got)
	}
}

func TestHeadersReachTheServer(t *testing.T) {
	h := upstreamtest.Listen(t, upstreamtest.Script{})
	cfg := h.Config("x")
	cfg.AuthorizationToken = "s3cret"
	cfg.Headers = map[string]telemetry.Secret{"X-Team": "blue"}
	silent := cfg
	silent.Name, silent.ForwardClientIP = "y", false
	r := newFixture(t, upstream.Options{}, cfg, silent).run()
	ctx := upstream.SetClientIP(t.Context(), "203.0.113.7")
	headers := func(server string) string {
		t.Helper()
		raw, err := r.Do(ctx, server, tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"headers","_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b\r\nX-Bad: 1"}}`)})
		if err != nil {
			t.Fatal(err)
		}
		return upstreamtest.TextOf(raw)
	}
	if got := headers("x"); strings.Contains(got, "X-Bad") || strings.Contains(got, "Tracestate") {
		t.Errorf("a header was injected: %s", got)
	}
	contains(t, "headers", headers("x"), `"Traceparent":["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]`, `"Authorization":["Bearer s3cret"]`, `"X-Team":["blue"]`, `"X-Forwarded-For":["203.0.113.7"]`)
	if got := headers("y"); strings.Contains(got, "X-Forwarded-For") {
		t.Errorf("the caller's address was sent against the configuration: %s", got)
	}
	if b, err := json.Marshal(r.Status()); err != nil || strings.Contains(string(b), "s3cret") {
		t.Errorf("status %s, %v", b, err)
	}
}

// consent is an Authorizer that has no token until the user consents.
type consent struct {
	token chan string

	mu   sync.Mutex
	have string
}

func (c *consent) SignIn(ctx context.Context, server string) error {
	return &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "sign in", Details: map[string]string{"url": "https://login.example/" + server + "?for=" + tool.CallerFrom(ctx).ID}}
}

func (c *consent) Generation(context.Context, upstream.Login) (string, error) { return "", nil }

func (c *consent) Authorize(_ context.Context, server upstream.Login, r *http.Request, refused *mcpclient.HTTPError) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.have = <-c.token:
	default:
	}
	if c.have == "" {
		if refused == nil {
			return nil // the server may not require a token
		}
		return &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "consent is needed for " + server.Server}
	}
	r.Header.Set("Authorization", "Bearer "+c.have)
	return nil
}

func TestAuthorizationIsRequestedAndUsed(t *testing.T) {
	h := upstreamtest.Listen(t, upstreamtest.Script{})
	h.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer good" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://x/"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	auth := &consent{token: make(chan string, 1)}
	r := newFixture(t, upstream.Options{Authorizer: auth}, h.Config("x")).run()
	r.state("x", upstream.AuthRequired)
	_, err := r.callAs("ada", "x", "echo", `{}`, tool.Exchange{}) // the address is for ada only
	e := tool.AsError(err)
	if e.Kind != tool.UpstreamAuthRequired || fmt.Sprint(e.Details) != "map[url:https://login.example/x?for=ada]" || !strings.Contains(e.Msg, "x: sign in") {
		t.Errorf("call without consent: %v, details %v", err, e.Details)
	}
	if b, err := json.Marshal(r.Status()); err != nil || strings.Contains(string(b), "login.example") {
		t.Errorf("the status shows the address: %s, %v", b, err)
	}
	auth.token <- "good"
	if err := r.Retry("x"); err != nil {
		t.Fatal(err)
	}
	r.ok("x", "echo", `{}`) // at once
	if st := r.state("x", upstream.Connected); st.LastFailure != "" {
		t.Errorf("the sign-in stays as the last failure: %s", st.LastFailure)
	}
	// The token is revoked: the next call reports it, and so does the status.
	auth.token <- "bad"
	if _, err := r.call("x", "echo", `{}`); tool.KindOf(err) != tool.UpstreamAuthRequired {
		t.Errorf("call with a bad token: %v", err)
	}
	r.state("x", upstream.AuthRequired)
}

// tokens is an Authorizer whose token may become available at any time; a
// refused request is not retried.
type tokens struct {
	consent
	token atomic.Pointer[string]
}

func (c *tokens) Authorize(_ context.Context, server upstream.Login, r *http.Request, refused *mcpclient.HTTPError) error {
	if refused != nil {
		return &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "consent is needed for " + server.Server}
	}
	if token := c.token.Load(); token != nil {
		r.Header.Set("Authorization", "Bearer "+*token)
	}
	return nil
}

// TestSignInDuringAttempt: if a sign-in finishes while an attempt without it
// runs, the next attempt follows immediately, and a call waits for it.
func TestSignInDuringAttempt(t *testing.T) {
	h := upstreamtest.Listen(t, upstreamtest.Script{})
	asked, refuse := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(asked) })
	h.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer good" {
			return false
		}
		first()
		<-refuse
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://x/"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	auth := &tokens{}
	r := newFixture(t, upstream.Options{Authorizer: auth}, h.Config("x")).run()
	<-asked
	good := "good"
	auth.token.Store(&good)
	if err := r.Retry("x"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { _, err := r.call("x", "echo", `{}`); done <- err }()
	close(refuse)
	if err := <-done; err != nil {
		t.Errorf("a call after the sign-in: %v", err)
	}
	if st := r.state("x", upstream.Connected); st.LastFailure != "" {
		t.Errorf("the sign-in stays as the last failure: %s", st.LastFailure)
	}
}

func TestRedirectIsFollowed(t *testing.T) {
	h := upstreamtest.Listen(t, upstreamtest.Script{})
	h.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/mcp", http.StatusPermanentRedirect)
			return true
		}
		return false
	}
	cfg := h.Config("x")
	cfg.URL = strings.Replace(cfg.URL, "/mcp", "/old", 1)
	r := newFixture(t, upstream.Options{}, cfg).run()
	r.ok("x", "echo", `{}`)
}

func TestServerThatExitsOnDiscoverIsInitialized(t *testing.T) {
	t.Parallel()
	r := newFixture(t, upstream.Options{}, upstreamtest.Stdio(t, "x", upstreamtest.Script{LeaveOn: "server/discover"})).run()
	r.ok("x", "echo", `{}`)
	st := r.state("x", upstream.Connected)
	if st.Era != "handshake" || st.LastFailure != "" {
		t.Errorf("status %+v", st)
	}
}

func TestConfiguredTransports(t *testing.T) {
	h := upstreamtest.Listen(t, upstreamtest.Script{OldEra: true})
	streamable := h.Config("http")
	streamable.Transport = upstream.HTTP
	legacy := h.Config("sse")
	legacy.Transport = upstream.SSE
	r := newFixture(t, upstream.Options{}, streamable, legacy).run()
	for name, want := range map[string]upstream.Transport{"http": upstream.HTTP, "sse": upstream.SSE} {
		r.ok(name, "echo", `{}`)
		if st := r.state(name, upstream.Connected); st.Transport != want {
			t.Errorf("status %+v", st)
		}
	}
}

func TestProgressAndQuestionsReachTheCaller(t *testing.T) {
	t.Parallel()
	for _, script := range []upstreamtest.Script{{OldEra: true}, {}} {
		t.Run(fmt.Sprint("handshake era ", script.OldEra), func(t *testing.T) {
			o := upstream.Options{Capabilities: mcpclient.Capabilities{Sampling: true, ElicitationForm: true, ElicitationURL: true}}
			r := newFixture(t, o, upstreamtest.Stdio(t, "x", script)).run()
			var got []string
			ex := tool.Exchange{
				Notify: func(method string, params json.RawMessage) {
					got = append(got, rawjson.FieldString(params, "progressToken")+string(rawjson.Field(params, "progress")))
				},
				Ask: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
					return json.RawMessage(`{"action":"accept","content":{"name":"Ada"},"asked":"` + method + `"}`), nil
				},
				Capabilities: json.RawMessage(`{"elicitation":{},"sampling":{}}`),
			}
			if _, err := r.callAs("me", "x", "progress", `{"n":5}`, ex); err != nil {
				t.Fatal(err)
			}
			if want := "p1 p2 p3 p4 p5"; strings.Join(got, " ") != want {
				t.Errorf("progress %q, want %q", got, want)
			}
			text, err := r.callAs("me", "x", "ask", `{}`, ex)
			if err != nil {
				t.Fatal(err)
			}
			contains(t, "the answer", text, `"name":"Ada"`, "elicitation/create")
		})
	}
}

func TestPerCallerSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newInside(t, upstreamtest.Script{OldEra: true}, func(c *upstream.Config, o *upstream.Options) {
			c.SessionMode = upstream.PerCaller
			o.MaxSessions, o.SessionIdle = 2, time.Minute
			o.Capabilities = mcpclient.Capabilities{Sampling: true, ElicitationForm: true, ElicitationURL: true, Roots: true}
		})
		r.run()
		who := func(caller string) string {
			t.Helper()
			text, err := r.callAs(caller, "x", "whoami", `{}`, tool.Exchange{})
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		all, ann, bob := who(""), who("ann"), who("bob")
		if all == ann || ann == bob || all == bob {
			t.Errorf("sessions are shared: %s %s %s", all, ann, bob)
		}
		if again := who("ann"); again != ann {
			t.Errorf("ann got another session: %s, then %s", ann, again)
		}
		if st, _ := r.StatusOf("x"); st.Sessions != 2 {
			t.Errorf("%d sessions", st.Sessions)
		}
		time.Sleep(time.Second)
		who("ann")
		// A third caller evicts the least recently used session, bob's.
		who("cid")
		if st, _ := r.StatusOf("x"); st.Sessions != 2 {
			t.Errorf("%d sessions", st.Sessions)
		}
		if who("ann") != ann {
			t.Error("ann lost the session that was in use")
		}
		if who("bob") == bob {
			t.Error("bob kept a session that was closed")
		}
		// Busy ones are not evicted.
		ctx, cancel := context.WithCancel(t.Context())
		for _, caller := range []string{"ann", "bob"} {
			go func() {
				_, _ = r.Do(ctx, "x", tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"silent"}`), Caller: caller})
			}()
		}
		synctest.Wait()
		if _, err := r.callAs("dan", "x", "whoami", `{}`, tool.Exchange{}); tool.KindOf(err) != tool.RateLimited {
			t.Errorf("a third caller beside two busy ones: %v", err)
		}
		cancel()
		// A session that broke is created again.
		_, _ = r.callAs("ann", "x", "die", `{}`, tool.Exchange{})
		if again := who("ann"); again == ann {
			t.Error("ann is on a session that died")
		}
		// Idle ones are closed.
		time.Sleep(2 * time.Minute)
		if st, _ := r.StatusOf("x"); st.Sessions != 0 {
			t.Errorf("%d sessions after two idle minutes", st.Sessions)
		}
		// The server is unavailable when a session is needed.
		d.away.Store(true)
		if _, err := r.callAs("eve", "x", "whoami", `{}`, tool.Exchange{}); err == nil || !strings.Contains(err.Error(), "no session for this caller: it is away") {
			t.Errorf("session with a server that is away: %v", err)
		}
		d.away.Store(false)
		who("eve")
	})
}

func TestCallerCapabilitiesAreDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newInside(t, upstreamtest.Script{OldEra: true}, func(c *upstream.Config, o *upstream.Options) {
			c.SessionMode = upstream.PerCaller
			o.Capabilities = mcpclient.Capabilities{ElicitationForm: true, ElicitationURL: true, Roots: true}
		})
		r.run()
		ask := func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"action":"decline"}`), nil
		}
		for name, tt := range map[string]struct {
			ex   tool.Exchange
			want string
		}{
			"can":     {tool.Exchange{Ask: ask, Capabilities: json.RawMessage(`{"elicitation":{}}`)}, `{"action":"decline"}`},
			"can url": {tool.Exchange{Ask: ask, Capabilities: json.RawMessage(`{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`)}, `{"action":"decline"}`},
			"cannot":  {tool.Exchange{Ask: ask, Capabilities: json.RawMessage(`{}`)}, "declined"},
			"nobody":  {tool.Exchange{Capabilities: json.RawMessage(`{"elicitation":{}}`)}, "declined"},
		} {
			text, err := r.callAs("me", "x", "ask", `{}`, tt.ex)
			if err != nil || !strings.Contains(text, tt.want) && text != "nobody to ask" {
				t.Errorf("%s: %q, %v; want %q", name, text, err, tt.want)
			}
		}
		if st, _ := r.StatusOf("x"); st.Sessions != 3 {
			t.Errorf("%d sessions for one caller with three sets of abilities", st.Sessions)
		}
	})
}

func TestFingerprint(t *testing.T) {
	base := upstream.DefaultConfig()
	base.Name, base.Command = "x", "node"
	same := base
	same.Description, same.TimeoutMs, same.Tags, same.Transport = "words", 5, []string{"a"}, upstream.Stdio
	if base.Fingerprint() != same.Fingerprint() {
		t.Error("settings that do not concern the connection change the fingerprint")
	}
	seen := map[string]string{base.Fingerprint(): "base"}
	for name, change := range map[string]func(*upstream.Config){
		"args":   func(c *upstream.Config) { c.Args = []string{"a"} },
		"env":    func(c *upstream.Config) { c.Env = map[string]telemetry.Secret{"K": "1"} },
		"env 2":  func(c *upstream.Config) { c.Env = map[string]telemetry.Secret{"K": "2"} },
		"url":    func(c *upstream.Config) { c.Command, c.URL = "", "https://x/" },
		"token":  func(c *upstream.Config) { c.AuthorizationToken = "t" },
		"oauth":  func(c *upstream.Config) { c.OAuth = &upstream.OAuth{ClientID: "a"} },
		"secret": func(c *upstream.Config) { c.OAuth = &upstream.OAuth{ClientID: "a", ClientSecret: "s"} },
	} {
		c := base
		change(&c)
		if other := seen[c.Fingerprint()]; other != "" {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		seen[c.Fingerprint()] = name
	}
}

// Widely used reference servers.
func TestRealServers(t *testing.T) {
	if testing.Short() {
		t.Skip("needs npm packages; not in make test-fast")
	}
	modules, err := filepath.Abs("../../e2e/node_modules/@modelcontextprotocol")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(modules); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("install the packages of e2e first: npm ci --prefix e2e")
		}
		t.Skip("the packages of e2e are not installed")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello from a file"), 0o644); err != nil {
		t.Fatal(err)
	}
	node := func(name string, args ...string) upstream.Config {
		c := upstream.DefaultConfig()
		c.Name, c.Command, c.StartTimeoutMs = name, "node", 60_000
		c.Args = append([]string{filepath.Join(modules, "server-"+name, "dist", "index.js")}, args...)
		return c
	}
	memory := node("memory")
	memory.Env = map[string]telemetry.Secret{"MEMORY_FILE_PATH": telemetry.Secret(filepath.Join(dir, "memory.json"))}
	r := newFixture(t, upstream.Options{}, node("everything"), node("filesystem", dir), memory).run()
	if pending := r.Await(t.Context()); len(pending) > 0 {
		t.Fatalf("pending: %q", pending)
	}
	contains(t, "everything:echo", r.ok("everything", "echo", `{"message":"hi"}`), "hi")
	contains(t, "filesystem:read_text_file", r.ok("filesystem", "read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "hello.txt"))), "hello from a file")
	r.ok("memory", "create_entities", `{"entities":[{"name":"a","entityType":"b","observations":["c"]}]}`)
	contains(t, "memory:read_graph", r.ok("memory", "read_graph", `{}`), `"name": "a"`)
	for _, name := range []string{"everything", "filesystem", "memory"} {
		st := r.state(name, upstream.Connected)
		if st.Tools == 0 || len(st.Problems) != 0 || st.PID == 0 {
			t.Errorf("status %+v", st)
		}
	}
}
