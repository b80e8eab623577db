package app

import (
	"fmt"
	"net/http"
	"strings"

	"junctor/internal/httperr"
	"junctor/internal/tool"
)

// pageOnly serves the page on its paths, and responds to every other path with
// 404 or 405. A program that requests an unknown path must not get the page
// with status 200.
func (a *App) pageOnly(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.isPage(r) {
			a.web.ServeHTTP(w, r)
			return
		}
		var methods []string
		for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			other := r.Clone(r.Context())
			other.Method = m
			if _, pattern := mux.Handler(other); pattern != "/" || a.isPage(other) {
				methods = append(methods, m)
			}
		}
		if len(methods) == 0 {
			notFound(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(methods, ", "))
		httperr.WriteStatus(w, r, http.StatusMethodNotAllowed, &tool.Error{Kind: tool.InvalidRequest, Msg: fmt.Sprintf(
			"%s is not allowed here; use %s", tool.Shorten(r.Method, 64), strings.Join(methods, " or "))})
	})
}

func notFound(w http.ResponseWriter, r *http.Request) {
	httperr.Write(w, r, &tool.Error{Kind: tool.MethodNotFound, Msg: "there is no such path; GET /openapi.json lists the paths"})
}
