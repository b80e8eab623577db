package httpserver

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestDateHeader(t *testing.T) {
	one := time.Date(2026, 7, 28, 12, 0, 1, 900, time.FixedZone("", 3600))
	for at, want := range map[time.Time]string{
		one: "Tue, 28 Jul 2026 11:00:01 GMT", one.Add(time.Second): "Tue, 28 Jul 2026 11:00:02 GMT", one.Add(time.Millisecond): "Tue, 28 Jul 2026 11:00:01 GMT",
	} {
		if got := dateAt(at); len(got) != 1 || got[0] != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
	for name, handle := range map[string]http.HandlerFunc{
		"header written": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) },
		"nothing":        func(http.ResponseWriter, *http.Request) {},
	} {
		s := httptest.NewServer(New(handle, slog.New(slog.DiscardHandler)).Handler)
		defer s.Close()
		begun := time.Now().Truncate(time.Second)
		res, err := http.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		at, err := http.ParseTime(res.Header.Get("Date"))
		if n := len(res.Header["Date"]); err != nil || n != 1 || at.Before(begun) || at.After(time.Now()) {
			t.Errorf("%s: %d dates: %v, %v", name, n, at, err)
		}
	}
}
