package app

import (
	"net/http"
	"sync/atomic"

	"junctor/internal/httpserver"
	"junctor/internal/tool"
)

// LocalClient talks to this gateway's HTTP faces inside the process, as the
// local user: what the command line does when no gateway is running.
func (a *App) LocalClient() *http.Client {
	return &http.Client{Transport: httpserver.InProcess{Handler: a.LocalHandler()}}
}

// LocalHandler serves the faces to callers that are this machine's user beyond
// doubt: over a socket that no one else can open, or inside the process.
func (a *App) LocalHandler() http.Handler {
	ready := &atomic.Bool{}
	ready.Store(true)
	faces := a.mount(nil, ready)
	return httpserver.Wrap(a.log, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		faces.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), tool.Local)))
	}))
}
