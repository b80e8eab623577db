package toolsapi

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

type entry struct {
	Seq                    int64
	RequestID              string
	Server, Tool, Status   string
	Code, Error, Timestamp string
	Face, Caller           string
	Input, Result          json.RawMessage
}

func TestLogs(t *testing.T) {
	ts := standard(t)
	started := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	post(t, ts.URL+"/call_tool", `{"server":"web","tool":"list"}`, "X-Request-Id", "first")
	post(t, ts.URL+"/call_tool", `{"server":"files","tool":"fail"}`, "X-Request-Id", "second")
	post(t, ts.URL+"/execute", `{"provider":"gemini","call":[{"name":"web__refuse","args":{}}]}`, "X-Request-Id", "third")
	post(t, ts.URL+"/call_tool", `{"server":"web","tool":"fetch","arguments":{"url":"https://x"}}`, "X-Request-Id", "fourth", "X-Caller", "limited")
	for name, tt := range map[string]struct{ query, caller, want string }{
		"all":            {"", "", "first second third.1 fourth"},
		"server":         {"?server=web", "", "first third.1 fourth"},
		"tool":           {"?tool=list", "", "first"},
		"failed tool":    {"?status=error", "", "second"},
		"failed call":    {"?status=failed", "", "third.1"},
		"fine":           {"?status=success&limit=1", "", "fourth"},
		"since":          {"?since=" + started, "", "first second third.1 fourth"},
		"since tomorrow": {"?since=2999-01-01", "", ""},
		"after":          {"?after=2&limit=1", "", "third.1"},
		"own calls only": {"", "limited", "fourth"},
	} {
		t.Run(name, func(t *testing.T) {
			res := get(t, ts.URL+"/logs"+tt.query, "X-Caller", tt.caller)
			var entries []entry
			if err := json.Unmarshal(res.body, &entries); err != nil || res.status != 200 {
				t.Fatalf("%d %v: %s", res.status, err, res.body)
			}
			var ids []string
			for _, e := range entries {
				ids = append(ids, e.RequestID)
			}
			if got := strings.Join(ids, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	var last []entry
	if err := json.Unmarshal(get(t, ts.URL+"/logs?limit=1").body, &last); err != nil || len(last) != 1 {
		t.Fatal(err)
	}
	if e := last[0]; e.Server != "web" || e.Tool != "fetch" || e.Status != "ok" || e.Face != "tools" || e.Caller != "key:limited" || string(e.Input) != `{"url":"https://x"}` || len(e.Result) == 0 || e.Timestamp == "" {
		t.Errorf("entry = %+v", e)
	}
}

func TestLogsFollow(t *testing.T) {
	for name, tt := range map[string]struct{ query, accept, want string }{
		"from now on":    {"", "text/event-stream", "now"},
		"with the past":  {"?limit=1", "text/event-stream", "before now"},
		"after a record": {"?after=1&server=web", "text/event-stream", "before now"},
		"as JSON lines":  {"?since=2000-01-01", "application/x-ndjson", "first before now"},
	} {
		t.Run(name, func(t *testing.T) {
			ts := standard(t)
			call := func(id string) {
				post(t, ts.URL+"/call_tool", `{"server":"web","tool":"list"}`, "X-Request-Id", id)
			}
			call("first")
			call("before")
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "GET", ts.URL+"/logs"+tt.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", tt.accept)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, tt.accept) {
				t.Errorf("Content-Type = %q", got)
			}
			lines := bufio.NewScanner(res.Body)
			if data := nextData(t, lines); !strings.Contains(data, `"after"`) {
				t.Fatalf("first event %s", data)
			}
			call("now")
			for _, id := range strings.Fields(tt.want) {
				if data := nextData(t, lines); !strings.Contains(data, `"requestId":"`+id+`"`) {
					t.Fatalf("got %s, want %s", data, id)
				}
			}
		})
	}
}

func nextData(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	for lines.Scan() {
		text := lines.Text()
		if data, ok := strings.CutPrefix(text, "data: "); ok {
			return data
		}
		if strings.HasPrefix(text, "{") {
			return text
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return ""
}
