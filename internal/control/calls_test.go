package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/profile"
	"junctor/internal/sqlite"
	"junctor/internal/sqlite/sqlitetest"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// journal serves a real call log with a few records.
func journal(t *testing.T) (store.Store, func(tool.Caller) http.Handler) {
	t.Helper()
	cfg := store.DefaultConfig()
	cfg.Path = sqlitetest.Create(t, filepath.Join(t.TempDir(), "calls.db"))
	db, err := sqlite.Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for i, c := range []store.Call{
		{Server: "fs", Tool: "read", Caller: "local", Face: "control", Status: store.StatusOK},
		{Server: "git", Tool: "commit", Caller: "l", Face: "chat", Status: store.StatusFailed, Kind: "TIMEOUT", Error: "too slow"},
		{Server: "fs", Tool: "write", Caller: "a", Face: "chat", Status: store.StatusError},
	} {
		c.ID, c.Time, c.Duration = fmt.Sprintf("call-%d", i+1), time.Unix(1_700_000_000+int64(i), 0), time.Second
		c.Arguments, c.Result = json.RawMessage(`{"secret":"arguments"}`), json.RawMessage(`{"content":[]}`)
		c.Stages = store.Stages{{Name: "dispatch", Took: 900 * time.Millisecond}}
		if err := db.Append(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	mux := http.NewServeMux()
	New(Options{Log: db}).Routes(mux)
	return db, func(caller tool.Caller) http.Handler {
		return httperr.WithRequestID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mux.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), caller)))
		}))
	}
}

// TestCallStats checks counts and percentiles by server and tool. Only
// operators see those of other callers.
func TestCallStats(t *testing.T) {
	_, serve := journal(t)
	profiles := profile.New(map[string]profile.Config{"files": {Servers: []string{"fs"}}, "web": {Servers: []string{"web"}}}, profile.Options{})
	narrowed := func(name string) tool.Caller { return profiles.Bind(tool.Caller{ID: "a"}, name) }
	for name, tt := range map[string]struct {
		caller tool.Caller
		query  string
		status int
		want   string
	}{
		"all":            {admin, "", 200, `"total":{"calls":3,"errors":1,"failed":1,"p50Ms":1`},
		"by server":      {admin, "", 200, `"servers":[{"server":"fs","calls":2,"errors":1,"failed":0,`},
		"by tool":        {admin, "", 200, `"tools":[{"server":"fs","tool":"read","calls":1,`},
		"one tool":       {admin, "?server=fs&tool=write", 200, `"total":{"calls":1,"errors":1,`},
		"range":          {admin, "?from=2023-11-14T22:13:21Z&to=2023-11-14T22:13:22Z", 200, `"total":{"calls":1,"errors":0,"failed":1,`},
		"only one's own": {limited, "?caller=a", 200, `"total":{"calls":1,"errors":0,"failed":1,`},
		"a profile has":  {narrowed("files"), "", 200, `"total":{"calls":1,`},
		"it has not":     {narrowed("web"), "?from=2023-11-14T22:13:20Z&to=2023-11-14T22:13:24Z&intervals=1", 200, `"total":{"calls":0,"errors":0,"failed":0,"p50Ms":0,"p95Ms":0,"p99Ms":0},"servers":[],"tools":[],"callers":[],"faces":[],"intervals":[{"from":"2023-11-14T22:13:20Z","calls":0,`},
		"none":           {admin, "?server=none", 200, `"tools":[]`},
		"by text":        {admin, "?text=too+slow", 200, `"total":{"calls":1,"errors":0,"failed":1,`},
		"by caller":      {admin, "", 200, `"callers":[{"caller":"a","calls":1,`},
		"any failure":    {admin, "?status=notok", 200, `"total":{"calls":2,"errors":1,"failed":1,`},
		"intervals":      {admin, "?from=2023-11-14T22:13:20Z&to=2023-11-14T22:13:24Z&intervals=2", 200, `"intervals":[{"from":"2023-11-14T22:13:20Z","calls":2,"errors":0,"failed":1,`},
		"until now":      {admin, "?from=2023-11-14T22:13:20Z&intervals=1", 200, `"intervals":[{"from":"2023-11-14T22:13:20Z","calls":3,`},
		"no range":       {admin, "?intervals=2", 400, "intervals requires a time range"},
		"no time":        {admin, "?from=2023-11-14T22:13:20Z&to=2023-11-14T22:13:20Z&intervals=2", 400, "intervals requires a time range"},
		"too many":       {admin, "?from=2023-11-14T22:13:20Z&intervals=1001", 400, "from 1 to 1000"},
		"no such status": {admin, "?status=fine", 400, "none of ok"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			serve(tt.caller).ServeHTTP(w, httptest.NewRequest("GET", "/api/stats"+tt.query, nil))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("%d %s, want %d and %s", w.Code, w.Body, tt.status, tt.want)
			}
		})
	}
}

// TestExportCalls checks that all matching records are exported completely,
// over several pages.
func TestExportCalls(t *testing.T) {
	db, serve := journal(t)
	for i := range 2 * exportPage {
		if err := db.Append(t.Context(), store.Call{ID: fmt.Sprintf("more-%d", i), Server: "many", Caller: "a", Time: time.Unix(1_700_001_000, 0), Status: store.StatusOK}); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		caller      tool.Caller
		query       string
		lines       int
		first, last string
	}{
		"all":            {admin, "", 2*exportPage + 3, `"secret":"arguments"`, fmt.Sprintf("more-%d", 2*exportPage-1)},
		"filtered":       {admin, "?server=fs&status=notok", 1, "call-3", "call-3"},
		"only one's own": {limited, "", 1, "call-2", "call-2"},
		"none":           {admin, "?server=none", 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			serve(tt.caller).ServeHTTP(w, httptest.NewRequest("GET", "/api/export"+tt.query, nil))
			lines := strings.Split(strings.TrimSuffix(w.Body.String(), "\n"), "\n")
			if w.Body.Len() == 0 {
				lines = nil
			}
			if w.Code != 200 || len(lines) != tt.lines {
				t.Fatalf("%d with %d lines, want %d", w.Code, len(lines), tt.lines)
			}
			if tt.lines > 0 && (!strings.Contains(lines[0], tt.first) || !strings.Contains(lines[len(lines)-1], tt.last)) {
				t.Errorf("from %s to %s", lines[0], lines[len(lines)-1])
			}
		})
	}
	w := httptest.NewRecorder()
	serve(admin).ServeHTTP(w, httptest.NewRequest("GET", "/api/export?status=fine", nil))
	if w.Code != 400 {
		t.Errorf("no such status: %d", w.Code)
	}
}

func TestListCalls(t *testing.T) {
	_, serve := journal(t)
	for name, tt := range map[string]struct {
		caller tool.Caller
		query  string
		status int
		want   string
	}{
		"all":              {tool.Local, "", 200, "call-1 call-2 call-3"},
		"administrator":    {admin, "", 200, "call-1 call-2 call-3"},
		"only one's own":   {limited, "", 200, "call-2"},
		"not by asking":    {limited, "?caller=a", 200, "call-2"},
		"newest":           {admin, "?limit=1", 200, "call-3"},
		"older":            {admin, "?before=3&limit=1", 200, "call-2"},
		"since a number":   {admin, "?after=1", 200, "call-2 call-3"},
		"server":           {admin, "?server=fs", 200, "call-1 call-3"},
		"tool":             {admin, "?tool=read", 200, "call-1"},
		"face":             {admin, "?face=chat", 200, "call-2 call-3"},
		"status":           {admin, "?status=failed", 200, "call-2"},
		"since a time":     {admin, "?since=2023-11-14T22:13:22Z", 200, "call-3"},
		"session":          {admin, "?session=none", 200, ""},
		"api":              {admin, "?api=chat", 200, "call-2 call-3"},
		"range":            {admin, "?from=2023-11-14T22:13:21Z&to=2023-11-14T22:13:22Z", 200, "call-2"},
		"text":             {admin, "?text=TOO+slow", 200, "call-2"},
		"text of others":   {limited, "?text=arguments", 200, "call-2"},
		"parent":           {admin, "?parent=call-1", 200, ""},
		"no such time":     {admin, "?to=noon", 400, "not a time"},
		"no such status":   {admin, "?status=fine", 400, "none of ok"},
		"bad limit":        {admin, "?limit=0", 400, "limit"},
		"bad number":       {admin, "?after=x", 400, "after"},
		"negative number":  {admin, "?before=-1", 400, "before"},
		"bad time":         {admin, "?since=yesterday", 400, "since"},
		"follow bad query": {admin, "?after=x&follow", 400, "after"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			serve(tt.caller).ServeHTTP(w, httptest.NewRequest("GET", "/api/calls"+tt.query, nil))
			if w.Code != tt.status {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if w.Code != 200 {
				if !strings.Contains(w.Body.String(), tt.want) {
					t.Errorf("says %s", w.Body)
				}
				return
			}
			var list struct {
				Calls []store.Call
				Last  int64
			}
			if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range list.Calls {
				got = append(got, c.ID)
				if c.Arguments != nil || c.Result != nil || c.Stages != nil {
					t.Errorf("%s comes in full: %s", c.ID, w.Body)
				}
			}
			if strings.Join(got, " ") != tt.want || list.Last != 3 {
				t.Errorf("calls = %v, last %d; want %s", got, list.Last, tt.want)
			}
		})
	}
}

func TestShowCall(t *testing.T) {
	_, serve := journal(t)
	for name, tt := range map[string]struct {
		caller tool.Caller
		id     string
		status int
		says   string
	}{
		"in full":        {admin, "call-1", 200, `"secret":"arguments"`},
		"with its way":   {tool.Local, "call-3", 200, `"stages":[{"name":"dispatch","tookMs":900}]`},
		"one's own":      {limited, "call-2", 200, "too slow"},
		"that of others": {limited, "call-1", 404, "no record"},
		"unknown":        {admin, "call-9", 404, "no record"},
	} {
		w := httptest.NewRecorder()
		serve(tt.caller).ServeHTTP(w, httptest.NewRequest("GET", "/api/calls/"+tt.id, nil))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestFollowCalls(t *testing.T) {
	db, serve := journal(t)
	for name, tt := range map[string]struct {
		caller tool.Caller
		query  string
		before []string // received before anything happens
	}{
		"from now on":     {admin, "", nil},
		"from a number":   {admin, "?after=1", []string{"call-2", "call-3"}},
		"from the start":  {admin, "?after=0&server=fs", []string{"call-1", "call-3"}},
		"one's own alone": {limited, "?after=0", []string{"call-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			ts := httptest.NewServer(serve(tt.caller))
			defer ts.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "GET", ts.URL+"/api/calls"+tt.query, nil)
			req.Header.Set("Accept", "text/event-stream")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			lines := bufio.NewScanner(res.Body)
			next := func() (event, data string) {
				for lines.Scan() {
					switch line := lines.Text(); {
					case strings.HasPrefix(line, "event: "):
						event = line[7:]
					case strings.HasPrefix(line, "data: "):
						data = line[6:]
					case line == "" && event != "":
						return event, data
					}
				}
				t.Fatal("the stream ended")
				return "", ""
			}
			if event, _ := next(); event != "open" {
				t.Fatalf("begins with %s", event)
			}
			id := "live-" + strings.ReplaceAll(name, " ", "-")
			if err := db.Append(t.Context(), store.Call{ID: id, Time: time.Now(), Caller: tt.caller.ID, Server: "fs", Status: store.StatusOK, Arguments: json.RawMessage(`{"x":1}`)}); err != nil {
				t.Fatal(err)
			}
			for _, want := range append(tt.before, id) {
				var c store.Call
				for { // skip records of the other cases
					event, data := next()
					if err := json.Unmarshal([]byte(data), &c); event != "call" || err != nil {
						t.Fatalf("%s %s: %v", event, data, err)
					}
					if !strings.HasPrefix(c.ID, "live-") || c.ID == id {
						break
					}
				}
				if c.ID != want || c.Arguments != nil {
					t.Errorf("got %s with %s, want %s", c.ID, c.Arguments, want)
				}
			}
		})
	}
}

// brokenLog is a log whose database is unavailable.
type brokenLog struct {
	store.Log
	last error
}

func (b brokenLog) LastSeq(context.Context) (int64, error) { return 0, b.last }
func (b brokenLog) Calls(context.Context, store.CallQuery) ([]store.Call, error) {
	return nil, errors.New("away")
}
func (b brokenLog) Call(context.Context, string) (store.Call, error) {
	return store.Call{}, errors.New("away")
}
func (b brokenLog) Watch(context.Context, string) <-chan struct{} { return nil }

func TestCallLogUnavailable(t *testing.T) {
	for name, tt := range map[string]struct {
		log    brokenLog
		path   string
		accept string
		status int
		says   string
	}{
		"list":            {brokenLog{}, "/api/calls", "", 500, "internal"},
		"list, at once":   {brokenLog{last: errors.New("away")}, "/api/calls", "", 500, "internal"},
		"one":             {brokenLog{}, "/api/calls/x", "", 500, "internal"},
		"follow, at once": {brokenLog{last: errors.New("away")}, "/api/calls", "text/event-stream", 500, "internal"},
		"follow":          {brokenLog{last: errors.New("away")}, "/api/calls?after=0", "text/event-stream", 200, "event: error"},
	} {
		mux := http.NewServeMux()
		New(Options{Log: tt.log}).Routes(mux)
		r := httptest.NewRequest("GET", tt.path, nil)
		r.Header.Set("Accept", tt.accept)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), admin)))
		if w.Code != tt.status || !strings.Contains(strings.ToLower(w.Body.String()), tt.says) || strings.Contains(w.Body.String(), "away") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

type shelf struct {
	found []Candidate
	err   error
	asked []string
}

func (s *shelf) Found(context.Context) ([]Candidate, []string, error) {
	return s.found, []string{"one file cannot be read"}, s.err
}

func (s *shelf) Import(_ context.Context, names []string) ([]string, error) {
	s.asked = names
	return names, s.err
}

func TestImport(t *testing.T) {
	for name, tt := range map[string]struct {
		caller       tool.Caller
		method, body string
		shelf        *shelf
		status       int
		says         string
	}{
		"list":               {admin, "GET", "", &shelf{found: []Candidate{{Name: "a b", As: "a-b", State: "new"}}}, 200, `"as":"a-b"`},
		"nothing":            {admin, "GET", "", &shelf{}, 200, `"candidates":[]`},
		"list, broken":       {admin, "GET", "", &shelf{err: errors.New("junctor.json:3: broken")}, 400, "junctor.json:3"},
		"take":               {admin, "POST", `{"names":["a-b"]}`, &shelf{}, 200, `"added":["a-b"]`},
		"take, broken":       {admin, "POST", `{"names":["a-b"]}`, &shelf{err: errors.New("no room")}, 400, "no room"},
		"take, no body":      {admin, "POST", ``, &shelf{}, 400, "empty"},
		"list, not admin":    {limited, "GET", "", &shelf{}, 403, "administrators"},
		"take, not an admin": {limited, "POST", `{"names":[]}`, &shelf{}, 403, "administrators"},
	} {
		mux := http.NewServeMux()
		New(Options{Importer: tt.shelf}).Routes(mux)
		r := httptest.NewRequest(tt.method, "/api/import", strings.NewReader(tt.body))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), tt.caller)))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if w.Code == 403 && tt.shelf.asked != nil {
			t.Errorf("%s: it was done all the same", name)
		}
	}
}
