package oauth

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"junctor/internal/tool"
)

func as(t *testing.T, caller tool.Caller) context.Context {
	return tool.WithCaller(t.Context(), caller)
}

var (
	limited = tool.Caller{ID: "key:limited", Servers: []string{"jira"}}
	whole   = tool.Caller{ID: "key:whole"}
	admin   = tool.Caller{ID: "key:admin", Admin: true}
)

func (r *fixture) begin(caller tool.Caller) string {
	r.t.Helper()
	address, err := r.Begin(as(r.t, caller), "jira")
	if err != nil {
		r.t.Fatal(err)
	}
	return address
}

func (r *fixture) complete(address string) error {
	r.t.Helper()
	_, err := r.Complete(r.t.Context(), visit(r.t, address))
	return err
}

func TestSharedLoginIsNotReplacedByOthers(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	early, earlyAdmin := r.begin(limited), r.begin(tool.Caller{ID: "key:second", Admin: true})
	if other := r.begin(admin); other == early || other == earlyAdmin {
		t.Fatal("an attempt is offered to another caller")
	} else if err := r.complete(other); err != nil {
		t.Fatal(err)
	}
	login := r.kept().Access
	// A completed sign-in invalidates all older attempts, including an
	// administrator's.
	for _, address := range []string{early, earlyAdmin} {
		if err := r.complete(address); tool.KindOf(err) != tool.Denied {
			t.Errorf("an attempt from before the login: %v", err)
		}
	}
	// On a step-up the restricted caller gets no URL, and the administrator
	// gets a working one.
	w.do(func() { w.needs = "more" })
	_, err := call(as(t, limited), r.Service, *r.cfg)
	if e := tool.AsError(err); e.Kind != tool.UpstreamAuthRequired || strings.Contains(e.Msg, "state=") || strings.Contains(string(encode(e.Details)), "url") {
		t.Errorf("a call that needs more: %v, %v", err, e.Details)
	}
	if err := r.SignIn(as(t, limited), "jira"); strings.Contains(err.Error(), "state=") {
		t.Errorf("SignIn gives away %v", err)
	}
	if r.kept().Access != login {
		t.Fatal("the login was replaced")
	}
	_, err = call(as(t, admin), r.Service, *r.cfg)
	again := urlIn(t, err)
	// Rights are checked again when the attempt completes.
	r.opts.IsAdmin = func(context.Context, string) bool { return false }
	if err := r.complete(again); tool.KindOf(err) != tool.Denied || r.kept().Access != login {
		t.Errorf("an administrator that is none any more: %v", err)
	}
	r.opts.IsAdmin = nil
	if err := r.complete(r.begin(admin)); err != nil || r.kept().Access == login {
		t.Errorf("an administrator cannot sign in anew: %v", err)
	}
}

func TestSignInAddressesAreNotLogged(t *testing.T) {
	r := newFixture(t, newWorld(t))
	err := r.SignIn(as(t, whole), "jira")
	u, parseErr := url.Parse(urlIn(t, err))
	if parseErr != nil {
		t.Fatal(parseErr)
	}
	state := u.Query().Get("state")
	if got := r.opts.Redactor.String(err.Error()); state == "" || strings.Contains(got, state) {
		t.Errorf("a log would show %s", got)
	}
	if err := r.SignIn(as(t, whole), "jira"); !strings.Contains(err.Error(), state) {
		t.Error("the same caller is offered another attempt")
	}
	// The account of the first login is used for everyone, so a restricted
	// caller must not choose it.
	for name, err := range map[string]error{"SignIn": r.SignIn(as(t, limited), "jira"), "a call": func() error { _, err := call(as(t, limited), r.Service, *r.cfg); return err }()} {
		if tool.KindOf(err) != tool.UpstreamAuthRequired || strings.Contains(err.Error(), "state=") {
			t.Errorf("%s of a limited caller: %v", name, err)
		}
	}
	// Work without a caller begins no sign-in.
	_, err = call(as(t, tool.Caller{}), r.Service, *r.cfg)
	if tool.KindOf(err) != tool.UpstreamAuthRequired || strings.Contains(err.Error(), "http://") {
		t.Errorf("a connection attempt: %v", err)
	}
}
