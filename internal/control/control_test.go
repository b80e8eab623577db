package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

var (
	admin   = tool.Caller{ID: "a", Admin: true}
	limited = tool.Caller{ID: "l", Servers: []string{"fs"}}
)

func TestListTools(t *testing.T) {
	for name, tt := range map[string]struct {
		caller tool.Caller
		query  string
		status int
		want   string
	}{
		"all":             {tool.Local, "", 200, "fs:read fs:write git:commit git:odd"},
		"limited":         {limited, "", 200, "fs:read fs:write"},
		"one server":      {tool.Local, "?server=git", 200, "git:commit git:odd"},
		"hidden server":   {limited, "?server=git", 404, ""},
		"unknown server":  {tool.Local, "?server=nope", 404, ""},
		"tag":             {tool.Local, "?tag=files", 200, "fs:read"},
		"enabled":         {tool.Local, "?state=enabled&server=fs", 200, "fs:read"},
		"disabled":        {tool.Local, "?state=disabled", 200, "fs:write"},
		"changed":         {tool.Local, "?state=changed", 200, "git:odd"},
		"flagged":         {tool.Local, "?state=flagged", 200, "git:odd"},
		"no such state":   {tool.Local, "?state=maybe", 400, ""},
		"paged":           {tool.Local, "?limit=2&offset=1", 200, "fs:write git:commit"},
		"bad limit":       {tool.Local, "?limit=x", 400, ""},
		"search":          {tool.Local, "?query=commit", 200, "git:commit"},
		"hidden in find":  {limited, "?query=commit", 200, ""},
		"state in search": {tool.Local, "?query=write&state=enabled", 200, ""},
		"empty search":    {tool.Local, "?query=%20", 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := newCore(t).ask(tt.caller, "GET", "/api/tools"+tt.query, "", "")
			if code != tt.status {
				t.Fatalf("%d %s", code, body)
			}
			if code != 200 {
				return
			}
			var list ToolList
			if err := json.Unmarshal([]byte(body), &list); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, one := range list.Tools {
				if one.Relevance >= 0.2 || !strings.Contains(tt.query, "query") {
					got = append(got, one.Name)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("tools = %v, want %s", got, tt.want)
			}
		})
	}
	c := newCore(t)
	c.status = append(c.status, upstream.Status{Name: "new", State: upstream.Connecting}, upstream.Status{Name: "dead", State: upstream.Disconnected, Reason: "it left"})
	for query, down := range map[string]string{"": `"down":[{"name":"dead","reason":"it left"}]`, "?server=dead": `"reason":"it left"`, "?server=git": `"total":`} {
		if _, body := c.ask(tool.Local, "GET", "/api/tools"+query, "", ""); !strings.Contains(body, down) || query == "?server=git" && strings.Contains(body, "dead") {
			t.Errorf("%s does not have %s: %s", query, down, body)
		}
	}
	for query, want := range map[string]struct{ awaited, pending string }{
		"":                       {`[]`, `["new"]`},
		"?wait":                  {`["new"]`, `["new"]`},             // the tools of git are stored
		"?wait=fresh":            {`["fs,git,new,dead"]`, `["new"]`}, // all that the caller may see
		"?wait&server=git":       {`[]`, `null`},
		"?wait=fresh&server=git": {`["git"]`, `null`},
	} {
		c.awaited = nil
		_, body := c.ask(tool.Local, "GET", "/api/tools"+query, "", "")
		var list ToolList
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
		pending, _ := json.Marshal(list.Pending)
		if got := fmt.Sprintf("%q", c.awaited); got != want.awaited || string(pending) != want.pending {
			t.Errorf("%s awaited %s, pending %s; want %s, %s", query, got, pending, want.awaited, want.pending)
		}
	}
	if _, body := c.ask(tool.Local, "GET", "/api/tools?query=commit&explain", "", ""); !strings.Contains(body, `"explanation"`) {
		t.Errorf("no explanation: %s", body)
	}
}

func TestShowTool(t *testing.T) {
	c := newCore(t)
	for path, want := range map[string]int{
		"/api/tools/fs/read": 200, "/api/tools/-/read": 200, "/api/tools/-/fs:read": 200,
		"/api/tools/fs/reed": 404, "/api/tools/nope/read": 404, "/api/tools/-/reed?wait": 404, "/api/tools/fs/reed?wait": 404,
	} {
		code, body := c.ask(tool.Local, "GET", path, "", "")
		if code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
		if code == 200 && (!strings.Contains(body, "use with care") || !strings.Contains(body, `"definition":{"name":"read"`)) {
			t.Errorf("%s: %s", path, body)
		}
	}
	slices.Sort(c.awaited)
	if fmt.Sprintf("%q", c.awaited) != `["fs" "fs,git"]` {
		t.Errorf("awaited %q", c.awaited)
	}
	if code, _ := c.ask(limited, "GET", "/api/tools/git/commit", "", ""); code != 404 {
		t.Errorf("a hidden tool: %d", code)
	}
}

func TestCall(t *testing.T) {
	c := newCore(t)
	code, body := c.ask(tool.Local, "POST", "/api/call", "", `{"server":"fs","tool":"read","arguments":{"a":1},"timeoutMs":500}`)
	if code != 200 || !strings.Contains(body, `"type":"result"`) || c.last.Timeout != 500*time.Millisecond || c.last.Server != "fs" || string(c.last.Arguments) != `{"a":1}` || c.last.RequestID == "" {
		t.Errorf("%d %s %+v", code, body, c.last)
	}
	_, body = c.ask(tool.Local, "POST", "/api/call", "application/x-ndjson", `{"tool":"read"}`)
	if lines := strings.Split(strings.TrimSpace(body), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "notifications/progress") || !strings.Contains(lines[1], `"type":"result"`) {
		t.Errorf("stream = %s", body)
	}
	for name, tt := range map[string]struct {
		body   string
		status int
	}{
		"not JSON":    {`{`, 400},
		"not UTF-8":   {"{\"name\":\"\xff\"}", 400},
		"empty":       {``, 400},
		"unknown key": {`{"tool":"x","argments":{}}`, 400},
		"too large":   {`{"tool":"` + strings.Repeat("x", 3000) + `"}`, 413},
	} {
		if code, body := c.ask(tool.Local, "POST", "/api/call", "", tt.body); code != tt.status {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	c.call = func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, &tool.Error{Kind: tool.Timeout, Msg: "slow"}
	}
	for _, accept := range []string{"", "text/event-stream"} {
		if code, _ := c.ask(tool.Local, "POST", "/api/call", accept, `{"tool":"x"}`); code != 504 {
			t.Errorf("a failed call: %d", code)
		}
	}
	c.call = func(_ context.Context, call tool.Call) (tool.Result, error) {
		call.Exchange.Notify("notifications/progress", nil)
		return tool.Result{}, &tool.Error{Kind: tool.Timeout, Msg: "slow"}
	}
	if _, body := c.ask(tool.Local, "POST", "/api/call", "text/event-stream", `{"tool":"x"}`); !strings.Contains(body, `"type":"error"`) || !strings.Contains(body, "TIMEOUT") {
		t.Errorf("a call that failed in mid-stream: %s", body)
	}
}

func TestOnlyAdministratorsApproveCalls(t *testing.T) {
	c := newCore(t)
	for caller, want := range map[*tool.Caller]bool{&admin: true, &limited: false} {
		c.ask(*caller, "POST", "/api/call", "", `{"tool":"read","approved":true}`)
		if got := c.last.Exchange.Approve != nil; got != want {
			t.Errorf("%s: approved = %v", caller.ID, got)
			continue
		}
		if want {
			if yes, err := c.last.Exchange.Approve(t.Context(), tool.Name{}, nil); !yes || err != nil {
				t.Error("not approved")
			}
		}
	}
}

func TestServers(t *testing.T) {
	c := newCore(t)
	_, body := c.ask(limited, "GET", "/api/servers?wait", "", "")
	if !strings.Contains(body, `"name":"fs"`) || strings.Contains(body, `"git"`) || !strings.Contains(body, `"enabledTools":1`) || !strings.Contains(body, `"tools":2`) || len(c.awaited) != 1 {
		t.Errorf("servers = %s", body)
	}
	for path, want := range map[string]int{"/api/servers/fs": 200, "/api/servers/git": 404, "/api/servers/nope": 404} {
		if code, body := c.ask(limited, "GET", path, "", ""); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if _, body := c.ask(limited, "GET", "/api/status", "", ""); !strings.Contains(body, `"ok":true`) {
		t.Errorf("status = %s", body)
	}
}

func TestChangesRequireAdministrator(t *testing.T) {
	for _, q := range []struct{ method, path, body, edit string }{
		{"POST", "/api/servers", `{"servers":{}}`, "add"},
		{"PATCH", "/api/servers/fs", `{"enabled":false}`, "enable fsfalse"},
		{"PATCH", "/api/tools/fs/read", `{"enabled":true}`, "tool fs:read true false"},
		{"GET", "/api/servers/fs/config", "", ""},
		{"PUT", "/api/servers/fs", `{"server":{"command":"x"}}`, `set fs {"command":"x"}`},
		{"DELETE", "/api/servers/fs", "", "remove fs"},
		{"POST", "/api/servers/fs/restart", "", "restart fs"},
		{"GET", "/api/config", "", ""},
		{"GET", "/api/keys", "", ""},
		{"POST", "/api/keys", `{"name":"k","expiresInSeconds":60}`, ""},
		{"DELETE", "/api/keys/k", "", ""},
	} {
		c := newCore(t)
		c.keys = []store.Key{{Name: "k"}}
		if code, _ := c.ask(limited, q.method, q.path, "", q.body); code != 403 || len(c.edits) != 0 {
			t.Errorf("%s %s by anyone: %d", q.method, q.path, code)
		}
		if code, body := c.ask(admin, q.method, q.path, "", q.body); code != 200 {
			t.Errorf("%s %s by an administrator: %d %s", q.method, q.path, code, body)
		}
		if got := strings.Join(c.edits, ";"); got != q.edit {
			t.Errorf("%s %s did %q", q.method, q.path, got)
		}
	}
}

func TestFailedEditsAreReported(t *testing.T) {
	c := newCore(t)
	c.editErr = errors.New("junctor.json:3: no such key")
	for _, q := range [][3]string{
		{"POST", "/api/servers", `{"servers":{}}`},
		{"POST", "/api/servers", `{`},
		{"PATCH", "/api/servers/fs", `{"enabled":true}`},
		{"PATCH", "/api/servers/fs", `{`},
		{"PATCH", "/api/servers/fs", `{}`},
		{"PATCH", "/api/tools/fs/read", `{"approval":"ask"}`},
		{"PATCH", "/api/tools/fs/read", `{"approval":"sometimes"}`},
		{"PATCH", "/api/tools/fs/read", `{}`},
		{"GET", "/api/servers/fs/config", ``},
		{"PUT", "/api/servers/fs", `{"server":{"command":"x"}}`},
		{"PUT", "/api/servers/fs", `{"server":"x"}`},
		{"DELETE", "/api/servers/fs", ``},
	} {
		if code, body := c.ask(admin, q[0], q[1], "", q[2]); code != 400 {
			t.Errorf("%v: %d %s", q, code, body)
		}
	}
	c.editErr = &tool.Error{Kind: tool.ServerNotFound, Msg: "not in the file"}
	if code, _ := c.ask(admin, "DELETE", "/api/servers/fs", "", ""); code != 404 {
		t.Errorf("a kind of its own: %d", code)
	}
	if code, _ := c.ask(admin, "DELETE", "/api/servers/nope", "", ""); code != 404 {
		t.Errorf("unknown server: %d", code)
	}
}

func TestKeys(t *testing.T) {
	c := newCore(t)
	if _, body := c.ask(admin, "GET", "/api/keys", "", ""); strings.TrimSpace(body) != `{"keys":[]}` {
		t.Errorf("no keys = %s", body)
	}
	_, body := c.ask(admin, "POST", "/api/keys", "", `{"name":"ci","admin":true,"tools":["*:read"]}`)
	if !strings.Contains(body, `"key":"jct_`) || !c.keys[0].Admin || strings.Contains(body, `"hash"`) {
		t.Errorf("added = %s", body)
	}
	for name, tt := range map[string]struct {
		method, path, body string
		err                error
		status             int
	}{
		"bad name":       {"POST", "/api/keys", `{"name":"a b"}`, nil, 400},
		"bad body":       {"POST", "/api/keys", `[`, nil, 400},
		"taken":          {"POST", "/api/keys", `{"name":"x"}`, store.ErrConflict, 400},
		"store away":     {"POST", "/api/keys", `{"name":"x"}`, io.EOF, 500},
		"list, away":     {"GET", "/api/keys", ``, io.EOF, 500},
		"revoke unknown": {"DELETE", "/api/keys/never", ``, nil, 400},
	} {
		c := newCore(t)
		c.keyErr = tt.err
		if code, body := c.ask(admin, tt.method, tt.path, "", tt.body); code != tt.status {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
}

// TestKeyExpiry checks that the error names the wrong value, and that the
// longest accepted time does not overflow.
func TestKeyExpiry(t *testing.T) {
	for _, seconds := range []int64{-5, maxKeySeconds + 1, math.MaxInt64} {
		c := newCore(t)
		code, body := c.ask(admin, "POST", "/api/keys", "", fmt.Sprintf(`{"name":"ci","expiresInSeconds":%d}`, seconds))
		if code != 400 || !strings.Contains(body, fmt.Sprintf("expiresInSeconds must be from 0 to %d", maxKeySeconds)) || !strings.Contains(body, fmt.Sprintf("but is %d;", seconds)) || len(c.keys) > 0 {
			t.Errorf("%d seconds: %d %s", seconds, code, body)
		}
	}
	c := newCore(t)
	if code, body := c.ask(admin, "POST", "/api/keys", "", fmt.Sprintf(`{"name":"ci","expiresInSeconds":%d}`, maxKeySeconds)); code != 200 || !c.keys[0].Valid(time.Now().AddDate(99, 0, 0)) {
		t.Errorf("the longest time: %d %s", code, body)
	}
}
