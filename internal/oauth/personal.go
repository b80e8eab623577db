package oauth

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Generation identifies a login until it is replaced. Connections and lists
// that were created with one login are not used with the next. It is "" while
// there is no usable login.
func (s *Service) Generation(ctx context.Context, l upstream.Login) (string, error) {
	cfg, ok := s.opts.Servers(l.Server)
	if !ok || cfg.LoginOf(l.Caller) != l {
		return "", nil
	}
	rec, err := s.known(ctx, cfg, s.state(l), false)
	if err != nil || !rec.usable(time.Now()) {
		return "", err
	}
	return strconv.FormatInt(rec.Since.UnixNano(), 36), nil
}

// End logs out the login that the context's caller uses. It also works for an
// upstream that is no longer configured.
func (s *Service) End(ctx context.Context, server string) (bool, error) {
	cfg, ok := s.opts.Servers(server)
	if !ok {
		return s.Logout(ctx, upstream.Login{Server: server})
	}
	return s.Logout(ctx, cfg.LoginOf(tool.CallerFrom(ctx).ID))
}

// HasCallerLogins returns an error unless each caller has its own login to the
// upstream.
func (s *Service) HasCallerLogins(server string) error {
	cfg, err := s.find(server)
	if err == nil && !cfg.PersonalLogins() {
		err = &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf(`all callers share one login to %s; leave the caller out, or set "oauth": {"per": "caller"} for the server`, server)}
	}
	return err
}

// CallerLogin describes the login of one caller, without its secrets.
type CallerLogin struct {
	Caller string    `json:"caller"`         // id of the caller
	Name   string    `json:"name,omitempty"` // name of the caller when it signed in
	Since  time.Time `json:"since,omitzero"` // when the caller signed in
}

// CallerLogins returns the callers that have their own login to an upstream,
// sorted by their names in the store.
func (s *Service) CallerLogins(ctx context.Context, server string) ([]CallerLogin, error) {
	v, _, err := s.vault()
	if err != nil {
		return nil, err
	}
	secrets, err := v.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the logins of %s: %w", server, err)
	}
	list := []CallerLogin{}
	for _, secret := range secrets {
		name, ok := strings.CutPrefix(secret.Name, tokenPrefix+server+"/")
		if !ok {
			continue
		}
		caller, err := base64.RawURLEncoding.DecodeString(name)
		if err != nil {
			continue
		}
		login := CallerLogin{Caller: string(caller)}
		if rec, _, err := s.load(ctx, upstream.Login{Server: server, Caller: login.Caller}); err == nil && rec != nil {
			login.Name, login.Since = rec.Name, rec.Since
		}
		list = append(list, login)
	}
	return list, nil
}

// EndLogins logs out the callers for which ended reports true. A token that
// cannot be revoked expires on its own.
func (s *Service) EndLogins(ctx context.Context, ended func(caller string) bool) error {
	secrets, err := s.opts.Store.Values(ctx, store.SpaceSecrets)
	if err != nil {
		return fmt.Errorf("list the logins of callers: %w", err)
	}
	for _, secret := range secrets {
		name, isToken := strings.CutPrefix(secret.Name, tokenPrefix)
		server, encoded, personal := strings.Cut(name, "/")
		caller, err := base64.RawURLEncoding.DecodeString(encoded)
		if !isToken || !personal || err != nil || !ended(string(caller)) {
			continue
		}
		login := upstream.Login{Server: server, Caller: string(caller)}
		there, err := s.Logout(ctx, login)
		if err != nil && !there {
			return err
		}
		if err != nil {
			s.log.WarnContext(ctx, "cannot revoke the token of an ended login", "server", server, "caller", login.Caller, "err", err)
		}
		s.audit(ctx, "login.end", server, auditDetail(login))
	}
	return nil
}

// confirmation returns what a person has to confirm before the callback for a
// caller's own login is accepted. Without it, a person who opens another
// caller's URL would give that caller access to their account. It returns nil
// for a shared login and for a callback that Complete rejects.
func (s *Service) confirmation(ctx context.Context, q url.Values) *confirmPage {
	f, err := s.peekFlow(ctx, q.Get("state"))
	if err != nil || !f.Personal || q.Get("code") == "" {
		return nil
	}
	return &confirmPage{
		Server: f.Server, Caller: tool.Caller{ID: f.Owner, Name: f.Name}.String(),
		Fields: map[string]string{"state": q.Get("state"), "code": q.Get("code"), "iss": q.Get("iss")},
	}
}

// checkBrowser returns an error if the browser is signed in to the gateway as
// a caller other than the one that began the login.
func (s *Service) checkBrowser(ctx context.Context, q url.Values) error {
	f, err := s.peekFlow(ctx, q.Get("state"))
	if err != nil || !f.Personal {
		return err
	}
	switch who := tool.CallerFrom(ctx); who.ID {
	case f.Owner, tool.AnonymousID, tool.Local.ID:
		return nil
	default:
		return &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf(
			"you are signed in to the gateway as %s, but %s began this sign-in to %s; nothing was accepted. Begin the sign-in yourself", who, tool.Caller{ID: f.Owner, Name: f.Name}, f.Server)}
	}
}

type confirmPage struct {
	Server, Caller string
	Fields         map[string]string
}
