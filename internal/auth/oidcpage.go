package auth

import (
	"html/template"
	"net/http"

	"junctor/internal/httperr"
	"junctor/internal/tool"
)

var oidcFailedPage = template.Must(template.New("failed").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sign-in failed · Junctor</title></head>
<body><h1>Sign-in failed</h1><p>{{.Message}}</p><p><a href="{{.Back}}">{{if eq .Back "/"}}Back to Junctor{{else}}Back{{end}}</a></p><p><small>Request {{.ID}}</small></p></body></html>
`))

// oidcFailed renders a page with the reason why the sign-in failed.
func (g *Gate) oidcFailed(w http.ResponseWriter, r *http.Request, f oidcFlow, err error) {
	body, status := httperr.New(r.Context(), err)
	httperr.Rejected(r, status, tool.AsError(err))
	http.SetCookie(w, flowCookie(r, "", -1))
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = oidcFailedPage.Execute(w, map[string]string{"Message": body.Message, "ID": body.RequestID, "Back": authorizationAddress(f.Authorization)}) // the browser may have disconnected
}
