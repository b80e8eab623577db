package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

// people is an Authorizer with a separate login for each caller. The token of a
// login is the caller's name and the generation.
type people struct {
	mu     sync.Mutex
	logins map[string]int // generations by caller
	asked  func()         // called for each Generation, unless nil
}

func (p *people) token(caller string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.logins[caller] == 0 {
		return ""
	}
	return fmt.Sprintf("%s-%d", caller, p.logins[caller])
}

func (p *people) signIn(callers ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range callers {
		p.logins[c]++
	}
}

func (p *people) signOut(caller string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.logins, caller)
}

func (p *people) Generation(_ context.Context, l upstream.Login) (string, error) {
	if p.asked != nil {
		p.asked()
	}
	return p.token(l.Caller), nil
}

func (p *people) Authorize(_ context.Context, l upstream.Login, r *http.Request, refused *mcpclient.HTTPError) error {
	if token := p.token(l.Caller); token != "" && refused == nil {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	return &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "sign in first"}
}

func (p *people) SignIn(ctx context.Context, server string) error {
	return &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "sign in", Details: map[string]string{"url": "https://login.example/" + server + "?for=" + tool.CallerFrom(ctx).ID}}
}

// office is an MCP server that serves different tools to each account. It uses
// the tokens of requests as accounts.
type office struct {
	t  *testing.T
	mu sync.Mutex
	// whose maps each session to its account.
	whose    map[*mcpserver.Session]string
	declared []string // extensions of the clients that listed the tools
	// described returns the description of the tool "files".
	described func(account string) string
}

func (o *office) account(r *mcpserver.Request) string {
	account := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Session != nil {
		if first := o.whose[r.Session]; first != "" && first != account {
			o.t.Errorf("a session of %s was used by %s", first, account)
		}
		o.whose[r.Session] = account
	}
	return account
}

func (o *office) Describe(_ context.Context, r *mcpserver.Request) (mcpserver.Description, error) {
	return mcpserver.Description{
		Info: json.RawMessage(`{"name":"office","version":"1"}`), Capabilities: json.RawMessage(`{"tools":{"listChanged":true}}`), Instructions: "for " + o.account(r),
	}, nil
}

func (o *office) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

func (o *office) Serve(_ context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	account := o.account(r)
	person, _, _ := strings.Cut(account, "-")
	switch r.Method {
	case "tools/list":
		o.mu.Lock()
		o.declared = append(o.declared, string(rawjson.Field(r.Exchange.Capabilities, "extensions")))
		description := o.described(account)
		o.mu.Unlock()
		return json.RawMessage(`{"tools":[` + strings.Join([]string{
			string(upstreamtest.Tool("whoami", "Says who you are")), string(upstreamtest.Tool("files", description)), string(upstreamtest.Tool("desk_of_"+person, "A desk")),
		}, ",") + `]}`), nil
	case "tools/call", "ping":
		return upstreamtest.Text(account), nil
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: r.Method}
}

// newOffice returns a Supervisor of an office.
func newOffice(t *testing.T, p *people, o upstream.Options) (*fixture, *office) {
	t.Helper()
	off := &office{t: t, whose: map[*mcpserver.Session]string{}, described: func(string) string { return "Files" }}
	srv := mcpserver.New(mcpserver.Options{}, off)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		srv.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { ts.CloseClientConnections(); ts.Close(); srv.Close() })
	cfg := upstream.DefaultConfig()
	cfg.StartTimeoutMs = 60_000 // a busy machine is slow to list
	cfg.Name, cfg.URL, cfg.OAuth = "office", ts.URL, &upstream.OAuth{Per: upstream.LoginPerCaller}
	o.Authorizer = p
	r := newFixture(t, o, cfg).run()
	r.state("office", upstream.Connected)
	return r, off
}

// listed returns the tools that the sink has for a caller.
func (r *fixture) listed(caller string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.toolSets["office"]
	var names []string
	for name, callers := range all[len(all)-1].Callers {
		if slices.Contains(callers, caller) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Each caller's calls and lists are made with its own login, in parallel and
// after the login was replaced.
func TestCallersUseTheirOwnLogins(t *testing.T) {
	t.Parallel()
	p := &people{logins: map[string]int{}}
	p.signIn("ada", "ben")
	r, _ := newOffice(t, p, upstream.Options{})
	check := func() {
		t.Helper()
		var wg sync.WaitGroup
		for _, caller := range []string{"ada", "ben"} {
			for i := range 20 {
				wg.Go(func() {
					ex := tool.Exchange{Protocol: []string{"", mcp.Version20251125, mcp.Version20260728}[i%3], Transparent: i%2 == 0}
					if got, err := r.callAs(caller, "office", "whoami", `{}`, ex); err != nil || got != p.token(caller) {
						t.Errorf("%s is %q to the server, %v; want %s", caller, got, err, p.token(caller))
					}
				})
			}
		}
		wg.Wait()
	}
	check()
	for caller, want := range map[string]string{"ada": "desk_of_ada files whoami", "ben": "desk_of_ben files whoami", "cleo": ""} {
		r.LoadCallerTools(t.Context(), caller)
		if got := strings.Join(r.listed(caller), " "); got != want {
			t.Errorf("%s sees %q, want %q", caller, got, want)
		}
	}
	if info, ok := r.Describe(t.Context(), "office", "ada", tool.Exchange{Transparent: true}); !ok || info.Instructions != "for ada-1" {
		t.Errorf("the server tells ada %q, %t", info.Instructions, ok)
	}
	p.signIn("ada")
	check()
}

// LoadCallerTools waits until the tools are published, even if another request
// of the caller is listing them.
func TestLoadCallerToolsWaitsUntilToolsArePublished(t *testing.T) {
	t.Parallel()
	looks := make(chan struct{}, 10)
	p := &people{logins: map[string]int{}, asked: func() { looks <- struct{}{} }}
	p.signIn("ada")
	r, _ := newOffice(t, p, upstream.Options{})
	publishing := make(chan struct{})
	r.publish = func(upstream.ToolSet) {
		for len(looks) > 0 {
			<-looks
		}
		close(publishing)
		<-looks                           // the other request has seen that the list is known,
		time.Sleep(20 * time.Millisecond) // and would return before this slow sink has received it
	}
	var wg sync.WaitGroup
	wg.Go(func() { r.LoadCallerTools(t.Context(), "ada", "office") })
	<-publishing
	r.LoadCallerTools(t.Context(), "ada", "office")
	if len(r.listed("ada")) == 0 {
		t.Error("LoadCallerTools returned before the tools were published")
	}
	wg.Wait()
}

// A server whose tools are not listed for a caller when the wait ends is
// reported as pending, not as one without the tool.
func TestAwaitNamesServersThatAreSlowToList(t *testing.T) {
	t.Parallel()
	p := &people{logins: map[string]int{}}
	p.signIn("ada")
	r, off := newOffice(t, p, upstream.Options{})
	begun, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	off.mu.Lock()
	off.described = func(string) string {
		close(begun)
		<-release
		return "Files"
	}
	off.mu.Unlock()
	ctx, cancel := context.WithCancel(tool.WithCaller(t.Context(), tool.Caller{ID: "ada"}))
	go func() {
		<-begun
		cancel()
	}()
	if pending := r.Await(ctx, "office"); !slices.Equal(pending, []string{"office"}) {
		t.Errorf("Await = %v, want the office", pending)
	}
}

// While the sink processes the tools of one caller, other callers are served,
// and the caller waits no longer than its context allows.
func TestCallersDoNotWaitForToolsOfOthers(t *testing.T) {
	t.Parallel()
	p := &people{logins: map[string]int{}}
	p.signIn("ada", "ben")
	r, _ := newOffice(t, p, upstream.Options{})
	r.LoadCallerTools(t.Context(), "ada", "office")
	publishing, publish := make(chan struct{}), make(chan struct{})
	r.publish = func(upstream.ToolSet) {
		close(publishing)
		<-publish
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	release := sync.OnceFunc(func() { close(publish) })
	defer release()
	wg.Go(func() { r.LoadCallerTools(t.Context(), "ben", "office") })
	<-publishing
	within := func(what string, f func()) {
		t.Helper()
		done := make(chan struct{})
		wg.Go(func() { f(); close(done) })
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal(what + " waits for the tools of another caller")
		}
	}
	within("a list that is known", func() { r.LoadCallerTools(t.Context(), "ada", "office") })
	within("a call without a login", func() {
		if _, err := r.callAs("cleo", "office", "whoami", `{}`, tool.Exchange{}); tool.KindOf(err) != tool.UpstreamAuthRequired {
			t.Errorf("the call without a login returned %v", err)
		}
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	within("an ended request", func() { r.LoadCallerTools(ended, "ben", "office") })
	release()
	wg.Wait()
	if len(r.listed("ben")) == 0 {
		t.Error("the tools of ben were not published")
	}
}

// A caller without a login gets the URL to sign in, sees no tools of others,
// and is served neither with another login nor without one.
func TestCallerWithoutLoginSignsIn(t *testing.T) {
	t.Parallel()
	p := &people{logins: map[string]int{}}
	p.signIn("ada")
	r, _ := newOffice(t, p, upstream.Options{})
	r.LoadCallerTools(t.Context(), "ada")
	for _, caller := range []string{"cleo", ""} {
		got, err := r.callAs(caller, "office", "whoami", `{}`, tool.Exchange{})
		e := tool.AsError(err)
		if e.Kind != tool.UpstreamAuthRequired || !strings.Contains(fmt.Sprint(e.Details), "for="+caller) {
			t.Errorf("the call of %q returned %q, %v, details %v", caller, got, err, e.Details)
		}
	}
	st, _ := r.StatusOf("office")
	if mine := r.StatusForCaller(st, tool.Local.ID); !strings.HasSuffix(mine.Reason, "; run: junctor servers login "+st.Name) {
		t.Errorf("the user of this machine does not learn how to sign in: %q", mine.Reason)
	}
	if mine := r.StatusForCaller(st, "cleo"); mine.State != upstream.AuthRequired || mine.SignedIn {
		t.Errorf("the status for cleo is %+v", mine)
	}
	if mine := r.StatusForCaller(st, "ada"); mine.State != upstream.Connected || !mine.SignedIn || st.Login != upstream.LoginPerCaller {
		t.Errorf("the status for ada is %+v", mine)
	}
	if _, ok := r.Info("office", "cleo"); ok {
		t.Error("cleo gets what the server sent to another caller")
	}
	// A sign-in lists the tools; the end of the login removes them and closes
	// the session.
	p.signIn("cleo")
	r.SignedIn("office", "cleo")
	r.eventually("the tools of cleo", func() bool { return len(r.listed("cleo")) == 3 })
	p.signOut("ada")
	r.SignedOut("office", "ada")
	r.eventually("ada to see nothing", func() bool { return len(r.listed("ada")) == 0 })
	if got, err := r.callAs("ada", "office", "whoami", `{}`, tool.Exchange{}); tool.KindOf(err) != tool.UpstreamAuthRequired {
		t.Errorf("the call without a login returned %q, %v", got, err)
	}
	if st, _ := r.StatusOf("office"); st.Sessions != 1 {
		t.Errorf("%d sessions are left, want that of cleo alone", st.Sessions)
	}
}

// A definition that was listed for one caller is not shown to another with a
// different one. The newest one is published.
func TestDefinitionsOfOthersAreNotShown(t *testing.T) {
	t.Parallel()
	p := &people{logins: map[string]int{}}
	p.signIn("ada", "ben", "cleo")
	r, off := newOffice(t, p, upstream.Options{})
	off.mu.Lock()
	off.described = func(account string) string { return "Files of " + account[:1] }
	off.mu.Unlock()
	for _, caller := range []string{"ada", "ben"} {
		r.LoadCallerTools(t.Context(), caller)
	}
	if ada, ben := r.listed("ada"), r.listed("ben"); slices.Contains(ada, "files") || !slices.Contains(ben, "files") {
		t.Errorf("ada sees %v and ben %v", ada, ben)
	}
	// The server is updated: callers that list again see the new definition.
	off.mu.Lock()
	off.described = func(string) string { return "All files" }
	off.mu.Unlock()
	r.LoadCallerTools(t.Context(), "cleo")
	for _, caller := range []string{"ada", "ben"} {
		r.LoadCallerTools(t.Context(), caller)
		if got := r.listed(caller); !slices.Contains(got, "files") {
			t.Errorf("%s sees %v after the update", caller, got)
		}
	}
}

// A caller with many kinds of sessions does not evict those of another caller.
func TestSessionsOfOneCallerAreBounded(t *testing.T) {
	t.Parallel()
	p := &people{logins: map[string]int{}}
	p.signIn("ada", "ben")
	r, _ := newOffice(t, p, upstream.Options{MaxSessions: 5, Capabilities: mcpclient.Capabilities{Sampling: true, ElicitationForm: true, ElicitationURL: true, Roots: true}})
	if _, err := r.callAs("ben", "office", "whoami", `{}`, tool.Exchange{}); err != nil {
		t.Fatal(err)
	}
	ask := func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	for i := range 16 {
		declared := map[string]any{}
		for bit, name := range []string{"sampling", "roots"} {
			if i&(1<<bit) != 0 {
				declared[name] = map[string]any{}
			}
		}
		if i&12 != 0 {
			elicitation := map[string]any{}
			if i&4 != 0 {
				elicitation["form"] = map[string]any{}
			}
			if i&8 != 0 {
				elicitation["url"] = map[string]any{}
			}
			declared["elicitation"] = elicitation
		}
		raw, err := json.Marshal(declared)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.callAs("ada", "office", "whoami", `{}`, tool.Exchange{Ask: ask, Capabilities: raw}); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if st, _ := r.StatusOf("office"); st.Sessions != 5 {
		t.Errorf("there are %d sessions, want four of ada and that of ben", st.Sessions)
	}
}

// TestListsAndCallsShareASession: a caller's tools are listed in the session of
// its calls, with the extensions of the gateway.
func TestListsAndCallsShareASession(t *testing.T) {
	t.Parallel()
	p := &people{logins: map[string]int{}}
	p.signIn("ada")
	r, off := newOffice(t, p, upstream.Options{Capabilities: mcpclient.Capabilities{Extensions: upstream.ForwardedExtensions}})
	r.LoadCallerTools(t.Context(), "ada", "office")
	if _, err := r.callAs("ada", "office", "whoami", `{}`, tool.Exchange{}); err != nil {
		t.Fatal(err)
	}
	if st, _ := r.StatusOf("office"); st.Sessions != 1 {
		t.Errorf("there are %d sessions, want one", st.Sessions)
	}
	off.mu.Lock()
	defer off.mu.Unlock()
	if want := string(upstream.ForwardedExtensions); len(off.declared) == 0 || slices.ContainsFunc(off.declared, func(s string) bool { return s != want }) {
		t.Errorf("the tools were listed with the extensions %q, want %s", off.declared, want)
	}
}
