// Package webui serves the web page that is built from web/ and embedded in the
// binary.
//
// A strict Content-Security-Policy allows the page to connect only to this
// gateway. Files that never change are cached by browsers, others are not. A
// binary that was built without the page explains how to build it.
package webui

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed all:dist
var built embed.FS

// policy prevents the page from loading or sending anything elsewhere. Inline
// styles are allowed because the page's libraries set them on elements.
// [AppFrame] is the only document that can be framed, because all others forbid
// it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Handler serves the page at / and its files. Views are addressed by the
// fragment of the URL, so all other paths are unknown.
type Handler struct {
	files fs.FS
	mu    sync.Mutex
	small map[string][]byte // compressed, by path
}

// New returns the embedded page.
func New() *Handler {
	files, err := fs.Sub(built, "dist")
	if err != nil { // dist is a constant
		panic(err)
	}
	return newHandler(files)
}

func newHandler(files fs.FS) *Handler { return &Handler{files: files, small: map[string][]byte{}} }

// Has reports whether there is something to serve at a path.
func (h *Handler) Has(urlPath string) bool {
	name := strings.TrimPrefix(path.Clean("/"+urlPath), "/")
	if name == "" || name == "index.html" || "/"+name == AppFrame {
		return true
	}
	info, err := fs.Stat(h.files, name)
	return err == nil && !info.IsDir() && name != ".gitkeep"
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if "/"+name == AppFrame {
		serveAppFrame(w, r)
		return
	}
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")

	if name == "" {
		name = "index.html"
	}
	data, err := fs.ReadFile(h.files, name)
	switch {
	case err != nil && name == "index.html":
		data = []byte(notBuilt)
	case err != nil || name == ".gitkeep":
		http.NotFound(w, r)
		return
	}
	head.Set("Cache-Control", "no-cache")
	if strings.HasPrefix(name, "assets/") { // their names change with their content
		head.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if kind := mime.TypeByExtension(path.Ext(name)); kind != "" {
		head.Set("Content-Type", kind)
	}
	head.Add("Vary", "Accept-Encoding")
	if len(data) > 1024 && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		head.Set("Content-Encoding", "gzip")
		data = h.compressed(name, data)
	}
	if r.Method == http.MethodHead {
		return
	}
	_, _ = io.Copy(w, bytes.NewReader(data)) // an error means that the client has disconnected
}

// compressed returns the compressed file and caches it.
func (h *Handler) compressed(name string, data []byte) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if small, ok := h.small[name]; ok {
		return small
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(data)                                  // writing to a buffer cannot fail
	_ = z.Close()
	h.small[name] = b.Bytes()
	return b.Bytes()
}

const notBuilt = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Junctor</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:15vh auto;padding:0 1rem;color-scheme:light dark}code{background:#8882;padding:.1em .3em;border-radius:.2em}</style>
<h1>Junctor is running</h1>
<p>This binary was built without the web page. Everything else works. To get the page, run <code>make build</code> in the repository (it needs Node) and start <code>bin/junctor serve</code> again.</p>
<p>Meanwhile: <a href="/health">health</a>, <a href="/tools">tools</a>, <a href="/openapi.json">the API</a>, or <code>junctor tools list</code> on the command line.</p>
</html>
`
