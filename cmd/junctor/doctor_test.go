package main

import (
	"bytes"
	"context"
	"junctor/internal/terminal"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSplitCommandLine(t *testing.T) {
	for in, want := range map[string][]string{
		"":                       nil,
		"node a.js":              {"node", "a.js"},
		"  a\t'b c'  \"d e\"f ":  {"a", "b c", "d ef"},
		`x '' "it's" 'say "hi"'`: {"x", "", "it's", `say "hi"`},
	} {
		if got := words(in); !slices.Equal(got, want) {
			t.Errorf("words(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseCalls(t *testing.T) {
	got, err := parseCalls([]string{"echo", ` add {"a": 1} `})
	if err != nil || len(got) != 2 || got[0].Tool != "echo" || string(got[0].Arguments) != "{}" || got[1].Tool != "add" || string(got[1].Arguments) != `{"a": 1}` {
		t.Errorf("parseCalls = %v, %v", got, err)
	}
	for _, bad := range []string{"", "echo [1]", "echo {", "echo 7"} {
		if _, err := parseCalls([]string{bad}); err == nil {
			t.Errorf("parseCalls(%q): no error", bad)
		}
	}
}

func TestReachableAddress(t *testing.T) {
	for in, want := range map[string]string{
		"0.0.0.0:8787": "127.0.0.1:8787", ":8787": "127.0.0.1:8787", "[::]:1": "127.0.0.1:1",
		"127.0.0.1:2": "127.0.0.1:2", "host:3": "host:3", "nonsense": "nonsense",
	} {
		if got := reachable(in); got != want {
			t.Errorf("reachable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestHealth(t *testing.T) {
	status := http.StatusOK
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/health/") {
			status = http.StatusNotFound
		}
		w.WriteHeader(status)
	}))
	defer ts.Close()
	dir := t.TempDir()
	ask := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		w := &world{
			Terminal: terminal.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs, Width: terminal.Width},
			lookup:   func(string) (string, bool) { return "", false },
			workDir:  dir,
			userDir:  dir,
			dataDir:  dir,
			home:     dir,
		}
		return run(args, w), out.String() + errs.String()
	}
	if code, said := ask("health", "--url", ts.URL+"/"); code != exitDone {
		t.Errorf("a gateway that is ready: %d, %s", code, said)
	}
	status = http.StatusServiceUnavailable
	if code, said := ask("health", "--live", "--url", ts.URL); code != exitFailed || !strings.Contains(said, "503") {
		t.Errorf("one that is not: %d, %s", code, said)
	}
	if code, _ := ask("health", "--url", "http://127.0.0.1:1"); code != exitFailed {
		t.Errorf("one that is not there: %d", code)
	}
	if code, _ := ask("health", "--url", "::"); code != exitUsage {
		t.Errorf("an address that is none: %d", code)
	}
}

func TestProbes(t *testing.T) {
	ctx := t.Context()
	if _, err := programVersion(ctx, "no-such-program"); err == nil {
		t.Error("the version of nothing")
	}
	if runtime.GOOS != "windows" {
		if v, err := programVersion(ctx, "sh", "-c", "echo 1.2; echo more"); err != nil || v != "1.2" {
			t.Errorf("%q, %v", v, err)
		}
		if _, err := programVersion(ctx, "sh", "-c", "echo asleep >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "asleep") {
			t.Errorf("%v", err)
		}
	}
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", "Sun, 15 Nov 2026 05:00:00 GMT")
	}))
	defer ts.Close()
	if at, err := webDate(ctx, ts.URL); err != nil || !at.Equal(time.Date(2026, 11, 15, 5, 0, 0, 0, time.UTC)) {
		t.Errorf("%v, %v", at, err)
	}
	if err := tryListen(ts.Listener.Addr().String()); err == nil {
		t.Error("a port that is taken is free")
	}
	if err := tryListen("127.0.0.1:0"); err != nil {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := webDate(gone, ts.URL); err == nil {
		t.Error("a date without a request")
	}
	if free, err := freeSpace(filepath.Join(t.TempDir(), "x")); err != nil || free == 0 {
		t.Errorf("%d, %v", free, err)
	}
}
