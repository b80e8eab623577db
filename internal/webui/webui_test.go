package webui

import (
	"compress/gzip"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func page() *Handler {
	return newHandler(fstest.MapFS{
		"index.html":     {Data: []byte("<!doctype html>" + strings.Repeat(" ", 2000))},
		"assets/a-1.js":  {Data: []byte("let x")},
		"assets/a-1.css": {Data: []byte("a{}")},
		".gitkeep":       {},
	})
}

func get(h *Handler, method, path, encoding string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("Accept-Encoding", encoding)
	h.ServeHTTP(w, r)
	return w
}

func TestFilesAndCacheHeaders(t *testing.T) {
	h := page()
	for path, want := range map[string]struct {
		status      int
		kind, cache string
	}{
		"/":                     {200, "text/html", "no-cache"},
		"/tools/github/create":  {404, "text/plain", ""},
		"/healthz":              {404, "text/plain", ""},
		"/assets":               {404, "text/plain", ""},
		"/index.html":           {200, "text/html", "no-cache"},
		"/assets/a-1.js":        {200, "text/javascript", "immutable"},
		"/assets/a-1.css":       {200, "text/css", "immutable"},
		"/assets/gone.js":       {404, "text/plain", ""},
		"/.gitkeep":             {404, "text/plain", ""},
		"/../../../etc/passwd":  {404, "text/plain", ""},
		"/assets/../index.html": {200, "text/html", "no-cache"},
	} {
		w := get(h, "GET", path, "")
		if h.Has(path) != (want.status == 200) {
			t.Errorf("Has(%q) = %v", path, h.Has(path))
		}
		if w.Code != want.status || !strings.HasPrefix(w.Header().Get("Content-Type"), want.kind) || !strings.Contains(w.Header().Get("Cache-Control"), want.cache) {
			t.Errorf("%s: %d %s %s", path, w.Code, w.Header().Get("Content-Type"), w.Header().Get("Cache-Control"))
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "http") {
			t.Errorf("%s: policy %q", path, csp)
		}
	}
}

func TestMethods(t *testing.T) {
	if w := get(page(), "POST", "/", ""); w.Code != 405 || w.Header().Get("Allow") == "" {
		t.Errorf("POST: %d", w.Code)
	}
	if w := get(page(), "HEAD", "/", ""); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d, %d bytes", w.Code, w.Body.Len())
	}
}

func TestCompression(t *testing.T) {
	h := page()
	for range 2 {
		w := get(h, "GET", "/", "gzip, br")
		if w.Header().Get("Content-Encoding") != "gzip" {
			t.Fatal("not compressed")
		}
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(z); err != nil || len(b) != 2015 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
}

func TestBinaryWithoutPageExplainsBuild(t *testing.T) {
	h := newHandler(fstest.MapFS{".gitkeep": {}})
	w := get(h, "GET", "/", "")
	if w.Code != 200 || !strings.Contains(w.Body.String(), "make build") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
