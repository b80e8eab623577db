package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"junctor/internal/upstream/upstreamtest"
)

// need is what a route requires of its caller.
type need string

const (
	public    need = "nothing"  // anyone, even without credentials
	anyCaller need = "a caller" // limited to what the caller may see and do
	useModels need = "a caller that may use models"
	whole     need = "a caller without restrictions"
	operator  need = "an administrator or the local user"
	admin     need = "an administrator"
	person    need = "a caller with its own credential"
	notHere   need = "not tried here" // see the comment at the row
)

// access lists what each route requires, by its pattern as written in the
// source. TestEveryRouteHasAccessRow fails for a route that is not listed, so
// that access to a new route is decided explicitly.
var access = map[string]need{
	// MCP
	"/mcp": anyCaller, "/mcp/{server}": anyCaller,
	// The tools API.
	"GET /tools": anyCaller, "GET /tools/{provider}": anyCaller, "GET /tools/{provider}/context": anyCaller, "POST /execute": anyCaller, "POST /call_tool": anyCaller, "POST /run": anyCaller,
	"GET /logs": anyCaller, "GET /health": public, "GET /health/live": public, "GET /health/ready": public, "GET /openapi.json": anyCaller,
	// The proxy.
	"POST /api/mcp/{name}/proxy": anyCaller, "GET /api/mcp/{name}/proxy/status": anyCaller, "GET /api/connections": anyCaller,
	// Chat and agentify.
	"GET /ws": anyCaller /* models are checked for each message */, "GET /api/models": anyCaller, "GET /api/sessions": anyCaller, "GET /api/sessions/{id}": anyCaller, "PATCH /api/sessions/{id}": anyCaller,
	"DELETE /api/sessions/{id}": anyCaller, "GET /api/sessions/{id}/export": anyCaller, "POST /api/sessions/{id}/title": useModels, "POST /api/orchestrate": useModels,
	"GET /api/backends": anyCaller, "GET /api/logs": operator, "GET /api/mcptrace": anyCaller, "GET /ws/logs": operator, "GET /ws/mcptrace": anyCaller,
	// The page and the command line.
	"GET /api/status": anyCaller, "GET /api/events": anyCaller, "GET /api/tools": anyCaller, "GET /api/tools/{server}/{tool...}": anyCaller,
	"PATCH /api/tools/{server}/{tool...}": admin, "POST /api/call": anyCaller, "GET /api/servers": anyCaller, "GET /api/servers/{name}": anyCaller,
	"POST /api/servers": admin, "GET /api/servers/{name}/config": admin, "PUT /api/servers/{name}": admin, "PATCH /api/servers/{name}": admin,
	"DELETE /api/servers/{name}": admin, "POST /api/servers/{name}/restart": admin, "POST /api/servers/{name}/request": anyCaller,
	"GET /api/changes": admin, "POST /api/servers/{name}/approve": admin, "GET /api/import": admin, "POST /api/import": admin,
	"GET /api/calls": anyCaller, "GET /api/waiting": anyCaller, "GET /api/calls/{id}": anyCaller, "POST /api/calls/{id}": anyCaller, "DELETE /api/calls/{id}": anyCaller,
	"GET /api/export": anyCaller, "GET /api/stats": anyCaller, "GET /api/config": admin, "GET /api/config/schema": admin, "PATCH /api/config": admin,
	"GET /api/profiles": anyCaller, "POST /api/profiles/preview": admin, "GET /api/profiles/{name}": anyCaller, "PUT /api/profiles/{name}": admin, "DELETE /api/profiles/{name}": admin,
	"GET /api/keys": admin, "POST /api/keys": admin, "DELETE /api/keys/{name}": admin, "GET /api/audit": admin,
	"GET /api/approvals": anyCaller, "GET /api/approvals/events": admin, "POST /api/approvals/{id}": admin, "DELETE /api/approvals/{tool...}": anyCaller,
	// Sign-in.
	"GET /api/session": public, "POST /api/session": public, "DELETE /api/session": notHere /* ends the session of the test */, "POST /api/session/ticket": person,
	"GET /api/page-sessions": person, "DELETE /api/page-sessions/{id}": person, "GET /api/clients": anyCaller, "DELETE /api/clients/{id}": anyCaller,
	"POST /api/mcp/{name}/authorize": anyCaller, "DELETE /api/mcp/{name}/authorize": anyCaller, "GET /api/mcp/{name}/logins": admin,
	"MetadataPath": public, `MetadataPath + "/"`: public, `"GET " + CallbackPath`: public, `"POST " + CallbackPath`: public, `"GET " + MetadataPath`: public, `"GET " + KeysPath`: public,
	`"GET " + AuthorizePath`: public, `"POST " + TokenPath`: public, `"POST " + RegisterPath`: public, `"POST " + RevokePath`: public,
	`"GET " + OIDCStartPath`: public, `"GET " + OIDCCallbackPath`: public,
	`"GET " + ConsentPath`: public, `"POST " + ConsentPath`: public,
	// The rest.
	"GET /metrics": whole, "/.well-known/": public, "/": public,
	// Not routes of the gateway, or built from tables that are listed here.
	`"GET " + PagePath`: notHere, "pattern": notHere, `r.method + " " + r.path`: notHere, "r.path": notHere, "root": notHere,
}

// routesInSource returns the patterns of all routes, as written in the source.
func routesInSource(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		add := func(e ast.Expr) {
			var b strings.Builder
			if err := printer.Fprint(&b, set, e); err != nil {
				t.Fatal(err)
			}
			text := b.String()
			if plain, err := strconv.Unquote(text); err == nil {
				text = plain
			}
			found[text] = set.Position(e.Pos()).String()
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if len(n.Args) != 2 {
					return true
				}
				switch f := n.Fun.(type) {
				case *ast.SelectorExpr: // other types have a Handle method, too
					if x, ok := f.X.(*ast.Ident); ok && (x.Name == "mux" || x.Name == "faces") && strings.HasPrefix(f.Sel.Name, "Handle") {
						add(n.Args[0])
					}
				case *ast.Ident:
					if f.Name == "handle" {
						add(n.Args[0])
					}
				}
			case *ast.CompositeLit: // the table of the tools API
				if len(n.Elts) == 3 && n.Type == nil {
					method, ok := n.Elts[0].(*ast.BasicLit)
					path, isPath := n.Elts[1].(*ast.BasicLit)
					if ok && isPath && strings.HasPrefix(path.Value, `"/`) {
						found[strings.Trim(method.Value, `"`)+" "+strings.Trim(path.Value, `"`)] = set.Position(n.Pos()).String()
					}
				}
			}
			return true
		})
	}
	return found
}

func TestEveryRouteHasAccessRow(t *testing.T) {
	found := routesInSource(t)
	if len(found) < 80 {
		t.Errorf("only %d routes found", len(found))
	}
	for route, at := range found {
		if access[route] == "" {
			t.Errorf("%s: the route %q has no row in the table access of this test; say there who may use it", at, route)
		}
	}
	for route := range access {
		if found[route] == "" {
			t.Errorf("the table access has a row for %q, which is no route", route)
		}
	}
}

// issuer signs tokens for the matrix.
func issuer(t *testing.T) (url string, sign func(claims map[string]any) string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	answer := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{"issuer": server.URL, "jwks_uri": server.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return server.URL, func(claims map[string]any) string {
		all := map[string]any{"iss": server.URL, "aud": "https://junctor.example/mcp", "exp": time.Now().Add(time.Hour).Unix()}
		maps.Copy(all, claims)
		raw, err := jwt.Signed(signer).Claims(all).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
}

// somebody is one kind of caller.
type somebody struct {
	header  []string
	query   string // a chosen profile
	refused int    // status with which all but public routes respond; 0 for none
	has     []need // in addition to anyCaller
	limited bool   // may not see the server "theirs"
}

// TestAccessMatrix sends a request to every route as every kind of caller.
// Callers that may not use a route are refused, others are not, and no
// response to a limited caller reveals what it may not see.
func TestAccessMatrix(t *testing.T) {
	mine, theirs := upstreamtest.Listen(t, upstreamtest.Script{}), upstreamtest.Listen(t, upstreamtest.Script{})
	url, sign := issuer(t)
	cfg := func(loopback string) string {
		return fmt.Sprintf(`{"builtin":false,"mcpServers":{"mine":{"url":%q,"proxy":true},"theirs-guarded":{"url":%q,"proxy":true}},"profiles":{"part":{"servers":["mine"]}},
		"auth":{"loopback":%q,"keys":[{"name":"globs","key":"key-with-globs-00001","servers":["mine"]},{"name":"bound","key":"key-with-profile-001","profile":"part"},
			{"name":"plain","key":"key-without-limits-1"},{"name":"talks","key":"key-that-chats-00001","servers":["mine"],"chat":true}],
			"jwt":{"issuer":%q,"audience":"https://junctor.example/mcp","rules":[{"claims":{"groups":["eng"]},"profiles":["part"]},{"claims":{"email":["*@example.com"]},"servers":["mine"]},{"scopes":["root"],"admin":true}]}}}`,
			mine.URL, theirs.URL, loopback, url)
	}
	key := func(k string) []string { return []string{"X-API-Key", k} }
	bearer := func(claims map[string]any) []string { return []string{"Authorization", "Bearer " + sign(claims)} }
	locked, data := start(t, cfg("key"), t.TempDir()), t.TempDir()
	open := start(t, cfg("open"), data)
	everything := []need{useModels, whole, operator, admin, person}
	type gateway struct {
		url  string
		ways map[string]somebody
	}
	for _, g := range []gateway{
		{locked.url, map[string]somebody{
			"no credentials":                  {refused: 401},
			"wrong key":                       {header: key("key-that-is-unknown-1"), refused: 401},
			"key with globs":                  {header: key("key-with-globs-00001"), has: []need{person}, limited: true},
			"key with globs and chat":         {header: key("key-that-chats-00001"), has: []need{person, useModels}, limited: true},
			"key with a profile":              {header: key("key-with-profile-001"), has: []need{person}, limited: true},
			"key that chooses":                {header: key("key-without-limits-1"), query: "profile=part", has: []need{person, useModels}, limited: true},
			"key without limits":              {header: key("key-without-limits-1"), has: []need{person, useModels, whole}},
			"administrator":                   {header: key("admin-key-for-the-tests"), has: everything},
			"administrator narrowed":          {header: key("admin-key-for-the-tests"), query: "profile=part", has: []need{person, useModels}, limited: true},
			"token without a match":           {header: bearer(map[string]any{"sub": "nora"}), refused: 403},
			"email not verified":              {header: bearer(map[string]any{"sub": "nora", "email": "n@example.com", "email_verified": false}), refused: 403},
			"token by its group":              {header: bearer(map[string]any{"sub": "ada", "groups": []string{"eng"}}), has: []need{person}, limited: true},
			"token by its email":              {header: bearer(map[string]any{"sub": "bob", "email": "b@example.com", "email_verified": true}), has: []need{person}, limited: true},
			"administrator's token":           {header: bearer(map[string]any{"sub": "root", "scope": "root"}), has: everything},
			"administrator's token, narrowed": {header: bearer(map[string]any{"sub": "root", "scope": "root"}), query: "profile=part", has: []need{person, useModels}, limited: true},
		}},
		{open.url, map[string]somebody{
			"open loopback":           {has: []need{useModels, whole, operator}},
			"open loopback, narrowed": {query: "profile=part", has: []need{useModels}, limited: true},
			"page":                    {header: []string{"X-Junctor-Session", signIn(t, open.url, data)}, has: everything},
			"page, narrowed":          {header: []string{"X-Junctor-Session", signIn(t, open.url, data)}, query: "profile=part", has: []need{person, useModels}, limited: true},
		}},
	} {
		for name, who := range g.ways {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, route := range slices.Sorted(maps.Keys(access)) {
					what := access[route]
					if what == notHere || !strings.Contains(route, "/") || strings.Contains(route, `"`) {
						continue
					}
					code, body := who.send(t, g.url, route)
					refused := code == 401 || code == 403
					switch {
					case what == public:
						if refused && route != "POST /api/session" {
							t.Errorf("%s: %d %s", route, code, body)
						}
					case who.refused != 0:
						if code != who.refused {
							t.Errorf("%s: %d, want %d: %s", route, code, who.refused, body)
						}
					case what == anyCaller || slices.Contains(who.has, what):
						if refused && !strings.Contains(route, "/authorize") { // checks administrators and owners itself
							t.Errorf("%s: %d %s", route, code, body)
						}
					case what == person: // callers without a credential have none of these
						if code < 400 {
							t.Errorf("%s: %d %s", route, code, body)
						}
					default:
						if !refused {
							t.Errorf("%s needs %s: %d %s", route, what, code, body)
						}
					}
					if (who.limited || who.refused != 0) && strings.Contains(body, "theirs-guarded") {
						t.Errorf("%s shows what is guarded: %d %s", route, code, body)
					}
				}
			})
		}
	}
}

// send sends a request to a route and returns the status and the beginning of
// the response. Except for the server "mine", the route's parameters name
// nothing that exists.
func (who somebody) send(t *testing.T, base, route string) (int, string) {
	t.Helper()
	method, path, ok := strings.Cut(route, " ")
	if !ok {
		method, path = "GET", route
		if strings.HasPrefix(route, "/mcp") {
			method = "POST"
		}
	}
	body := "no JSON"
	if path == "/api/orchestrate" && !slices.Contains(who.has, useModels) {
		body = `{"query":"x"}`
	}
	path = strings.NewReplacer("{server}", "mine", "{tool...}", "none", "{provider}", "openai", "{name}", "mine", "{id}", "none").Replace(path)
	if method != "GET" { // must not change anything
		path = strings.NewReplacer("/servers/mine", "/servers/none", "/profiles/mine", "/profiles/none", "/keys/mine", "/keys/none").Replace(path)
	}
	if who.query != "" {
		path += "?" + who.query
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == "GET" {
		req.Body = http.NoBody
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if !strings.HasPrefix(path, "/mcp") {
		req.Header.Set("Accept", "application/json")
	}
	for i := 0; i+1 < len(who.header); i += 2 {
		req.Header.Set(who.header[i], who.header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", route, err)
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return res.StatusCode, "" // does not end
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", route, err)
	}
	return res.StatusCode, string(b)
}

// emptyForAnonymous lists the routes that respond to a caller without rights
// with an empty list, or with data that does not depend on the caller.
var emptyForAnonymous = []string{
	"GET /api/approvals", "GET /api/backends", "GET /api/calls", "GET /api/clients", "GET /api/connections", "GET /api/events", "GET /api/export", "GET /api/mcptrace", "GET /api/models",
	"GET /api/profiles", "GET /api/servers", "GET /api/sessions", "GET /api/stats", "GET /api/status", "GET /api/tools", "GET /api/waiting",
	"GET /logs", "GET /openapi.json", "GET /tools", "GET /tools/{provider}", "GET /tools/{provider}/context",
}

// TestRoutesWithoutCallerShowNothing sends a request to every mounted route,
// bypassing the gate, and thus without a caller.
func TestRoutesWithoutCallerShowNothing(t *testing.T) {
	up := upstreamtest.Listen(t, upstreamtest.Script{})
	r := start(t, fmt.Sprintf(`{"mcpServers":{"mine":{"url":%q,"proxy":true}},"profiles":{"guarded-part":{"servers":["mine"]}}}`, up.URL), t.TempDir())
	r.connected("mine")
	gate, err := r.newGate(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mounted := httptest.NewServer(r.mount(gate))
	t.Cleanup(mounted.Close)
	for _, route := range slices.Sorted(maps.Keys(access)) {
		what := access[route]
		if what == notHere || what == public || !strings.Contains(route, "/") || strings.Contains(route, `"`) {
			continue
		}
		code, body := somebody{}.send(t, mounted.URL, route)
		if (code/100 == 2) != slices.Contains(emptyForAnonymous, route) {
			t.Errorf("%s: %d %s", route, code, body)
		}
		if code/100 == 2 && (strings.Contains(body, `"mine`) || strings.Contains(body, "echo") || strings.Contains(body, "guarded-part")) && route != "GET /openapi.json" {
			t.Errorf("%s shows data to an anonymous caller: %s", route, body)
		}
	}
	// Requests that succeed for a caller with rights.
	const call = `"params":{"name":"echo","arguments":{}}}`
	for _, tt := range [][3]string{
		{"POST", "/call_tool", `{"server":"mine","tool":"echo","arguments":{}}`}, {"POST", "/call_tool", `{"tool":"calculate","arguments":{"expression":"6*7"}}`},
		{"POST", "/api/call", `{"tool":"mine:echo","arguments":{}}`}, {"POST", "/api/call", `{"tool":"calculate","arguments":{"expression":"6*7"}}`}, {"POST", "/run", `{"code":"return 1"}`},
		{"POST", "/api/mcp/mine/proxy", `{"jsonrpc":"2.0","id":1,"method":"tools/call",` + call}, {"POST", "/api/servers/mine/request", `{"method":"ping","params":{}}`},
		{"POST", "/mcp/mine", `{"jsonrpc":"2.0","id":1,"method":"tools/call",` + call}, {"POST", "/api/mcp/mine/authorize", ``}, {"DELETE", "/api/mcp/mine/authorize", ``},
		{"POST", "/api/orchestrate", `{"query":"echo"}`}, {"POST", "/api/keys", `{"name":"x","admin":true}`}, {"POST", "/api/servers", `{"servers":{"mcpServers":{"evil":{"command":"true"}}}}`},
		{"PATCH", "/api/servers/mine", `{"enabled":false}`}, {"DELETE", "/api/servers/mine", ``}, {"POST", "/api/servers/mine/restart", ``}, {"PATCH", "/api/tools/mine/echo", `{"enabled":false}`},
		{"PATCH", "/api/config", `{"set":{"log":{"level":"debug"}}}`}, {"PUT", "/api/profiles/part", `{"servers":["mine"]}`}, {"GET", "/tools?profile=guarded-part", ``}, {"GET", "/profiles/guarded-part/tools", ``},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt[0], mounted.URL+tt[1], strings.NewReader(tt[2]))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode < 400 || res.StatusCode >= 500 {
			t.Errorf("%s %s %s: %d %s", tt[0], tt[1], tt[2], res.StatusCode, body)
		}
	}
}
