package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"junctor/internal/auth"
)

// signIn exchanges the token of a data folder for a session, as the page does.
func signIn(t *testing.T, base, dataDir string) string {
	t.Helper()
	token, err := auth.LocalToken(dataDir)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(base+"/api/session", "application/json", strings.NewReader(`{"token":"`+token.Reveal()+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var out struct{ Session string }
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out.Session == "" {
		t.Fatalf("sign in: %s %v", res.Status, err)
	}
	return out.Session
}

// as sends a request with the given headers, as pairs of name and value.
func (r *fixture) as(method, path, body string, header ...string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestAdministratorRightsRequireToken sends everything that a program, or a
// proxy that adds no headers, can send to an open listener.
func TestAdministratorRightsRequireToken(t *testing.T) {
	data := t.TempDir()
	r := start(t, `{}`, data)
	const server = `{"mcpServers":{"evil":{"command":"true"}}}`
	for name, header := range map[string][]string{
		"nothing":     nil,
		"origin":      {"Origin", r.url},
		"fetch site":  {"Sec-Fetch-Site", "same-origin"},
		"both":        {"Origin", r.url, "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Referer", r.url + "/"},
		"old cookie":  {"Cookie", "junctor_session=x", "Origin", r.url},
		"http cookie": {"Cookie", auth.CookieName + "=x", "Origin", r.url},
	} {
		for _, attempt := range [][3]string{
			{"POST", "/api/servers", server}, {"POST", "/api/keys", `{"name":"x","admin":true}`}, {"GET", "/api/config", ""}, {"GET", "/api/keys", ""},
		} {
			if code, body := r.as(attempt[0], attempt[1], attempt[2], header...); code != 403 {
				t.Errorf("%s: %s %s = %d %s", name, attempt[0], attempt[1], code, body)
			}
		}
	}
	if code, body := r.as("GET", "/tools", ""); code != 200 {
		t.Errorf("a program may not list tools: %d %s", code, body)
	}
	if code, body := r.as("GET", "/tools", "", "X-Forwarded-For", "203.0.113.9"); code != 403 || !strings.Contains(body, "auth.loopback") {
		t.Errorf("a forwarded request: %d %s", code, body)
	}
	session := signIn(t, r.url, data)
	if code, body := r.as("GET", "/api/config", "", auth.SessionHeader, session); code != 200 {
		t.Errorf("with the token: %d %s", code, body)
	}
	token, _ := auth.LocalToken(data)
	if strings.Contains(r.log.String(), token.Reveal()) || strings.Contains(r.log.String(), session) {
		t.Error("the log has the token or the session")
	}
	if code, _ := r.as("GET", PagePath, "", auth.SessionHeader, session); code != 404 {
		t.Errorf("the token is shown over TCP: %d", code)
	}
	var page struct{ URL string }
	res, err := r.LocalClient().Get("http://junctor" + PagePath)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&page); err != nil || page.URL != r.url+"/?token="+token.Reveal() {
		t.Errorf("the page's address is not what the socket says: %v", err)
	}

	// The page's WebSockets are admitted with tickets, because they cannot
	// have headers.
	_, body := r.as("POST", "/api/session/ticket", "", auth.SessionHeader, session)
	var out struct{ Ticket string }
	if err := json.Unmarshal([]byte(body), &out); err != nil || out.Ticket == "" {
		t.Fatalf("ticket: %s", body)
	}
	for i, want := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		c, _, err := websocket.Dial(ctx, strings.Replace(r.url, "http", "ws", 1)+"/ws/mcptrace?ticket="+url.QueryEscape(out.Ticket), nil)
		if (err == nil) != want {
			t.Errorf("connection %d with the ticket: %v", i+1, err)
		}
		if err == nil {
			_ = c.CloseNow()
		}
		cancel()
	}
	if code, _ := r.as("DELETE", "/api/session", "", auth.SessionHeader, session); code != 204 {
		t.Errorf("sign out: %d", code)
	}
	if code, _ := r.as("GET", "/api/config", "", auth.SessionHeader, session); code != 401 {
		t.Errorf("after signing out: %d", code)
	}
}
