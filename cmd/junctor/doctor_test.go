package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"junctor/internal/launch"
	"junctor/internal/terminal"
)

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

// TestServePrintsUsableAddress: a gateway that listens at all addresses prints one to
// which this machine can connect.
func TestServePrintsUsableAddress(t *testing.T) {
	var errs bytes.Buffer
	c := &cli{environment: &environment{Launcher: launch.Launcher{Terminal: terminal.Terminal{Err: &errs, Width: terminal.Width}, DataDir: t.TempDir()}}}
	if err := c.showPage("http", "[::]:8787", false); err != nil || !strings.HasSuffix(errs.String(), " is at http://127.0.0.1:8787\n") {
		t.Errorf("%v, %q", err, errs.String())
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
		w := &environment{
			Launcher: launch.Launcher{
				Terminal: terminal.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs, Width: terminal.Width},
				Lookup:   func(string) (string, bool) { return "", false },
				DataDir:  dir,
			},
			workDir: dir,
			userDir: dir,
			home:    dir,
		}
		return run(args, w), out.String() + errs.String()
	}
	if code, output := ask("health", "--url", ts.URL+"/"); code != exitDone {
		t.Errorf("a gateway that is ready: %d, %s", code, output)
	}
	status = http.StatusServiceUnavailable
	if code, output := ask("health", "--live", "--url", ts.URL); code != exitFailed || !strings.Contains(output, "503") {
		t.Errorf("one that is not: %d, %s", code, output)
	}
	secure := httptest.NewTLSServer(ts.Config.Handler)
	defer secure.Close()
	status = http.StatusOK
	if code, output := ask("health", "--url", strings.Replace(secure.URL, "https:", "http:", 1)); code != exitDone {
		t.Errorf("a gateway that requires TLS: %d, %s", code, output)
	}
	if code, _ := ask("health", "--url", "http://127.0.0.1:1"); code != exitFailed {
		t.Errorf("one that is not there: %d", code)
	}
	if code, _ := ask("health", "--url", "::"); code != exitUsage {
		t.Errorf("an address that is none: %d", code)
	}
}
