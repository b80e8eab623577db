package app

import (
	"net/http"

	"junctor/internal/auth"
	"junctor/internal/httperr"
	"junctor/internal/httpserver"
	"junctor/internal/tool"
)

// LocalClient returns a client for this gateway's HTTP APIs inside the
// process, as the local user. The command line uses it when no gateway is
// running.
func (a *App) LocalClient() *http.Client {
	return &http.Client{Transport: httpserver.InProcess{Handler: a.LocalHandler()}}
}

// LocalHandler serves the APIs to callers that are known to be the local user:
// over a socket that only this user can open, or inside the process.
func (a *App) LocalHandler() http.Handler {
	faces := http.NewServeMux()
	faces.Handle("/", a.mount(nil))
	faces.HandleFunc("GET "+PagePath, a.showPage)
	return a.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		faces.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), tool.Local)))
	}))
}

// PagePath is the endpoint that returns the URL of the page, including the
// local token. It is served only to the local user, over the socket.
const PagePath = "/api/page"

func (a *App) showPage(w http.ResponseWriter, r *http.Request) {
	listen := a.page.Load()
	if listen == nil {
		notFound(w, r)
		return
	}
	address, err := auth.PageURL(a.config.Load().TLS.Scheme(), *listen, a.opts.DataDir)
	if err != nil {
		httperr.Write(w, r, &tool.Error{Kind: tool.Unavailable, Msg: err.Error()})
		return
	}
	httperr.Reply(w, map[string]string{"url": address})
}
