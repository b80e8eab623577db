package oauth

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Routes registers the routes for signing in to upstreams.
func (s *Service) Routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /api/mcp/{name}/authorize", httperr.JSON(s.authorizeRequest))
	mux.HandleFunc("DELETE /api/mcp/{name}/authorize", httperr.JSON(s.logoutRequest))
	mux.HandleFunc("GET /api/mcp/{name}/logins", httperr.JSON(s.listLogins))
	mux.HandleFunc("GET "+CallbackPath, s.callbackPage)
	mux.HandleFunc("POST "+CallbackPath, s.confirmed)
}

// visible returns the upstream of the path and the caller, or an error if the
// caller may not see it.
func visible(r *http.Request) (string, tool.Caller, error) {
	name, caller := r.PathValue("name"), tool.CallerFrom(r.Context())
	if !tool.ValidServer(name) || !caller.MaySee(name) {
		name = tool.Shorten(name, tool.MaxServerName)
		return "", caller, &tool.Error{
			Kind: tool.ServerNotFound, Msg: fmt.Sprintf("MCP server %q not found; GET /api/connections lists them", name),
			Details: map[string]any{"mcpName": name},
		}
	}
	return name, caller, nil
}

// authorizeRequest begins a login and returns the URL to open. Replacing a
// working shared login affects all callers, so it requires an administrator.
func (s *Service) authorizeRequest(r *http.Request) (any, error) {
	name, caller, err := visible(r)
	if err != nil {
		return nil, err
	}
	if cfg, found := s.opts.Servers(name); found {
		if err := s.mayBegin(r.Context(), cfg, s.state(cfg.LoginOf(caller.ID)), caller); err != nil {
			return nil, err
		}
	}
	address, err := s.Begin(r.Context(), name)
	if err != nil {
		return nil, err
	}
	s.audit(r.Context(), "login.begin", name, nil)
	return struct {
		URL        string `json:"url,omitempty"`
		Authorized bool   `json:"authorized"` // no user was needed
	}{address, address == ""}, nil
}

func (s *Service) logoutRequest(r *http.Request) (any, error) {
	name, caller, err := visible(r)
	if err != nil {
		return nil, err
	}
	whose := r.URL.Query().Get("caller")
	cfg, err := s.find(name)
	if err == nil && whose != "" {
		err = s.HasCallerLogins(name)
	}
	if err != nil {
		return nil, err
	}
	login := cfg.LoginOf(cmp.Or(whose, caller.ID))
	if !caller.Admin && login.Caller != caller.ID {
		return nil, &tool.Error{Kind: tool.Denied, Msg: "signing out takes an administrator"}
	}
	if _, err := s.Logout(r.Context(), login); err != nil {
		return nil, err
	}
	s.audit(r.Context(), "login.end", name, auditDetail(login))
	return nil, nil
}

// listLogins lists the callers that have their own login.
func (s *Service) listLogins(r *http.Request) (any, error) {
	name, caller, err := visible(r)
	if err != nil {
		return nil, err
	}
	if _, err := s.find(name); err != nil {
		return nil, err
	}
	if !caller.Admin {
		return nil, &tool.Error{Kind: tool.Denied, Msg: "listing the logins takes an administrator"}
	}
	list, err := s.CallerLogins(r.Context(), name)
	if err != nil {
		return nil, err
	}
	return map[string]any{"logins": list}, nil
}

// auditDetail returns the detail of an audit entry about the login of one caller.
func auditDetail(l upstream.Login) any {
	if l.Caller == "" {
		return nil
	}
	return map[string]any{"caller": l.Caller}
}

func (s *Service) audit(ctx context.Context, action, server string, detail any) {
	if s.opts.Audit != nil {
		s.opts.Audit(ctx, action, server, detail)
	}
}

// callbackPage handles the callback of an authorization server. A caller's own
// login must be confirmed first.
func (s *Service) callbackPage(w http.ResponseWriter, r *http.Request) {
	if c := s.confirmation(r.Context(), r.URL.Query()); c != nil {
		pageHeaders(w, "'self'")
		w.Header().Set("Referrer-Policy", "same-origin") // without it the form has no Origin
		_ = callbackTemplate.Execute(w, page{Title: "Sign in to " + c.Server + "?", Confirm: c})
		return
	}
	s.finish(w, r, r.URL.Query())
}

// confirmed handles the submitted confirmation form.
func (s *Service) confirmed(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 32<<10)
	if err := r.ParseForm(); err != nil {
		httperr.Write(w, r, &tool.Error{Kind: tool.InvalidRequest, Msg: "the form cannot be read", Err: err})
		return
	}
	if err := s.checkBrowser(r.Context(), r.PostForm); err != nil {
		pageHeaders(w, "'none'")
		e := tool.AsError(err)
		w.WriteHeader(httperr.Status(e.Kind))
		_ = callbackTemplate.Execute(w, page{Title: "Not signed in", Text: e.Msg, Failed: true})
		return
	}
	s.finish(w, r, r.PostForm)
}

func pageHeaders(w http.ResponseWriter, forms string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action "+forms)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

// finish completes a login and shows the outcome. The page loads no resources
// to which the code in its URL could leak.
func (s *Service) finish(w http.ResponseWriter, r *http.Request, q url.Values) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 30*time.Second) // closing the tab must not cancel the login
	defer cancel()
	server, err := s.Complete(ctx, q)
	pageHeaders(w, "'none'")
	p := page{Title: "Signed in", Text: "Junctor is signed in to " + server + ". You can close this window."}
	if err != nil {
		e := tool.AsError(err)
		s.log.WarnContext(ctx, "sign-in failed", "server", server, "err", err)
		p = page{Title: "Not signed in", Text: e.Msg, Failed: true}
		if server != "" {
			p.Title = "Not signed in to " + server
		}
		w.WriteHeader(httperr.Status(e.Kind))
	}
	_ = callbackTemplate.Execute(w, p) // a write error means that the browser has disconnected
}

type page struct {
	Title, Text string
	Failed      bool
	Confirm     *confirmPage // what to confirm; nil for an outcome
}

var callbackTemplate = template.Must(template.New("callback").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}} · Junctor</title>
<style>
:root { color-scheme: light dark; --bg: #f7f6f3; --surface: #fff; --line: #e0ddd5; --ink: #1d1c19; --muted: #5e5b53; --mark: #0b6b63; --bad: #ad1f16; }
@media (prefers-color-scheme: dark) { :root { --bg: #141614; --surface: #1b1e1c; --line: #2d322f; --ink: #e9ebe8; --muted: #a4aba6; --mark: #5cd0c1; --bad: #ff948a; } }
body { font: 15px/1.5 ui-sans-serif, system-ui, sans-serif; margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--bg); color: var(--ink); }
main { box-sizing: border-box; width: min(28rem, calc(100vw - 2rem)); padding: 2rem; background: var(--surface); border: 1px solid var(--line); border-top: 4px solid var(--mark); border-radius: 10px; overflow-wrap: anywhere; }
main[role=alert] { border-top-color: var(--bad); }
h1 { font-size: 1.25rem; margin: 0 0 .5rem; }
p { margin: 0; color: var(--muted); }
button { margin-top: 1.25rem; padding: .5rem 1.25rem; font: inherit; font-weight: 600; color: var(--surface); background: var(--mark); border: 0; border-radius: 6px; cursor: pointer; }
button:focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; }
</style>
<main{{if .Failed}} role="alert"{{end}}>
<h1>{{.Title}}</h1>
{{with .Confirm}}<p>Requests that <b>{{.Caller}}</b> sends to {{.Server}} through this gateway will use the account that you have just signed in with. Continue only if that is you and you began this sign-in.</p>
<form method="post">{{range $name, $value := .Fields}}
<input type="hidden" name="{{$name}}" value="{{$value}}">{{end}}
<button>Continue</button>
</form>{{else}}<p>{{.Text}}</p>{{end}}
</main>
</html>
`))
