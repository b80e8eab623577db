package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// guarded is a real authorization server and an MCP server behind it.
type guarded struct {
	t        *testing.T
	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`
}

// happened counts what the authorization server and the MCP server received.
type happened struct {
	Codes, Refreshes, Replays, Own, Registered, Served, Refused, TurnedAway int
	Authorization, Forwarded                                                []string
	Expired, Ending                                                         bool // state of the latest token; Ending: at most a tenth of its lifetime is left
}

// startGuarded starts both servers; life is the lifetime of tokens in seconds.
func startGuarded(t *testing.T, life int) *guarded {
	t.Helper()
	node, _ := suiteNode(t)
	cmd := exec.Command(node, filepath.Join(here(t), "testdata", "guarded.mjs"))
	cmd.Env = append(os.Environ(), "E2E="+here(t), fmt.Sprintf("TOKEN_LIFE=%d", life))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // the process exits when its stdin is closed
		kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		_ = cmd.Wait()
	})
	g := &guarded{t: t}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if json.Unmarshal(lines.Bytes(), g) == nil && g.Issuer != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return g
		}
	}
	t.Fatalf("the authorization server did not start: %v", lines.Err())
	return nil
}

func here(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (g *guarded) happened() happened {
	g.t.Helper()
	var h happened
	fetchJSON(g.t, strings.TrimSuffix(g.Resource, "/mcp")+"/test/stats", &h)
	return h
}

// expire waits until the token has expired. Refreshes are held until hold is
// set to false, so that no background refresh precedes the test's own calls.
func (g *guarded) expire() {
	g.t.Helper()
	g.set("hold", "true")
	eventually(g.t, "the token has expired", func() bool { return g.happened().Expired })
}

// set changes the behaviour of the servers.
func (g *guarded) set(key, value string) {
	g.t.Helper()
	resp, err := http.Get(strings.TrimSuffix(g.Resource, "/mcp") + "/test/set?" + url.Values{key: {value}}.Encode())
	if err != nil {
		g.t.Fatal(err)
	}
	resp.Body.Close()
}

func fetchJSON(t testing.TB, address string, into any) {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatalf("%s: %v", address, err)
	}
}

func (g *guarded) config(more string) string {
	return fmt.Sprintf(`{"mcpServers":{"guarded":{"url":%q,"proxy":true%s}}}`, g.Resource, more)
}

// browser returns the command of a browser in which a user signs in and
// consents.
func browser(t *testing.T) string {
	t.Helper()
	chromium(t)
	node, _ := suiteNode(t)
	return node + " " + filepath.Join(here(t), "testdata", "browser.mjs")
}

// browserExited waits until a browser that was started without waiting for it
// has removed its profile, which is the last change that it makes to the folder.
func (h *homeFolder) browserExited() {
	h.t.Helper()
	eventually(h.t, "the end of the browser", func() bool {
		profiles, err := filepath.Glob(filepath.Join(h.dir, "browser-*"))
		return err == nil && len(profiles) == 0
	})
}

// send sends a request to the gateway and returns the status and the body of
// the response.
func (g *gateway) send(method, path, body string, header ...string) (int, string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(ctxFor(g.t), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

const whoami = `{"method":"tools/call","params":{"name":"whoami","arguments":{}}}`

// bossKey is the key of an administrator.
const bossKey = "jct_THEKEYOFTHEADMINISTRATOR"

// signedIn starts a gateway and signs it in, without a browser.
// TestLoginByCommand and TestLoginByPage sign in with a real browser.
func signedIn(t *testing.T, g *guarded) *gateway {
	t.Helper()
	h := newHome(t, strings.TrimSuffix(g.config(""), "}")+`,"auth":{"keys":[{"name":"boss","key":"`+bossKey+`","admin":true}]}}`)
	gw := h.serve()
	g.signIn(gw, bossKey)
	return gw.ready("guarded")
}

// signIn signs a gateway in, with the key of an administrator.
func (g *guarded) signIn(gw *gateway, key string) {
	g.t.Helper()
	status, body := gw.send("POST", "/api/mcp/guarded/authorize", "", "X-Api-Key", key, "Origin", gw.url)
	var begun struct{ URL string }
	if err := json.Unmarshal([]byte(body), &begun); err != nil || status != http.StatusOK {
		g.t.Fatalf("authorize: %d %s", status, body)
	}
	g.consent("ada", begun.URL)
}

// TestLoginByCommand signs in and out again with the real command and a real
// browser.
func TestLoginByCommand(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, 3600)
	h := newHome(t, g.config(""))
	config := []string{"--config", h.config}
	out, errs, err := h.run(nil, nil, junctor(t), append([]string{"tools", "call", "guarded:whoami"}, config...)...)
	if err == nil || !strings.Contains(errs, "junctor servers login guarded") {
		t.Errorf("a call before the login: %v\n%s%s", err, out, errs)
	}
	said := filepath.Join(h.dir, "said")
	env := []string{"BROWSER=" + browser(t), "E2E=" + here(t), "SAID=" + said}
	text := h.mustRun(env, junctor(t), append([]string{"servers", "login", "guarded"}, config...)...)
	if !strings.Contains(text, "Signed in to guarded.") {
		t.Errorf("login says %s", text)
	}
	h.browserExited()
	if out := h.mustRun(nil, junctor(t), append([]string{"tools", "call", "guarded:whoami"}, config...)...); !strings.Contains(out, "account ada") {
		t.Errorf("whoami says %s", out)
	}
	if out := h.mustRun(nil, junctor(t), append([]string{"servers", "list"}, config...)...); !strings.Contains(out, "connected") {
		t.Errorf("servers list says %s", out)
	}
	// The stored tokens are encrypted, and only the owner can read the key.
	saw := g.happened()
	if saw.Codes != 1 || saw.Registered != 1 || len(saw.Authorization) != 1 {
		t.Errorf("saw %+v", saw)
	}
	token := strings.TrimPrefix(saw.Authorization[0], "Bearer ")
	var keys int
	err = filepath.WalkDir(h.dir, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), token) {
			t.Errorf("%s holds the token", path)
		}
		if d.Name() == "secret.key" {
			info, err := d.Info()
			if err != nil {
				return err
			}
			if keys++; info.Mode().Perm() != 0o600 {
				t.Errorf("the key's file has mode %v", info.Mode())
			}
		}
		return nil
	})
	if err != nil || keys != 1 {
		t.Errorf("%d keys, %v", keys, err)
	}
	if text := h.mustRun(nil, junctor(t), append([]string{"servers", "logout", "guarded"}, config...)...); !strings.Contains(text, "Signed out") {
		t.Errorf("logout says %s", text)
	}
	if _, errs, err := h.run(nil, nil, junctor(t), append([]string{"tools", "call", "guarded:whoami"}, config...)...); err == nil || !strings.Contains(errs, "sign-in") {
		t.Errorf("a call after the logout: %v\n%s", err, errs)
	}
	// The registration is reused, the revoked token is not.
	h.mustRun(env, junctor(t), append([]string{"servers", "login", "guarded"}, config...)...)
	h.browserExited()
	if out := h.mustRun(nil, junctor(t), append([]string{"tools", "call", "guarded:whoami"}, config...)...); !strings.Contains(out, "account ada") {
		t.Errorf("whoami says %s", out)
	}
	if saw := g.happened(); saw.Codes != 2 || len(saw.Authorization) != 2 || saw.Replays != 0 {
		t.Errorf("saw %+v", saw)
	}
	// A user who does not consent.
	h.mustRun(nil, junctor(t), append([]string{"servers", "logout", "guarded"}, config...)...)
	_, errs, err = h.run(nil, append(env, "DENY=1"), junctor(t), append([]string{"servers", "login", "guarded"}, config...)...)
	h.browserExited()
	if err == nil || !strings.Contains(errs, "access_denied") {
		t.Errorf("login that was refused: %v\n%s", err, errs)
	}
}

// TestLoginByPage signs in through the gateway's own callback.
func TestLoginByPage(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, 3600)
	gw := newHome(t, g.config("")).serve("--log-level", "trace") // to check that no log level shows secrets
	status, body := gw.send("POST", "/api/mcp/guarded/proxy", whoami)
	var failed struct {
		Code    string
		Details struct{ URL string }
	}
	if err := json.Unmarshal([]byte(body), &failed); err != nil || status != 401 || failed.Code != "UPSTREAM_AUTH_REQUIRED" || !strings.HasPrefix(failed.Details.URL, g.Issuer+"/auth?") {
		t.Fatalf("a call before the login: %d %s", status, body)
	}
	if _, body := gw.send("GET", "/api/mcp/guarded/proxy/status", ""); !strings.Contains(body, `"hasToken":false`) || !strings.Contains(body, `"isAuthorized":false`) {
		t.Errorf("status before: %s", body)
	}
	status, body = gw.send("POST", "/api/mcp/guarded/authorize", "", append(gw.asAdmin(), "Origin", gw.url)...)
	var begun struct{ URL string }
	if err := json.Unmarshal([]byte(body), &begun); err != nil || status != 200 {
		t.Fatalf("authorize: %d %s", status, body)
	}
	command := strings.Fields(browser(t))
	out := gw.mustRun([]string{"E2E=" + here(t)}, command[0], command[1], begun.URL)
	if !strings.Contains(out, "signed in to guarded") || !strings.Contains(out, gw.url+"/oauth/callback") {
		t.Errorf("the browser ends with %s", out)
	}
	// The sign-in is effective immediately, and its address, which can be
	// used only once, is no longer shown.
	if status, body := gw.send("POST", "/api/mcp/guarded/proxy", whoami); status != 200 || !strings.Contains(body, "account ada") {
		t.Errorf("whoami: %d %s", status, body)
	}
	if _, body := gw.send("GET", "/api/servers/guarded", ""); strings.Contains(body, g.Issuer+"/auth?") {
		t.Errorf("the server's state has the address of the sign-in: %s", body)
	}
	if _, body := gw.send("GET", "/api/mcp/guarded/proxy/status", ""); !strings.Contains(body, `"hasToken":true`) || !strings.Contains(body, `"isAuthorized":true`) {
		t.Errorf("status after: %s", body)
	}
	if _, body := gw.send("GET", "/api/connections", ""); strings.Contains(body, `"lastAuthorized":null`) {
		t.Errorf("connections: %s", body)
	}
	// Upstreams receive their token and the caller's identity, but never the
	// caller's key. No one else receives the token.
	const key = "jct_CALLERSOWNKEY1234567890"
	gw.send("POST", "/api/mcp/guarded/proxy", whoami, "X-Api-Key", key) // not a key of this gateway
	gw.send("POST", "/api/mcp/guarded/proxy", whoami, "Authorization", "Basic "+key)
	if status, _ := gw.send("POST", "/api/mcp/guarded/proxy", whoami, "X-Forwarded-For", "6.6.6.6"); status != 403 {
		t.Errorf("a forwarded request on an open listener: %d", status)
	}
	saw := g.happened()
	if len(saw.Authorization) != 1 || strings.Contains(saw.Authorization[0], key) || fmt.Sprint(saw.Forwarded) != "[127.0.0.1]" {
		t.Errorf("the server saw %v from %v", saw.Authorization, saw.Forwarded)
	}
	token := strings.TrimPrefix(saw.Authorization[0], "Bearer ")
	for _, path := range []string{"/api/status", "/api/servers", "/api/config", "/api/connections", "/health", "/logs", "/api/logs?limit=1000", "/api/mcptrace?limit=1000", "/api/backends", "/api/mcp/guarded/proxy/status", "/metrics"} {
		if _, body := gw.send("GET", path, ""); strings.Contains(body, token) {
			t.Errorf("%s shows the token", path)
		}
	}
	if strings.Contains(gw.log.String(), token) || strings.Contains(gw.log.String(), key) {
		t.Error("the log shows a secret")
	}
}

// TestExpiredTokenIsRefreshedOnce makes fifty concurrent calls when the token
// has expired: it is refreshed once, and no call fails. Then the same for a
// token that is refused early.
func TestExpiredTokenIsRefreshedOnce(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, 4)
	gw := signedIn(t, g)
	burst := func(what string, begun func()) {
		t.Helper()
		before := g.happened()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				resp, err := http.Post(gw.url+"/api/mcp/guarded/proxy", "application/json", strings.NewReader(whoami))
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if data, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || !strings.Contains(string(data), "account ada") {
					t.Errorf("%s: %d %s", what, resp.StatusCode, data)
				}
			})
		}
		begun()
		wg.Wait()
		after := g.happened()
		if got := after.Refreshes - before.Refreshes; got != 1 || after.Replays != 0 {
			t.Errorf("%s: %d refreshes, %d replays", what, got, after.Replays)
		}
	}
	// The new token lasts longer than the calls on a busy machine.
	g.expire()
	g.set("life", "3600")
	burst("at the end", func() { g.set("hold", "false") })
	g.set("dead", "true")
	burst("refused", func() {})
}

// TestAuthorizationServerDownKeepsLogin: a failed refresh does not delete the
// login.
func TestAuthorizationServerDownKeepsLogin(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, 15)
	gw := signedIn(t, g)
	g.set("down", "true")
	eventually(t, "a refresh fails", func() bool { return g.happened().TurnedAway > 0 })
	if status, body := gw.send("POST", "/api/mcp/guarded/proxy", whoami); status != 200 && !g.happened().Ending {
		t.Errorf("with a token that still holds: %d %s", status, body)
	}
	eventually(t, "the token has expired", func() bool { return g.happened().Expired })
	if status, body := gw.send("POST", "/api/mcp/guarded/proxy", whoami); status != 502 || !strings.Contains(body, "UPSTREAM_ERROR") {
		t.Errorf("with an ended token: %d %s", status, body)
	}
	g.set("down", "false")
	eventually(t, "calls work again", func() bool {
		status, body := gw.send("POST", "/api/mcp/guarded/proxy", whoami)
		if strings.Contains(body, "UPSTREAM_AUTH_REQUIRED") {
			t.Fatalf("the login was lost: %s", body)
		}
		return status == 200
	})
	if saw := g.happened(); saw.Codes != 1 || saw.Replays != 0 {
		t.Errorf("saw %+v", saw)
	}
}

// TestStepUpAndClientCredentials requests more scopes, and uses client
// credentials without a user.
func TestStepUpAndClientCredentials(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, 3600)
	gw := signedIn(t, g)
	g.set("scope", `"mcp:write"`)
	var failed struct {
		Details struct{ URL string }
	}
	// The login is shared, so only an administrator gets the URL to replace it.
	status, body := gw.send("POST", "/api/mcp/guarded/proxy", whoami)
	if err := json.Unmarshal([]byte(body), &failed); err != nil || status != 401 || failed.Details.URL != "" || strings.Contains(body, "state=") {
		t.Fatalf("a call that needs more: %d %s", status, body)
	}
	status, body = gw.send("POST", "/api/mcp/guarded/proxy", whoami, "X-Api-Key", bossKey)
	if err := json.Unmarshal([]byte(body), &failed); err != nil || status != 401 {
		t.Fatalf("a call that needs more: %d %s", status, body)
	}
	u, err := url.Parse(failed.Details.URL)
	if err != nil || !strings.Contains(u.Query().Get("scope"), "mcp:read") || !strings.Contains(u.Query().Get("scope"), "mcp:write") {
		t.Fatalf("the address asks for %v", u.Query())
	}
	g.consent("ada", failed.Details.URL)
	if status, body := gw.send("POST", "/api/mcp/guarded/proxy", whoami); status != 200 { // immediately
		t.Errorf("a call after the sign-in: %d %s", status, body)
	}
	if strings.Contains(gw.log.String(), u.Query().Get("state")) {
		t.Error("the log shows the address with its state")
	}
	robot := newHome(t, g.config(`,"oauth":{"grant":"client_credentials","clientId":"robot","clientSecret":"robot-secret-of-the-test","scopes":["mcp:write"]}`)).serve().ready("guarded")
	if status, body := robot.send("POST", "/api/mcp/guarded/proxy", whoami); status != 200 || !strings.Contains(body, "account robot") {
		t.Errorf("the robot: %d %s", status, body)
	}
	if saw := g.happened(); saw.Own != 1 || saw.Replays != 0 {
		t.Errorf("saw %+v", saw)
	}
}
