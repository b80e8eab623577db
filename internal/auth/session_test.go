package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/store"
)

const localToken = "LOCALTOKENLOCALTOKENLOCALT"

// values is an in-memory store of values.
type values struct {
	mu   sync.Mutex
	all  map[string]store.Value
	err  error
	read int
}

func (m *values) Value(_ context.Context, space, name string) (store.Value, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read++
	v, ok := m.all[space+"/"+name]
	if m.err != nil {
		return store.Value{}, m.err
	}
	if !ok || !v.Expires.IsZero() && !time.Now().Before(v.Expires) {
		return store.Value{}, store.ErrNotFound
	}
	return v, nil
}

func (m *values) Values(_ context.Context, space string) ([]store.Value, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []store.Value
	for _, key := range slices.Sorted(maps.Keys(m.all)) {
		if m.all[key].Space == space {
			out = append(out, m.all[key])
		}
	}
	return out, m.err
}

func (m *values) PutValue(_ context.Context, v store.Value, ifVersion int64) (store.Value, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return store.Value{}, m.err
	}
	key := v.Space + "/" + v.Name
	if old := m.all[key].Version; ifVersion != store.AnyVersion && ifVersion != old {
		return store.Value{}, store.ErrConflict
	}
	if m.all == nil {
		m.all = map[string]store.Value{}
	}
	v.Version = m.all[key].Version + 1
	m.all[key] = v
	return v, nil
}

func (m *values) DeleteValue(_ context.Context, space, name string, _ int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, space+"/"+name)
	return m.err
}

// page sends requests through a gate as the web page does.
type page struct {
	t       testing.TB
	gate    *Gate
	session string // sent as a header
	edit    func(*http.Request)
}

func (p *page) send(method, path, body string) *httptest.ResponseRecorder {
	p.t.Helper()
	mux := http.NewServeMux()
	p.gate.Routes(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		id := identityFrom(r.Context())
		fmt.Fprintf(w, "%s admin=%v %s", id.caller.ID, id.caller.Admin, id.credential)
	})
	r := httptest.NewRequest(method, "http://127.0.0.1:8787"+path, strings.NewReader(body))
	if p.session != "" {
		r.Header.Set(SessionHeader, p.session)
	}
	if p.edit != nil {
		p.edit(r)
	}
	w := httptest.NewRecorder()
	p.gate.Wrap(mux).ServeHTTP(w, r)
	return w
}

// signIn returns a page with a session.
func (p *page) signIn(body string) *page {
	p.t.Helper()
	w := p.send("POST", "/api/session", body)
	var out struct{ Session string }
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 || out.Session == "" {
		p.t.Fatalf("sign in: %d %s", w.Code, w.Body)
	}
	return &page{p.t, p.gate, out.Session, p.edit}
}

func (p *page) expect(method, path string, status int, want string) {
	p.t.Helper()
	if w := p.send(method, path, ""); w.Code != status || !strings.Contains(w.Body.String(), want) {
		p.t.Errorf("%s %s = %d %s, want %d %s", method, path, w.Code, w.Body, status, want)
	}
}

func TestLocalTokenGrantsAdministratorRights(t *testing.T) {
	vals := &values{}
	g := gate(&memory{}, func(o *Options) { o.Sessions = vals })
	anon := &page{t: t, gate: g}
	anon.expect("GET", "/api/session", 200, `"admin":false,"signedIn":true,"needsSignIn":false,"authenticated":false`)
	for _, body := range []string{`{"token":"wrong"}`, `{"token":"` + localToken + `x"}`} {
		if w := anon.send("POST", "/api/session", body); w.Code != 401 {
			t.Errorf("%s = %d", body, w.Code)
		}
	}
	for _, body := range []string{`{}`, `{`, `{"token":"` + localToken + `","key":"x"}`, `{"key":"` + strings.Repeat("x", 9000) + `"}`} {
		if w := anon.send("POST", "/api/session", body); w.Code != 400 {
			t.Errorf("%.30s = %d", body, w.Code)
		}
	}
	me := anon.signIn(`{"token":"` + localToken + `"}`)
	me.expect("GET", "/tools", 200, "local admin=true session:")
	me.expect("GET", "/api/session", 200, `"admin":true,"signedIn":true,"needsSignIn":false,"authenticated":true`)
	for _, v := range vals.all {
		if bytes.Contains(v.Data, []byte(me.session)) || bytes.Contains(v.Data, []byte(localToken)) || strings.Contains(v.Name, me.session) {
			t.Errorf("the store has the secret: %s %s", v.Name, v.Data)
		}
		forged := &page{t: t, gate: g, session: v.Name} // the stored name, not the secret
		forged.expect("GET", "/tools", 401, "")
	}
	// A gate with another token or another kind of listener rejects the
	// session.
	for name, edit := range map[string]func(*Options){
		"another token":  func(o *Options) { o.LocalToken = "ANOTHERTOKENANOTHERTOKEN" },
		"no token":       func(o *Options) { o.LocalToken = "" },
		"not loopback":   func(o *Options) { o.Listen = "10.0.0.1:80" },
		"no such record": func(o *Options) { o.Sessions = &values{} },
	} {
		t.Run(name, func(t *testing.T) {
			other := gate(&memory{}, func(o *Options) { o.Sessions = vals; edit(o) })
			(&page{t: t, gate: other, session: me.session}).expect("GET", "/tools", 401, "")
			if name == "no such record" {
				return
			}
			if w := (&page{t: t, gate: other}).send("POST", "/api/session", `{"token":"`+localToken+`"}`); w.Code != 401 {
				t.Errorf("the token signs in: %d", w.Code)
			}
		})
	}
	// If loopback requires a key, the token still identifies the local user.
	closed := gate(&memory{}, func(o *Options) { o.Config.Loopback = LoopbackKey })
	(&page{t: t, gate: closed}).signIn(`{"token":"`+localToken+`"}`).expect("GET", "/tools", 200, "admin=true")
}

func TestEndedSessionStaysInvalid(t *testing.T) {
	keys := &memory{}
	key := keys.add(t, "me", func(k *store.Key) { k.Admin = true })
	vals := &values{}
	g := gate(keys, func(o *Options) { o.Config.Loopback, o.Sessions = LoopbackKey, vals })
	anon := &page{t: t, gate: g}
	if w := anon.send("POST", "/api/session", `{"key":"wrong"}`); w.Code != 401 {
		t.Errorf("a wrong key: %d", w.Code)
	}
	me := anon.signIn(`{"key":"` + key + `"}`)
	me.expect("GET", "/tools", 200, "admin=true session:")
	me.expect("DELETE", "/api/session", 204, "")
	me.expect("GET", "/tools", 401, "the session has ended")
	me.expect("GET", "/api/session", 200, `"needsSignIn":true`)
	// Other sessions are unaffected.
	a, b := anon.signIn(`{"key":"`+key+`"}`), anon.signIn(`{"key":"`+key+`"}`)
	a.expect("DELETE", "/api/session", 204, "")
	a.expect("GET", "/tools", 401, "")
	b.expect("GET", "/tools", 200, "admin=true")

	// Revoking a key ends its sessions.
	for h, k := range keys.keys {
		k.Revoked = time.Now()
		keys.keys[h] = k
	}
	again := gate(keys, func(o *Options) { o.Config.Loopback, o.Sessions = LoopbackKey, vals }) // with empty caches
	(&page{t: t, gate: again, session: b.session}).expect("GET", "/tools", 401, "")
}

func TestSessionOfAFixedKey(t *testing.T) {
	vals := &values{}
	cfg := DefaultConfig()
	cfg.Loopback, cfg.Keys = LoopbackKey, []KeyConfig{{Name: "filed", Key: "a-key-in-the-file-x"}}
	g := gate(&memory{}, func(o *Options) { o.Config, o.Sessions, o.AdminKey = cfg, vals, "the-admin-key-of-the-environment" })
	anon := &page{t: t, gate: g}
	filed, admin := anon.signIn(`{"key":"a-key-in-the-file-x"}`), anon.signIn(`{"key":"the-admin-key-of-the-environment"}`)
	filed.expect("GET", "/tools", 200, "admin=false")
	admin.expect("GET", "/tools", 200, "admin=true")
	for _, v := range vals.all {
		if bytes.Contains(v.Data, hash("a-key-in-the-file-x")) || strings.Contains(string(v.Data), "a-key-in-the-file-x") {
			t.Errorf("the store has the key: %s", v.Data)
		}
	}
	cfg.Keys = nil
	g.SetConfig(cfg, nil)
	filed.expect("GET", "/tools", 401, "")
	admin.expect("GET", "/tools", 200, "admin=true")
}

func TestSessionsAreListedAndEnded(t *testing.T) {
	keys := &memory{}
	admin := keys.add(t, "boss", func(k *store.Key) { k.Admin = true })
	one, two := keys.add(t, "one", nil), keys.add(t, "two", nil)
	g := gate(keys, nil)
	anon := &page{t: t, gate: g, edit: set("User-Agent", "Test/1")}
	anon.expect("GET", "/api/page-sessions", 403, "") // every program on the machine is this caller
	boss, a, b := anon.signIn(`{"key":"`+admin+`"}`), anon.signIn(`{"key":"`+one+`"}`), anon.signIn(`{"key":"`+two+`"}`)
	list := func(p *page) (out []SessionInfo) {
		t.Helper()
		var body struct{ Sessions []SessionInfo }
		if w := p.send("GET", "/api/page-sessions", ""); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &body) != nil {
			t.Fatalf("list: %d %s", w.Code, w.Body)
		}
		return body.Sessions
	}
	if all := list(boss); len(all) != 3 || all[0].Caller != "boss" || !all[0].Current || all[1].Current || all[1].Agent != "Test/1" || all[1].Expires.IsZero() {
		t.Errorf("all sessions: %+v", all)
	}
	mine := list(a)
	if len(mine) != 1 || mine[0].Caller != "one" {
		t.Fatalf("one's sessions: %+v", mine)
	}
	b.expect("DELETE", "/api/page-sessions/"+mine[0].ID, 404, "")
	a.expect("GET", "/tools", 200, "")
	boss.expect("DELETE", "/api/page-sessions/"+mine[0].ID, 204, "")
	a.expect("GET", "/tools", 401, "")
	// The number of sessions of a key is bounded.
	for range maxSessions + 5 {
		b = anon.signIn(`{"key":"` + two + `"}`)
	}
	if all := list(b); len(all) != maxSessions {
		t.Errorf("%d sessions of one key", len(all))
	}
}

func TestSessionInACookie(t *testing.T) {
	keys := &memory{}
	key := keys.add(t, "me", nil)
	g := gate(keys, func(o *Options) {
		o.Config.Loopback, o.Config.TrustedProxies, o.Origins = LoopbackKey, []string{"192.0.2.0/24"}, []string{"https://app.example.com"}
	})
	// Requests of httptest come from 192.0.2.1.
	https := &page{t: t, gate: g, edit: set("X-Forwarded-Proto", "https", "X-Forwarded-Host", "junctor.example", "Origin", "https://junctor.example")}
	w := https.send("POST", "/api/session", `{"key":"`+key+`"}`)
	cookies := w.Result().Cookies()
	if w.Code != 200 || len(cookies) != 1 || strings.Contains(w.Body.String(), "session") {
		t.Fatalf("sign in: %d %s %v", w.Code, w.Body, cookies)
	}
	c := cookies[0]
	if c.Name != "__Host-junctor_session" || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("cookie = %+v", c)
	}
	with := func(pairs ...string) *page {
		return &page{t: t, gate: g, edit: func(r *http.Request) { r.AddCookie(c); set(pairs...)(r) }}
	}
	with("X-Forwarded-Proto", "https").expect("GET", "/tools", 200, "session:")
	with().expect("GET", "/tools", 401, "")                               // over http no cookie counts
	with("X-Forwarded-For", "192.0.2.9").expect("GET", "/tools", 401, "") // nor without a trusted proxy
	with("X-Forwarded-Proto", "https", "Origin", "https://app.example.com").expect("GET", "/tools", 401, "")
	if w := with("X-Forwarded-Proto", "https").send("DELETE", "/api/session", ""); w.Code != 204 || w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("sign out: %d %v", w.Code, w.Result().Cookies())
	}
	with("X-Forwarded-Proto", "https").expect("GET", "/tools", 401, "")
}

func TestTicketOpensOneSocket(t *testing.T) {
	g := gate(&memory{}, nil)
	anon := &page{t: t, gate: g}
	anon.expect("POST", "/api/session/ticket", 400, "sign in first")
	me := anon.signIn(`{"token":"` + localToken + `"}`)
	ticket := func() string {
		t.Helper()
		var out struct{ Ticket string }
		if w := me.send("POST", "/api/session/ticket", ""); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &out) != nil || out.Ticket == "" {
			t.Fatalf("ticket: %d %s", w.Code, w.Body)
		}
		return out.Ticket
	}
	upgrade := set("Upgrade", "websocket", "Connection", "Upgrade", "Origin", "http://127.0.0.1:8787")
	socket := &page{t: t, gate: g, edit: upgrade}
	first := ticket()
	(&page{t: t, gate: g}).expect("GET", "/ws?ticket="+first, 200, "local admin=false") // not a WebSocket: the ticket remains valid
	socket.expect("GET", "/ws?ticket="+first, 200, "local admin=true session:")
	socket.expect("GET", "/ws?ticket="+first, 401, "")
	socket.expect("GET", "/ws?ticket=unknown", 401, "")
	socket.expect("GET", "/ws", 200, "local admin=false")
	foreign := &page{t: t, gate: g, edit: set("Upgrade", "websocket", "Origin", "https://evil.example")}
	foreign.expect("GET", "/ws?ticket="+ticket(), 403, "")

	// Of many concurrent requests with one ticket only one is admitted.
	contested, admitted := ticket(), make(chan int, 20)
	var wg sync.WaitGroup
	for range cap(admitted) {
		wg.Go(func() { admitted <- socket.send("GET", "/ws?ticket="+contested, "").Code })
	}
	wg.Wait()
	close(admitted)
	n := 0
	for code := range admitted {
		if code == 200 {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d admitted with one ticket", n)
	}
	// A ticket of an ended session is rejected.
	late := ticket()
	me.expect("DELETE", "/api/session", 204, "")
	socket.expect("GET", "/ws?ticket="+late, 401, "")
}

func TestSessionsAndTicketsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vals := &values{}
		g := gate(&memory{}, func(o *Options) { o.Sessions = vals })
		anon := &page{t: t, gate: g}
		me := anon.signIn(`{"token":"` + localToken + `"}`)
		var out struct{ Ticket string }
		if err := json.Unmarshal(me.send("POST", "/api/session/ticket", "").Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ticketTTL)
		(&page{t: t, gate: g, edit: set("Upgrade", "websocket")}).expect("GET", "/ws?ticket="+out.Ticket, 401, "")
		me.expect("GET", "/tools", 200, "admin=true")
		// While the store is unavailable, a recently used session remains
		// valid.
		vals.mu.Lock()
		vals.err = context.DeadlineExceeded
		vals.mu.Unlock()
		time.Sleep(time.Minute)
		me.expect("GET", "/tools", 200, "admin=true")
		time.Sleep(maxKeyStaleness)
		me.expect("GET", "/tools", 503, "")
		vals.mu.Lock()
		vals.err, vals.read = nil, 0
		vals.mu.Unlock()
		for range 10 {
			me.expect("GET", "/tools", 200, "admin=true")
		}
		if vals.read != 1 {
			t.Errorf("%d look-ups for 10 requests", vals.read)
		}
		time.Sleep(sessionTTL)
		me.expect("GET", "/tools", 401, "")
	})
}
