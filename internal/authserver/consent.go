package authserver

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"junctor/internal/auth"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// consentPage asks the person whether a client may act for them. Its handlers
// are stateless: the form contains the client's request, which is checked
// again.
type consentPage struct {
	*Server
	people People
}

// show renders the form.
func (p *consentPage) show(w http.ResponseWriter, r *http.Request, issuer string) {
	a, refused, err := p.check(r.Context(), r.URL.Query(), issuer)
	if p.refuseAuthorization(w, r, issuer, a, refused, err) {
		return
	}
	person, caller, _ := p.people.Person(r)
	p.form(w, r, a, signedIn{person, caller, ""}, http.StatusOK, "")
}

// signedIn is the person who has signed in: with the session of the request,
// or with a key in the previous form.
type signedIn struct {
	person auth.Person
	caller tool.Caller
	until  string // expiry of a sign-in with a key
}

func (p *consentPage) form(w http.ResponseWriter, r *http.Request, a authorization, who signedIn, status int, problem string) {
	token, err := p.formToken(r, a)
	if err != nil {
		p.refuseAuthorization(w, r, "", a, nil, err)
		return
	}
	v := page{
		Title: "Let " + a.client.Name + " use your tools?", Client: a.client.Name, Host: a.client.host(), Redirect: redirectName(a.redirect),
		Problem: problem, Fields: []field{{"form", token}},
	}
	if !isMCP(a.resource) {
		v.Resource = a.resource
	}
	if who.person != "" {
		v.Person, v.Profiles = who.caller.Name, p.profiles(who.caller)
	} else if address, provider, ok := p.people.SignInLink(r, a.query); ok {
		v.SignIn, v.Provider = address, provider
	}
	if who.until != "" {
		proof, err := p.proof(r, a, who)
		if err != nil {
			p.refuseAuthorization(w, r, "", a, nil, err)
			return
		}
		v.Fields = append(v.Fields, field{"person", string(who.person)}, field{"until", who.until}, field{"proof", proof})
	}
	for _, name := range parameters {
		if value := a.query.Get(name); value != "" {
			v.Fields = append(v.Fields, field{name, value})
		}
	}
	p.render(w, r, status, formTarget(a.redirect), v)
}

// isMCP reports whether a valid resource is an MCP endpoint. Tokens for one
// are limited to tools, resources and prompts.
func isMCP(resource string) bool {
	u, err := url.Parse(resource)
	return err == nil && (u.Path == "/mcp" || strings.HasPrefix(u.Path, "/mcp/") || strings.HasPrefix(u.Path, "/profiles/"))
}

// formToken returns a token that binds a form to the client's request and the
// person who is signed in, so that no other page can submit it.
func (p *consentPage) formToken(r *http.Request, a authorization) (string, error) {
	keys, err := p.keys.current(r.Context())
	if err != nil {
		return "", err
	}
	person, _, _ := p.people.Person(r)
	return keys.derive("consent form", string(person), a.query.Encode()), nil
}

func (p *consentPage) profiles(c tool.Caller) []string {
	if p.opts.Profiles == nil {
		return nil
	}
	return p.opts.Profiles(c)
}

// signInTTL is how long a sign-in with a key is valid in the forms that follow
// it.
const signInTTL = 10 * time.Minute

// proof returns a MAC that binds a sign-in with a key to the client's request.
func (p *consentPage) proof(r *http.Request, a authorization, who signedIn) (string, error) {
	keys, err := p.keys.current(r.Context())
	if err != nil {
		return "", err
	}
	return keys.derive("consent sign-in", string(who.person), who.until, a.query.Encode()), nil
}

// who returns the person who submits the form: the one with a session, the one
// who signed in with a key in the previous form, or the owner of the key in
// this form.
func (p *consentPage) who(r *http.Request, a authorization) (signedIn, error) {
	if person, caller, ok := p.people.Person(r); ok {
		return signedIn{person, caller, ""}, nil
	}
	if before := (signedIn{person: auth.Person(r.PostForm.Get("person")), until: r.PostForm.Get("until")}); before.person != "" {
		proof, err := p.proof(r, a, before)
		if err != nil {
			return signedIn{}, err
		}
		until, err := time.Parse(time.RFC3339, before.until)
		if err != nil || p.now().After(until) || subtle.ConstantTimeCompare([]byte(proof), []byte(r.PostForm.Get("proof"))) != 1 {
			return signedIn{}, &tool.Error{Kind: tool.Unauthenticated, Msg: "the sign-in is too old; enter your key again"}
		}
		before.caller, err = p.people.CallerOf(r.Context(), before.person)
		return before, err
	}
	person, caller, err := p.people.PersonByKey(r.Context(), telemetry.Secret(r.PostForm.Get("key")))
	return signedIn{person, caller, p.now().Add(signInTTL).UTC().Format(time.RFC3339)}, err
}

const maxForm = 64 << 10

// decide handles the submitted form. On consent it redirects the browser to
// the client with a code.
func (p *consentPage) decide(w http.ResponseWriter, r *http.Request, issuer string) {
	if r.Header.Get("Origin") != issuer {
		p.log.WarnContext(r.Context(), "consent from another site refused", "origin", tool.Shorten(tool.OneLine(r.Header.Get("Origin")), 200))
		p.render(w, r, http.StatusForbidden, "", page{Title: "Refused", Text: "This form was not sent by the page of this gateway at " + issuer + ".", Failed: true})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		p.render(w, r, http.StatusBadRequest, "", page{Title: "Refused", Text: "The form cannot be read.", Failed: true})
		return
	}
	a, refused, err := p.check(r.Context(), r.PostForm, issuer)
	if p.refuseAuthorization(w, r, issuer, a, refused, err) {
		return
	}
	token, err := p.formToken(r, a)
	if p.refuseAuthorization(w, r, issuer, a, nil, err) {
		return
	}
	if subtle.ConstantTimeCompare([]byte(token), []byte(r.PostForm.Get("form"))) != 1 {
		person, caller, _ := p.people.Person(r)
		p.form(w, r, a, signedIn{person, caller, ""}, http.StatusForbidden, "This form is too old, or you have signed in or out since. Check it and try again.")
		return
	}
	if r.PostForm.Get("decision") != "allow" {
		p.log.InfoContext(r.Context(), "consent to an OAuth client refused", "client", a.client.ID)
		p.leave(w, a.redirectURL(issuer, url.Values{"error": {"access_denied"}, "error_description": {"the person did not consent"}}))
		return
	}
	who, err := p.who(r, a)
	if err != nil {
		p.log.WarnContext(r.Context(), "consent with an invalid key", "client", a.client.ID)
		p.form(w, r, a, signedIn{}, http.StatusUnauthorized, tool.AsError(err).Msg)
		return
	}
	usable := p.profiles(who.caller)
	if len(usable) > 0 && !r.PostForm.Has("profile") { // the person has just signed in and may choose one
		p.form(w, r, a, who, http.StatusOK, "")
		return
	}
	profile := r.PostForm.Get("profile")
	if profile != "" && !slices.Contains(usable, profile) {
		p.form(w, r, a, who, http.StatusBadRequest, "There is no such profile.")
		return
	}
	caller := who.caller
	code, err := p.newCode(r, a, who.person, caller, profile)
	if p.refuseAuthorization(w, r, issuer, a, nil, err) {
		return
	}
	p.log.InfoContext(r.Context(), "consent to an OAuth client", "client", a.client.ID, "name", a.client.Name, "caller", caller.Name, "profile", profile)
	p.leave(w, a.redirectURL(issuer, url.Values{"code": {code}}))
}

func (p *consentPage) newCode(r *http.Request, a authorization, person auth.Person, caller tool.Caller, profile string) (string, error) {
	secret := rand.Text() + rand.Text()
	now := p.now().UTC()
	data, err := json.Marshal(codeRecord{
		Client: a.client.ID, ClientName: a.client.Name, ClientHost: a.client.host(), Redirect: a.redirect, Explicit: a.query.Get("redirect_uri") != "",
		Challenge: a.challenge, Resource: a.resource, Person: person, Owner: caller.ID, Name: caller.Name, Profile: profile, Issued: now,
	})
	if err != nil {
		return "", err
	}
	_, err = p.opts.Store.PutValue(r.Context(), store.Value{Space: spaceCodes, Name: hash(secret), Data: data, Expires: now.Add(usedCodeTTL)}, 0)
	return secret, err
}

// listGrants lists the caller's consents, or all of them for an administrator.
func (p *consentPage) listGrants(r *http.Request) (any, error) {
	mine, err := p.visible(r)
	if err != nil {
		return nil, err
	}
	return map[string]any{"clients": mine}, nil
}

func (p *consentPage) revokeGrant(r *http.Request) (any, error) {
	mine, err := p.visible(r)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(mine, func(g Grant) bool { return g.ID == r.PathValue("id") })
	if at < 0 {
		return nil, &tool.Error{Kind: tool.MethodNotFound, Msg: "no such consent; GET /api/clients lists them"}
	}
	if err := p.grants.end(r.Context(), r.PathValue("id")); err != nil {
		return nil, &tool.Error{Kind: tool.Unavailable, Msg: "consents cannot be changed now; try again shortly", RetryAfter: 2 * time.Second, Err: err}
	}
	p.audit(r.Context(), "client.revoke", mine[at], nil)
	p.log.InfoContext(r.Context(), "consent revoked", "grant", r.PathValue("id"), "caller", tool.CallerFrom(r.Context()).Name)
	return nil, nil
}

func (p *consentPage) visible(r *http.Request) ([]Grant, error) {
	caller := tool.CallerFrom(r.Context())
	if p.people.ByClient(r) {
		return nil, &tool.Error{Kind: tool.Denied, Msg: "consents are for the person, not for the programs that act for them; sign in on the page or use a key"}
	}
	all, err := List(r.Context(), p.opts.Store)
	if err != nil {
		return nil, &tool.Error{Kind: tool.Unavailable, Msg: "consents cannot be read now; try again shortly", RetryAfter: 2 * time.Second, Err: err}
	}
	return slices.DeleteFunc(all, func(g Grant) bool { return !caller.Admin && g.Owner != caller.ID }), nil
}
