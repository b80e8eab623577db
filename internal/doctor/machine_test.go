package doctor

import (
	"context"
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
		if got := SplitCommand(in); !slices.Equal(got, want) {
			t.Errorf("SplitCommand(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseCalls(t *testing.T) {
	got, err := ParseCalls([]string{"echo", ` add {"a": 1} `})
	if err != nil || len(got) != 2 || got[0].Tool != "echo" || string(got[0].Arguments) != "{}" || got[1].Tool != "add" || string(got[1].Arguments) != `{"a": 1}` {
		t.Errorf("ParseCalls = %v, %v", got, err)
	}
	for _, bad := range []string{"", "echo [1]", "echo {", "echo 7"} {
		if _, err := ParseCalls([]string{bad}); err == nil {
			t.Errorf("ParseCalls(%q): no error", bad)
		}
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
