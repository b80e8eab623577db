package authserver

import (
	"crypto/rand"
	"html/template"
	"net/http"
	"net/url"
)

// page is the data of pageTemplate.
type page struct {
	Title, Text string
	Failed      bool
	Next        string       // the address to continue with automatically
	Back        template.URL // the client's redirect URI, checked, with an error

	// The consent form.
	Client   string
	Host     string // of the client's id; empty if only the client itself claims its name
	Redirect string // where the client receives the response
	Resource string // the resource that the client requests; empty for an MCP endpoint
	Person   string // who is signed in; empty to ask for a key
	SignIn   string // the address to sign in at instead of with a key; may be empty
	Provider string // the provider's name
	Profiles []string
	Fields   []field
	Problem  string // why the last attempt failed

	Nonce string
}

type field struct{ Name, Value string }

// protect sets the security headers of pages: nothing is loaded, nothing
// frames them, and forms can only be submitted to the gateway and redirect to
// the client.
func protect(h http.Header, nonce, formTarget string) {
	policy := "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
	if formTarget != "" {
		policy += " " + formTarget
	}
	if nonce != "" {
		policy += "; style-src 'nonce-" + nonce + "'"
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // under no-referrer browsers send forms without a usable Origin
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

func (s *Server) render(w http.ResponseWriter, r *http.Request, status int, formTarget string, p page) {
	p.Nonce = rand.Text()
	protect(w.Header(), p.Nonce, formTarget)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := pageTemplate.Execute(w, p); err != nil && r.Context().Err() == nil {
		s.log.DebugContext(r.Context(), "page not sent", "err", err)
	}
}

// formTarget returns the CSP source expression for a redirect URI. Browsers
// apply form-action to redirects after a form submission, too.
func formTarget(redirect string) string {
	u, err := url.Parse(redirect)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "https" || u.Scheme == "http":
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + ":"
}

// redirectName describes the target of a redirect URI for people.
func redirectName(redirect string) string {
	u, err := url.Parse(redirect)
	switch {
	case err != nil:
		return redirect
	case u.Scheme == "http" && isLoopback(u):
		return "a program on this computer (" + u.Host + ")"
	case u.Scheme == "https":
		return u.Host
	}
	return "the program that opens " + u.Scheme + ": addresses on this computer"
}

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{{if .Next}}<meta http-equiv="refresh" content="0;url={{.Next}}">{{end}}
<title>{{.Title}} · Junctor</title>
<style nonce="{{.Nonce}}">
:root { color-scheme: light dark; --bg: #f7f6f3; --surface: #fff; --line: #e0ddd5; --ink: #1d1c19; --muted: #5e5b53; --mark: #0b6b63; --on: #fff; --bad: #ad1f16; }
@media (prefers-color-scheme: dark) { :root { --bg: #141614; --surface: #1b1e1c; --line: #2d322f; --ink: #e9ebe8; --muted: #a4aba6; --mark: #5cd0c1; --on: #10211e; --bad: #ff948a; } }
body { font: 15px/1.5 ui-sans-serif, system-ui, sans-serif; margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--bg); color: var(--ink); }
main { box-sizing: border-box; width: min(28rem, calc(100vw - 2rem)); margin: 1rem 0; padding: 1.75rem; background: var(--surface); border: 1px solid var(--line); border-top: 4px solid var(--mark); border-radius: 10px; overflow-wrap: anywhere; }
main[role=alert] { border-top-color: var(--bad); }
h1 { font-size: 1.25rem; margin: 0 0 .75rem; }
p { margin: 0 0 .75rem; color: var(--muted); }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; margin: 0 0 1rem; }
dt { color: var(--muted); } dd { margin: 0; }
label { display: block; margin: 0 0 .25rem; font-weight: 600; }
input, select { box-sizing: border-box; width: 100%; min-height: 2.75rem; margin: 0 0 1rem; padding: .5rem .75rem; font: inherit; color: inherit; background: var(--bg); border: 1px solid var(--line); border-radius: 8px; }
.problem { color: var(--bad); }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; }
.signin { box-sizing: border-box; display: block; margin: 0 0 1rem; padding: .6rem; text-align: center; text-decoration: none; }
button, .signin { min-height: 2.75rem; font: inherit; font-weight: 600; border: 1px solid var(--line); border-radius: 8px; background: transparent; color: var(--ink); cursor: pointer; }
button { flex: 1 1 8rem; }
button.allow { background: var(--mark); border-color: var(--mark); color: var(--on); }
:focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; }
</style>
<main{{if .Failed}} role="alert"{{end}}>
<h1>{{.Title}}</h1>
{{with .Text}}<p>{{.}}</p>{{end}}
{{if .Next}}<p><a href="{{.Next}}">Continue</a></p>{{end}}
{{if .Back}}<p><a href="{{.Back}}" rel="noreferrer">Return to {{.Redirect}}</a></p>{{end}}
{{if .Client}}
<dl>
<dt>Program</dt><dd>{{.Client}}</dd>
<dt>From</dt><dd>{{if .Host}}{{.Host}}{{else}}unknown: the program chose its name itself{{end}}</dd>
<dt>Answer to</dt><dd>{{.Redirect}}</dd>
{{if .Person}}<dt>You are</dt><dd>{{.Person}}</dd>{{end}}
</dl>
<p>It will be able to list and call the tools that you may use here, as you, until you revoke it. It cannot change the configuration.{{with .Resource}} It asks for more than tools: it may use every interface under {{.}} as you, such as the chat, your conversations and your calls.{{end}} Allow it only if you have just started this in that program.</p>
<form method="post" action="/oauth/consent">
{{range .Fields}}<input type="hidden" name="{{.Name}}" value="{{.Value}}">
{{end}}
{{with .Problem}}<p class="problem" role="alert">{{.}}</p>{{end}}
{{if .SignIn}}<a class="signin" href="{{.SignIn}}">Sign in with {{.Provider}}</a>{{end}}
{{if not .Person}}<label for="key">{{if .SignIn}}Or your API key{{else}}Your API key{{end}}</label>
<input id="key" name="key" type="password" autocomplete="current-password" required autofocus>{{end}}
{{if .Profiles}}<label for="profile">Limit it to</label>
<select id="profile" name="profile"><option value="">all that I may use</option>{{range .Profiles}}<option>{{.}}</option>{{end}}</select>{{end}}
<div class="actions">
<button class="allow" name="decision" value="allow">Allow</button>
<button name="decision" value="cancel" formnovalidate>Cancel</button>
</div>
</form>
{{end}}
</main>
</html>
`))
