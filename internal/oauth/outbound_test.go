package oauth

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// TestPublicServerCannotReachInternalAddresses sends requests for a public
// server to internal addresses.
func TestPublicServerCannotReachInternalAddresses(t *testing.T) {
	asked := make(chan string, 100)
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		io.WriteString(w, `{}`)
	}))
	defer inside.Close()
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	o := newOutbound(nil, "test")
	for _, target := range []string{
		"http://127.0.0.1:" + port, "http://localhost:" + port, "http://x.localhost:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://[::1]:" + port,
		"http://0.0.0.0:" + port, "http://0:" + port, "http://127.1:" + port, "http://2130706433:" + port, "http://0x7f.1:" + port,
		"http://[2002:7f00:1::]:" + port, "http://[64:ff9b::7f00:1]:" + port, "http://[::127.0.0.1]:" + port, "http://[64:ff9b::169.254.169.254]/",
		"http://10.0.0.1/", "http://192.168.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/", "http://[fd00::1]/",
		"file:///etc/passwd", "gopher://127.0.0.1:1/", "http:///x", "http://user:pw@127.0.0.1:" + port,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
		if _, err := o.ask(ctx, addressPolicy{plain: true}, "GET", target+"/a", nil, nil); err == nil {
			t.Errorf("%s was asked", target)
		}
		cancel()
	}
	// A policy for loopback allows loopback; a policy for private addresses
	// does not.
	if _, err := o.ask(t.Context(), addressPolicy{plain: true, loopback: true}, "GET", inside.URL+"/allowed", nil, nil); err != nil {
		t.Error(err)
	}
	if _, err := o.ask(t.Context(), addressPolicy{plain: true, private: true}, "GET", inside.URL+"/b", nil, nil); err == nil {
		t.Error("a private server sends us to loopback")
	}
	if _, err := o.ask(t.Context(), addressPolicy{loopback: true}, "GET", inside.URL+"/c", nil, nil); err == nil {
		t.Error("secrets would go in the clear")
	}
	if got := <-asked; got != "/allowed" || len(asked) != 0 {
		t.Errorf("asked for %s and %d more", got, len(asked))
	}
}

// TestFetchPublic fetches documents at untrusted URLs.
func TestFetchPublic(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/document", http.StatusFound)
		case "/document":
			io.WriteString(w, "0123456789")
		default:
			http.NotFound(w, r)
		}
	}))
	defer inside.Close()
	s := &Service{out: newOutbound(nil, "test")}
	for _, target := range []string{
		inside.URL + "/document", strings.Replace(inside.URL, "http", "https", 1) + "/document", "https://localhost/document", "https://10.0.0.1/x",
		"https://169.254.169.254/latest/meta-data/", "https://[::1]/x", "http://example.com/x", "file:///etc/passwd", "https://user@example.com/x",
	} {
		if _, err := s.FetchPublic(t.Context(), target, 100); err == nil {
			t.Errorf("%s was read", target)
		}
	}
	here := addressPolicy{plain: true, loopback: true}
	if data, err := s.out.fetch(t.Context(), here, inside.URL+"/document", 10); err != nil || string(data) != "0123456789" {
		t.Error(string(data), err)
	}
	for path, limit := range map[string]int64{"/document": 9, "/moved": 100, "/nothing": 100} {
		if data, err := s.out.fetch(t.Context(), here, inside.URL+path, limit); err == nil {
			t.Errorf("%s: %s", path, data)
		}
	}
}

// TestNamesAreCheckedWhenDialled simulates DNS rebinding: the name resolves to
// an internal address after the check.
func TestNamesAreCheckedWhenDialled(t *testing.T) {
	var hit bool
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hit = true }))
	defer inside.Close()
	o := newOutbound(nil, "test")
	c := o.client(addressPolicy{plain: true})
	// The dialer checks the address after the name was resolved.
	direct := c.Transport.(guarded).direct
	_, err := direct.DialContext(t.Context(), "tcp", inside.Listener.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "loopback") || hit {
		t.Errorf("dialled: %v", err)
	}
}

func TestRedirects(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"issuer":"inside"}`) }))
	defer inside.Close()
	var to string
	var posts int
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts++
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}))
	defer outside.Close()
	// outside is reached under a name that counts as public.
	o := newOutbound(nil, "test")
	o.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "outside.example:80" {
			return (&net.Dialer{}).DialContext(ctx, network, outside.Listener.Addr().String())
		}
		return nil, fmt.Errorf("dialled %s", addr)
	}
	r := addressPolicy{plain: true}
	for _, to = range []string{inside.URL, "http://169.254.169.254/", "http://[64:ff9b::a9fe:a9fe]/", "http://localhost/"} {
		var meta serverMeta
		err := o.get(t.Context(), r, "http://outside.example/m", &meta)
		if err == nil || !strings.Contains(err.Error(), "address, and the server is not") {
			t.Errorf("redirect to %s: %v", to, err)
		}
	}
	to = "http://outside.example/m"
	if err := o.get(t.Context(), r, "http://outside.example/m", new(serverMeta)); err == nil || !strings.Contains(err.Error(), "too many redirects") {
		t.Errorf("a circle: %v", err)
	}
	a, err := o.ask(t.Context(), r, http.MethodPost, "http://outside.example/token", nil, []byte("refresh_token=x"))
	if err != nil || a.status != http.StatusTemporaryRedirect || posts != 1 {
		t.Errorf("a form was sent on: %v, %d, %d posts", err, a.status, posts)
	}
}

// TestNamesResolvedByProxyAreChecked checks names that a proxy resolves.
func TestNamesResolvedByProxyAreChecked(t *testing.T) {
	var through []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through = append(through, r.URL.Host)
		io.WriteString(w, `{}`)
	}))
	defer proxy.Close()
	at, _ := url.Parse(proxy.URL)
	o := newOutbound(func(*http.Request) (*url.URL, error) { return at, nil }, "test")
	o.resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
		switch host {
		case "inside.example":
			return []netip.Addr{netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("10.0.0.1")}, nil
		case "public.example":
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		}
		return nil, fmt.Errorf("no such host")
	}
	r := addressPolicy{plain: true}
	for target, ok := range map[string]bool{
		"http://inside.example/": false, "http://10.0.0.1/": false, "http://public.example/": true, "http://only-the-proxy-knows.example/": true,
	} {
		if _, err := o.ask(t.Context(), r, "GET", target, nil, nil); (err == nil) != ok {
			t.Errorf("%s: %v", target, err)
		}
	}
	if len(through) != 2 {
		t.Errorf("the proxy was asked for %v", through)
	}
	o.proxy = func(*http.Request) (*url.URL, error) { return nil, fmt.Errorf("bad proxy") }
	if _, err := o.ask(t.Context(), r, "GET", "http://public.example/", nil, nil); err == nil {
		t.Error("a broken proxy setting was passed over")
	}
}

// TestAllowedAddressesDependOnServer: the address policy depends on the address
// of the server's connection.
func TestAllowedAddressesDependOnServer(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	for name, tt := range map[string]struct {
		url     string
		reached string
		proxied bool
		oauth   *upstream.OAuth
		want    addressPolicy
	}{
		"public":               {url: "https://mcp.example/", reached: "93.184.216.34", want: addressPolicy{}},
		"private":              {url: "https://mcp.corp.example/", reached: "10.1.2.3", want: addressPolicy{private: true}},
		"private, by proxy":    {url: "https://mcp.corp.example/", reached: "10.1.2.3", proxied: true, want: addressPolicy{}},
		"loopback by name":     {url: "http://mcp.test/", reached: "127.0.0.1", want: addressPolicy{private: true, loopback: true, plain: true}},
		"loopback by address":  {url: "http://127.0.0.1:1/", want: addressPolicy{private: true, loopback: true, plain: true}},
		"link-local":           {url: "http://[fe80::1]:1/", want: addressPolicy{linkLocal: true, plain: true}},
		"the user's own words": {url: "https://mcp.example/", oauth: &upstream.OAuth{Issuer: "https://10.0.0.1/"}, want: addressPolicy{private: true}},
	} {
		t.Run(name, func(t *testing.T) {
			st := &state{}
			if tt.reached != "" {
				st.reached = netip.MustParseAddr(tt.reached)
			}
			r.opts.Proxy = nil
			if tt.proxied {
				r.opts.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://10.9.9.9:3128") }
			}
			if got := r.addressPolicyOf(upstream.Config{URL: tt.url, OAuth: tt.oauth}, st); got != tt.want {
				t.Errorf("reach = %+v, want %+v", got, tt.want)
			}
		})
	}
	r.opts.Proxy = nil
	if _, err := r.call(); err == nil {
		t.Fatal("no consent needed")
	}
	if got := r.state(jira).reached; !got.IsLoopback() {
		t.Errorf("reached at %v", got)
	}
}

// TestMetadataOfAPublicServer simulates a public server whose metadata
// contains internal addresses.
func TestMetadataOfAPublicServer(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.out.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, w.rs.Listener.Addr().String())
	}
	cfg := upstream.Config{Name: "jira", URL: "http://mcp.example/mcp"}
	w.url = cfg.URL
	for _, inside := range []string{w.as.URL, "http://169.254.169.254", "http://[2002:7f00:1::]", "http://localhost:99", "http://[64:ff9b::10.0.0.1]"} {
		w.do(func() { w.prm = map[string]any{"resource": cfg.URL, "authorization_servers": []string{inside}} })
		_, err := r.discover(t.Context(), cfg, addressPolicy{plain: true}, challenge{}, "")
		if tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "must not be contacted") {
			t.Errorf("authorization server %s: %v", inside, err)
		}
		_, err = r.discover(t.Context(), cfg, addressPolicy{plain: true}, challenge{metadata: inside + "/prm"}, "")
		if tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "must not be contacted") {
			t.Errorf("metadata at %s: %v", inside, err)
		}
		meta := serverMeta{Token: "http://mcp.example/t", Registration: inside + "/r"}
		if err := r.checkEndpoints(meta, addressPolicy{plain: true}); err == nil {
			t.Errorf("registration at %s is allowed", inside)
		}
	}
}

func TestTokenResourceMatchesServer(t *testing.T) {
	for _, tt := range []struct {
		resource, server string
		want             bool
	}{
		{"https://a.example/mcp", "https://a.example/mcp", true},
		{"https://A.example:443/mcp/", "https://a.example/mcp", true},
		{"https://a.example", "https://a.example/mcp", true},
		{"https://a.example/", "https://a.example/v1/sse", true},
		{"https://a.example/m", "https://a.example/mcp", false},
		{"https://a.example/mcp/other", "https://a.example/mcp", false},
		{"https://b.example/mcp", "https://a.example/mcp", false},
		{"http://a.example/mcp", "https://a.example/mcp", false},
		{"https://a.example:8443/mcp", "https://a.example/mcp", false},
		{"https://a.example/mcp#x", "https://a.example/mcp", false},
		{"https://a.example/mcp?t=1", "https://a.example/mcp", false},
		{"https://a.example@b.example/mcp", "https://a.example/mcp", false},
		{":", "https://a.example/mcp", false},
	} {
		if got := isFor(tt.resource, tt.server); got != tt.want {
			t.Errorf("isFor(%q, %q) = %v", tt.resource, tt.server, got)
		}
	}
}

func TestParseChallenge(t *testing.T) {
	for header, want := range map[string]challenge{
		`Bearer`: {},
		`bearer resource_metadata="https://a.example/prm", scope="a b  a"`:             {metadata: "https://a.example/prm", scopes: []string{"a", "b"}},
		`Basic realm="a, Bearer scope=x", Bearer error=invalid_token, scope="r\"w ok"`: {err: "invalid_token", scopes: []string{"ok"}},
		`Bearer realm="x" ,scope = "a" , scope="b"`:                                    {scopes: []string{"a"}},
		`Negotiate, Bearer scope="a`:                                                   {scopes: []string{"a"}},
		`DPoP scope=a`:                                                                 {scopes: []string{"a"}, bound: true},
		`Bearer "=`:                                                                    {},
		`,,, ;`:                                                                        {},
		`Bearer scope="` + strings.Repeat("s", 300) + ` ok"`:                           {scopes: []string{"ok"}},
	} {
		got := parseChallenge([]string{header})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s\n got %+v\nwant %+v", header, got, want)
		}
	}
	if got := parseChallenge([]string{"Basic x", `Bearer scope=a`}); len(got.scopes) != 1 {
		t.Errorf("the second header was passed over: %+v", got)
	}
	many := strings.Repeat("a", 1)
	for i := range 500 {
		many += fmt.Sprintf(" s%d", i)
	}
	if got := scopesOf(many); len(got) != maxScopes {
		t.Errorf("%d scopes", len(got))
	}
}

func FuzzParseChallenge(f *testing.F) {
	f.Add(`Bearer resource_metadata="https://a.example", scope="a b"`)
	f.Add(`Basic realm="\"", Bearer error=x,,=`)
	f.Add("Bearer \x00=\"")
	f.Fuzz(func(t *testing.T, header string) {
		for _, s := range parseChallenge([]string{header}).scopes {
			if !validScope(s) {
				t.Errorf("scope %q", s)
			}
		}
	})
}

// A public server cannot reach internal addresses in any notation.
func TestInternalAddressesInEveryNotation(t *testing.T) {
	for _, host := range []string{
		"127.0.0.1", "localhost", "a.localhost.", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]",
		"[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1%25eth0]", "[fd00::1]", "[::]", "0.0.0.0", "0",
		"2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1",
		"169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "[::ffff:169.254.169.254]", "10.0.0.1", "10.1", "192.168.1.1",
	} {
		u, err := url.Parse("https://" + host + "/token")
		if err != nil {
			t.Fatalf("%s: %v", host, err)
		}
		if err := (addressPolicy{}).checkURL(u); err == nil {
			t.Errorf("%s may be asked", host)
		}
	}
	if err := (addressPolicy{}).checkURL(&url.URL{Scheme: "https", Host: "login.example.com"}); err != nil {
		t.Error(err)
	}
}
