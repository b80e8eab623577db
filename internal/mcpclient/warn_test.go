package mcpclient

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNamesOfServersAreBounded(t *testing.T) {
	long := `"` + strings.Repeat("x", 1<<20) + `"`
	info := readInfo([]byte(`{}`), []byte(`{"name":`+long+`,"title":`+long+`,"version":`+long+`}`))
	if n := len(info.Name) + len(info.Title) + len(info.Version); n > 1000 {
		t.Errorf("%d bytes", n)
	}
}

func TestWarningsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := &Client{log: slog.New(slog.NewTextHandler(&out, nil))}
		long := strings.Repeat("x", 1<<20)
		for range 1000 {
			c.warn("message dropped", "method", long)
			c.warn("another")
		}
		if n := strings.Count(out.String(), "\n"); n != 2 || out.Len() > 1000 {
			t.Errorf("%d lines of %d bytes", n, out.Len())
		}
		time.Sleep(warnInterval)
		c.warn("message dropped", "method", "x")
		c.warn("message dropped", "method", "x")
		if n := strings.Count(out.String(), "\n"); n != 3 || !strings.Contains(out.String(), "method=x notLogged=999") {
			t.Errorf("%d lines, at the end %s", n, out.String()[max(0, out.Len()-200):])
		}
	})
}
