package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// formAction matches the target of the form on the provider's page.
var formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)

// TestPeopleSignInWithRealProvider signs three users in to the page with a real
// OpenID provider: one with rights, an administrator, and one without a rule. Then
// each of them uses every API.
func TestPeopleSignInWithRealProvider(t *testing.T) {
	t.Parallel()
	as := startGuarded(t, 3600)
	home := newHome(t, `{"auth":{"loopback":"key"}}`)
	gw := home.serve()
	client := as.registerPage(gw.url)
	home.write("junctor.json", fmt.Sprintf(`{"auth":{"loopback":"key","oidc":{"issuer":%q,"clientId":%q,"clientSecret":%q,"name":"Example","scopes":["openid"],
		"rules":[{"claims":{"groups":["ada-team"]},"tools":["junctor:calculate"]},{"claims":{"groups":["root-team"]},"admin":true}]}}}`, as.Issuer, client.ID, client.Secret))
	eventually(t, "the page offers the provider", func() bool {
		_, body := gw.send("GET", "/api/session", "")
		return strings.Contains(body, `"oidc":"Example"`)
	})
	sessions := map[string]string{"eve": "none"}
	for person, want := range map[string]struct {
		status int
		config int // status of a request that only administrators may make
	}{"ada": {200, 403}, "root": {200, 200}, "eve": {403, 0}} {
		b := newBrowserWindow(t)
		at, body := b.open("GET", gw.url+"/api/oidc/start", nil)
		for range 2 { // the login, then the consent
			if m := formAction.FindStringSubmatch(body); m != nil && b.status == http.StatusOK {
				target, err := at.Parse(m[1])
				if err != nil {
					t.Fatal(err)
				}
				prompt := "login"
				if strings.Contains(body, `value="consent"`) {
					prompt = "consent"
				}
				at, body = b.open("POST", target.String(), url.Values{"prompt": {prompt}, "login": {person}, "password": {"x"}})
			}
		}
		if b.status != want.status {
			t.Errorf("%s: %d at %s: %.400s", person, b.status, at, body)
			continue
		}
		if want.status != http.StatusOK {
			continue
		}
		ticket := at.Query().Get("signin")
		_, body = b.open("POST", gw.url+"/api/session", nil, fmt.Sprintf(`{"signin":%q}`, ticket))
		var session struct{ Session string }
		if err := json.Unmarshal([]byte(body), &session); err != nil || session.Session == "" {
			t.Fatalf("%s has no session: %d %s", person, b.status, body)
		}
		sessions[person] = session.Session
		if code, _ := gw.send("GET", "/api/config", "", "X-Junctor-Session", session.Session); code != want.config {
			t.Errorf("%s reads the configuration: %d, want %d", person, code, want.config)
		}
		if code, body := gw.send("POST", "/api/call", `{"tool":"junctor:calculate","arguments":{"expression":"6*7"}}`, "X-Junctor-Session", session.Session, "Content-Type", "application/json"); code != http.StatusOK || !strings.Contains(body, "42") {
			t.Errorf("%s calls a tool: %d %s", person, code, body)
		}
	}
	peopleUseEveryAPI(t, gw, sessions)
}

// peopleUseEveryAPI sends the same requests as each user: root, who may use
// everything, ada, who may use one tool, and eve, who may use nothing.
func peopleUseEveryAPI(t *testing.T, gw *gateway, sessions map[string]string) {
	t.Helper()
	const (
		own     = "calculate"            // what ada may use
		guarded = "Transform or measure" // what only root may see
		secret  = "the words of root"    // in a call of root
		any     = 0                      // not refused
	)
	rpc := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, method, params)
	}
	counts := fmt.Sprintf(`{"operation":"count","text":%q}`, secret)
	type request struct {
		name, method, path, body string
		ada, root                int
	}
	requests := []request{
		{"MCP, meta: search", "POST", "/mcp", rpc("tools/call", `"name":"search_tools","arguments":{"query":"transform a text, calculate"},`), 200, 200},
		{"MCP, meta: call", "POST", "/mcp", rpc("tools/call", `"name":"execute_tool","arguments":{"server":"junctor","tool":"text","arguments":`+counts+`},`), any, 200},
		{"MCP, direct: list", "POST", "/mcp?mode=direct", rpc("tools/list", ""), 200, 200},
		{"MCP, direct: call", "POST", "/mcp?mode=direct", rpc("tools/call", `"name":"junctor__text","arguments":`+counts+`,`), any, 200},
		{"MCP, one server: list", "POST", "/mcp/junctor", rpc("tools/list", ""), 200, 200},
		{"MCP, code: list", "POST", "/mcp?mode=code", rpc("tools/list", ""), 200, 200},
		{"script", "POST", "/run", `{"code":"return await tools.junctor.text(` + strings.ReplaceAll(counts, `"`, `\"`) + `)"}`, 200, 200},
		{"tools API: list", "GET", "/tools", "", 200, 200},
		{"tools API: format", "GET", "/tools/openai", "", 200, 200},
		{"tools API: call", "POST", "/call_tool", `{"server":"junctor","tool":"text","arguments":` + counts + `}`, 404, 200},
		{"tools API: logs", "GET", "/logs?limit=100", "", 200, 200},
		{"broker", "POST", "/api/mcp/junctor/proxy", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, any, any},
		{"chat: conversations", "GET", "/api/sessions", "", 200, 200},
		{"chat: socket", "GET", "/ws", "", any, any},
		{"agentify", "POST", "/api/orchestrate", `{"query":"count the words"}`, 403, any},
		{"page: tools", "GET", "/api/tools?query=transform+a+text", "", 200, 200},
		{"page: tool", "GET", "/api/tools/junctor/text", "", 404, 200},
		{"page: call", "POST", "/api/call", `{"tool":"junctor:text","arguments":` + counts + `}`, 404, 200},
		{"page: calls", "GET", "/api/calls?q=words", "", 200, 200},
		{"page: export", "GET", "/api/export", "", 200, 200},
		{"page: statistics", "GET", "/api/stats", "", 200, 200},
		{"page: audit", "GET", "/api/audit", "", 403, 200},
		{"page: keys", "GET", "/api/keys", "", 403, 200},
		{"page: change", "PUT", "/api/profiles/mine", `{}`, 403, 200},
		{"page: approvals", "GET", "/api/approvals", "", 200, 200},
		{"WebSocket: log", "GET", "/ws/logs", "", 403, any},
		{"metrics", "GET", "/metrics", "", 403, 200},
	}
	for _, person := range []string{"root", "ada", "eve"} { // root first, so that there is something to hide
		for _, q := range requests {
			header := []string{"X-Junctor-Session", sessions[person], "Content-Type", "application/json"}
			if strings.HasPrefix(q.path, "/mcp") {
				var m struct{ Method string }
				if err := json.Unmarshal([]byte(q.body), &m); err != nil {
					t.Fatal(err)
				}
				header = append(header, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", m.Method)
				if m.Method == "tools/call" {
					name, _, _ := strings.Cut(strings.SplitN(q.body, `"name":"`, 2)[1], `"`)
					header = append(header, "Mcp-Name", name)
				}
			}
			code, body := gw.send(q.method, q.path, strings.ReplaceAll(q.body, secret, "the words of "+person), header...)
			want := map[string]int{"root": q.root, "ada": q.ada, "eve": 401}[person]
			if want != any && code != want || want == any && (code == 401 || code == 403) {
				t.Errorf("%s, %s: %d, want %d: %.300s", person, q.name, code, want, body)
			}
			if person == "eve" {
				continue
			}
			if person == "ada" && (strings.Contains(body, guarded) || strings.Contains(body, secret)) {
				t.Errorf("ada, %s: sees what is not hers: %.300s", q.name, body)
			}
			if strings.HasSuffix(q.name, ": list") && (!strings.Contains(body, own) && !strings.Contains(body, "search_tools") || person == "root" && q.name != "MCP, code: list" && !strings.Contains(body, guarded)) {
				t.Errorf("%s, %s: %.300s", person, q.name, body)
			}
		}
	}
}

// pageClient is the registration of a gateway's page with the provider.
type pageClient struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// registerPage registers the page of a gateway with the provider.
func (g *guarded) registerPage(gateway string) (client pageClient) {
	g.t.Helper()
	registration := fmt.Sprintf(`{"client_name":"page","redirect_uris":[%q],"grant_types":["authorization_code"],"response_types":["code"],"token_endpoint_auth_method":"client_secret_basic"}`, gateway+"/api/oidc/callback")
	res, err := http.Post(g.Issuer+"/reg", "application/json", strings.NewReader(registration))
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&client); err != nil || client.ID == "" {
		g.t.Fatalf("registration: %s %v", res.Status, err)
	}
	return client
}

// browserWindow is a minimal browser with forms and cookies.
type browserWindow struct {
	t      *testing.T
	client *http.Client
	status int // of the last page
}

func newBrowserWindow(t *testing.T) *browserWindow {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browserWindow{t: t, client: &http.Client{Jar: jar}}
}

// open follows a link, or sends a form or a body, and returns the final URL and
// the page.
func (b *browserWindow) open(method, target string, form url.Values, body ...string) (*url.URL, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctxFor(b.t), method, target, strings.NewReader(form.Encode()+strings.Join(body, "")))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	b.status = res.StatusCode
	return res.Request.URL, string(data)
}
