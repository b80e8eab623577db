package app

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"junctor/internal/config"
	"junctor/internal/discovery"
	"junctor/internal/upstream/upstreamtest"
)

// TestProfilesAPI defines, shows, uses and removes a profile while the gateway
// runs.
func TestProfilesAPI(t *testing.T) {
	r := start(t, fmt.Sprintf(`{"mcpServers":{"a":{"url":%q},"b":{"url":%q}},"builtin":false,
		"auth":{"keys":[{"name":"guest","key":"key-of-the-guest-000002","servers":["a"]}]}}`,
		upstreamtest.Listen(t, upstreamtest.Script{}).URL, upstreamtest.Listen(t, upstreamtest.Script{}).URL), t.TempDir())
	r.connected("a")
	r.connected("b")
	if code, body := r.ask("GET", "/api/profiles", ""); code != 200 || strings.TrimSpace(body) != `{"profiles":[]}` {
		t.Errorf("no profiles: %d %s", code, body)
	}
	for name, body := range map[string]string{
		"x": `{"tools":["!a:*"]}`, "y": `{"approval":"auto"}`, "a b": `{}`, "z": `{"mode":"other"}`, "w": `{"nonsense":1}`,
	} {
		if code, answer := r.ask("PUT", "/api/profiles/"+strings.ReplaceAll(name, " ", "%20"), body); code != 400 {
			t.Errorf("%s %s: %d %s", name, body, code, answer)
		}
	}
	for name, body := range map[string]string{
		"one": `{"servers":["a"],"tools":["*:echo"],"description":"one tool","instructions":"Echo only.","mode":"direct"}`, "two": `{"servers":["b"]}`,
	} {
		if code, answer := r.ask("PUT", "/api/profiles/"+name, body); code != 200 {
			t.Fatalf("%s: %d %s", body, code, answer)
		}
	}
	eventually(t, "the profiles", func() bool { return slices.Equal(r.profiles.Names(), []string{"one", "two"}) })
	if code, body := r.ask("GET", "/api/profiles/one", ""); code != 200 || !strings.Contains(body, `"servers":["a"],"tools":["a:echo"],"toolCount":1`) || !strings.Contains(body, `"config"`) {
		t.Errorf("the profile: %d %s", code, body)
	}
	if code, body := r.ask("POST", "/api/profiles/preview", `{"servers":["b"],"tools":["*","!*:echo"]}`); code != 200 || !strings.Contains(body, `"servers":["b"]`) || strings.Contains(body, "b:echo") || strings.Contains(body, `"toolCount":0`) {
		t.Errorf("a preview: %d %s", code, body)
	}
	if code, body := r.ask("POST", "/api/profiles/preview", `{"tools":["!a:*"]}`); code != 400 {
		t.Errorf("a preview of nothing: %d %s", code, body)
	}
	guest := []string{"X-API-Key", "key-of-the-guest-000002"}
	if code, body := r.as("GET", "/api/profiles", "", guest...); code != 200 || !strings.Contains(body, `"one"`) || strings.Contains(body, "two") || strings.Contains(body, "config") {
		t.Errorf("the guest's profiles: %d %s", code, body)
	}
	if code, body := r.as("GET", "/api/profiles/two", "", guest...); code != 400 || !strings.Contains(body, "one of: one") {
		t.Errorf("another's profile: %d %s", code, body)
	}
	if code, body := r.as("PUT", "/api/profiles/one", `{}`, guest...); code != 403 {
		t.Errorf("the guest changes a profile: %d %s", code, body)
	}
	if code, body := r.ask("PUT", "/api/profiles/one?profile=one", `{}`); code != 403 {
		t.Errorf("an administrator with a profile: %d %s", code, body)
	}
	// The command line's view, and its error.
	if err := r.CheckView(t.Context(), discovery.View{Profile: "none"}); err == nil || !strings.Contains(err.Error(), "one, two") {
		t.Errorf("a view of an unknown profile: %v", err)
	}
	if err := r.CheckView(t.Context(), discovery.View{Profile: "one", Server: "b"}); err == nil {
		t.Error("a view of a server that the profile does not have")
	}
	code, body := r.as("POST", "/profiles/one/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		"Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	if code != 200 || !strings.Contains(body, "Echo only.") || !strings.Contains(body, "server__name") {
		t.Errorf("initialize: %d %s", code, body)
	}
	if code, body := r.ask("DELETE", "/api/profiles/two", ""); code != 200 {
		t.Errorf("remove: %d %s", code, body)
	}
	eventually(t, "the removal", func() bool { return slices.Equal(r.profiles.Names(), []string{"one"}) })
	if code, _ := r.ask("DELETE", "/api/profiles/two", ""); code != 400 {
		t.Errorf("remove again: %d", code)
	}
}

// TestKeysNameProfilesThatExist checks that the configuration and the API
// reject keys with unknown profiles.
func TestKeysNameProfilesThatExist(t *testing.T) {
	for _, text := range []string{
		`{"auth":{"keys":[{"name":"k","key":"sixteen-letters-at-least","profile":"none"}]}}`,
		`{"auth":{"keys":[{"name":"k","key":"sixteen-letters-at-least","profile":"p","admin":true}]},"profiles":{"p":{}}}`,
		`{"auth":{"jwt":{"issuer":"https://i.example","audience":"a","rules":[{"profiles":["none"]}]}}}`,
		`{"auth":{"oidc":{"issuer":"https://i.example","clientId":"a","rules":[{"profiles":["none"]}]}}}`,
		`{"profiles":{"p q":{}}}`, `{"profiles":{"p":{"mode":"other"}}}`,
	} {
		if _, _, err := config.Parse("f", []byte(text), config.Options{}); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	r := start(t, `{"profiles":{"p":{}}}`, t.TempDir())
	for body, want := range map[string]int{
		`{"name":"a","profile":"p"}`: 200, `{"name":"b","profile":"none"}`: 400, `{"name":"c","profile":"p","admin":true}`: 400, `{"name":"d","tools":["!x:*"]}`: 400,
	} {
		if code, answer := r.ask("POST", "/api/keys", body); code != want {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
}

// TestStatusToolShowsServersOfCaller checks that the built-in server, which
// all callers share, shows each caller only the servers that it may see.
func TestStatusToolShowsServersOfCaller(t *testing.T) {
	r := start(t, `{"builtin":true,"mcpServers":{"theirs":{"command":"true","enabled":false}},"profiles":{"own":{"servers":["junctor"]}},
		"auth":{"keys":[{"name":"guest","key":"key-of-the-guest-000002","servers":["junctor"]}]}}`, t.TempDir())
	r.connected("junctor")
	guest := []string{"X-API-Key", "key-of-the-guest-000002"}
	for name, tt := range map[string]struct {
		path, arguments string
		header          []string
		sees            bool
	}{
		"all":     {"/call_tool", `{}`, nil, true},
		"profile": {"/call_tool?profile=own", `{}`, nil, false},
		"key":     {"/call_tool", `{}`, guest, false},
	} {
		code, body := r.as("POST", tt.path, `{"server":"junctor","tool":"status","arguments":`+tt.arguments+`,"_meta":{"junctor/caller":"local"}}`, tt.header...)
		if strings.Contains(body, "theirs") != tt.sees || tt.sees && code != 200 {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
}

// Streams of the MCP API are limited by the number of sessions, not of
// streams, with a profile too.
func TestProfileStreamsAreThoseOfMCP(t *testing.T) {
	r := start(t, `{"limits":{"maxStreamsPerCaller":1},"profiles":{"p":{}}}`, t.TempDir())
	open := func(path string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", r.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res.StatusCode
	}
	for _, path := range []string{"/mcp", "/profiles/p/mcp", "/profiles/p/mcp", "/logs"} {
		if got := open(path); got != http.StatusOK {
			t.Errorf("GET %s: %d", path, got)
		}
	}
	if got := open("/logs?profile=p"); got != http.StatusTooManyRequests {
		t.Errorf("the second stream that is not of MCP: %d", got)
	}
}
