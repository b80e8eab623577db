package toolsapi

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/codemode"
	"junctor/internal/httperr"
	"junctor/internal/listing"
	"junctor/internal/tool"
)

// sessionsOf records the sessions of scripts.
type sessionsOf struct{ seen []string }

func (s *sessionsOf) Run(_ context.Context, r codemode.Request) (codemode.Outcome, error) {
	s.seen = append(s.seen, r.Session)
	return codemode.Outcome{}, nil
}

// The length of session names is bounded, because they are stored in memory
// and in records.
func TestSessionsOfScriptsHaveShortNames(t *testing.T) {
	t.Parallel()
	scripts := &sessionsOf{}
	a := New(Options{Tools: listing.New(listing.Options{Catalog: catalog.New(nil, nil), Upstreams: noServers{}}), Scripts: scripts})
	for length, want := range map[int]int{maxSession: http.StatusOK, maxSession + 1: http.StatusRequestEntityTooLarge} {
		w := httptest.NewRecorder()
		httperr.Handler(a.runScript)(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/run", strings.NewReader(`{"code":"return 1","session":"`+strings.Repeat("s", length)+`"}`)))
		if w.Code != want {
			t.Errorf("a session of %d bytes: HTTP %d %s; want %d", length, w.Code, w.Body, want)
		}
	}
	if len(scripts.seen) != 1 {
		t.Errorf("%d scripts ran, want 1", len(scripts.seen))
	}
}

// stepScripts reports a call and returns after proceed receives a value.
type stepScripts struct {
	proceed chan struct{}
	err     error
}

func (s stepScripts) Run(ctx context.Context, r codemode.Request) (codemode.Outcome, error) {
	if r.Code == "invalid" {
		return codemode.Outcome{}, s.err
	}
	r.Progress(codemode.Call{Number: 1, Tool: "a:b"})
	select {
	case <-s.proceed:
	case <-ctx.Done():
	}
	return codemode.Outcome{Value: json.RawMessage(`42`), Calls: []codemode.Call{}}, s.err
}

// A client that accepts a stream receives the calls while the script is
// running.
func TestCallsOfScriptsAreStreamed(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{}, 1)
	run := func(code string, err error) (*http.Response, *bufio.Scanner) {
		a := New(Options{Tools: listing.New(listing.Options{Catalog: catalog.New(nil, nil), Upstreams: noServers{}}), Scripts: stepScripts{proceed, err}})
		server := httptest.NewServer(httperr.Handler(a.runScript))
		t.Cleanup(server.Close)
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(`{"code":"`+code+`"}`))
		r.Header.Set("Accept", "application/x-ndjson")
		resp, doErr := http.DefaultClient.Do(r)
		if doErr != nil {
			t.Fatal(doErr)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp, bufio.NewScanner(resp.Body)
	}
	for name, c := range map[string]struct {
		err  error
		last string
	}{
		"a value":   {nil, `"type":"result","result":{"id":"","value":42`},
		"a throw":   {&tool.Error{Kind: tool.ExecutionFailed, Msg: "thrown"}, `"error":{"code":"TOOL_EXECUTION_ERROR","message":"thrown"`},
		"a timeout": {&tool.Error{Kind: tool.Timeout, Msg: "too long"}, `{"type":"error","error":{`},
	} {
		_, lines := run("return 42", c.err)
		if !lines.Scan() || !strings.Contains(lines.Text(), `{"type":"call","call":{"number":1,"tool":"a:b"`) {
			t.Fatalf("%s: first %q, %v", name, lines.Text(), lines.Err())
		}
		proceed <- struct{}{}
		if !lines.Scan() || !strings.Contains(lines.Text(), c.last) {
			t.Errorf("%s: last %q, %v; want %s", name, lines.Text(), lines.Err(), c.last)
		}
	}
	resp, _ := run("invalid", &tool.Error{Kind: tool.InvalidRequest, Msg: "no script"})
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("an error before the first call: HTTP %d, want 400", resp.StatusCode)
	}
}
