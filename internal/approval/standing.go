package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// Scope is how long an approval applies: to one call, to the calls of a
// session, or until it is revoked.
type Scope string

// The scopes.
const (
	Once       Scope = "once"
	ForSession Scope = "session"
	Always     Scope = "always"
)

const (
	spaceAlways  = "chat-approvals"    // lists of subjects, by caller
	spaceSession = "session-approvals" // by a hash of caller, session and subject

	// sessionTTL is the maximum duration of an approval for a session.
	sessionTTL = 24 * time.Hour
)

// Standing manages the approvals that apply to later calls.
type Standing struct {
	Store store.Values
	Tools interface{ Snapshot() *catalog.Snapshot }
	// Audit records what a caller has allowed for itself; nil records nothing.
	Audit func(ctx context.Context, action, target string, detail any)
}

// Info is a standing approval of a tool.
type Info struct {
	Tool        string `json:"tool"`        // server:tool
	Fingerprint string `json:"fingerprint"` // fingerprint of the approved definition
	Current     bool   `json:"current"`     // the tool's current definition has this fingerprint
}

// Subject names what is approved: a tool with the fingerprint of its current
// definition. A changed definition needs a new approval.
func (s *Standing) Subject(n tool.Name) string {
	if e := s.Tools.Snapshot().Lookup(n); e != nil {
		return subject(e)
	}
	return n.String()
}

func subject(e *catalog.Entry) string { return e.Name.String() + " " + e.Fingerprint() }

func (s *Standing) always(ctx context.Context, caller string) ([]string, int64, error) {
	v, err := s.Store.Value(ctx, spaceAlways, caller)
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var subjects []string
	err = json.Unmarshal(v.Data, &subjects)
	return subjects, v.Version, err
}

// AllowedAlways reports whether the caller's calls of the subject are
// permanently allowed.
func (s *Standing) AllowedAlways(ctx context.Context, caller, subject string) (bool, error) {
	subjects, _, err := s.always(ctx, caller)
	return err == nil && slices.Contains(subjects, subject), err
}

// AllowAlways permanently allows the caller's calls of the subject. The audit
// log records that the caller itself did so.
func (s *Standing) AllowAlways(ctx context.Context, caller tool.Caller, subject string) error {
	err := s.allowAlways(ctx, caller.ID, subject)
	if err == nil && s.Audit != nil {
		name, fingerprint, _ := strings.Cut(subject, " ")
		s.Audit(tool.WithCaller(ctx, caller), "approval.always", name, map[string]any{"fingerprint": fingerprint})
	}
	return err
}

func (s *Standing) allowAlways(ctx context.Context, caller, subject string) error {
	return s.change(ctx, caller, func(subjects []string) []string {
		if slices.Contains(subjects, subject) {
			return nil
		}
		return append(subjects, subject)
	})
}

// change replaces the subjects of a caller with those that f returns, unless f
// returns nil.
func (s *Standing) change(ctx context.Context, caller string, f func([]string) []string) error {
	for range 5 { // retry on conflicts with concurrent writers
		subjects, version, err := s.always(ctx, caller)
		if err != nil {
			return err
		}
		changed := f(subjects)
		if changed == nil {
			return nil
		}
		data, err := json.Marshal(changed)
		if err != nil {
			return err
		}
		_, err = s.Store.PutValue(ctx, store.Value{Space: spaceAlways, Name: caller, Data: data}, version)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return store.ErrConflict
}

func sessionName(caller, session, subject string) string {
	sum := sha256.Sum256([]byte(caller + "\n" + session + "\n" + subject))
	return hex.EncodeToString(sum[:])
}

func (s *Standing) allowedInSession(ctx context.Context, caller, session, subject string) (bool, error) {
	if session == "" {
		return false, nil
	}
	_, err := s.Store.Value(ctx, spaceSession, sessionName(caller, session, subject))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (s *Standing) allowInSession(ctx context.Context, caller, session, subject string) error {
	_, err := s.Store.PutValue(ctx, store.Value{
		Space: spaceSession, Name: sessionName(caller, session, subject), Expires: time.Now().Add(sessionTTL),
	}, store.AnyVersion)
	return err
}

// List returns the permanent approvals of a caller.
func (s *Standing) List(ctx context.Context, caller string) ([]Info, error) {
	subjects, _, err := s.always(ctx, caller)
	if err != nil {
		return nil, unavailable(err)
	}
	out := []Info{}
	for _, sub := range subjects {
		name, print, _ := strings.Cut(sub, " ")
		a := Info{Tool: name, Fingerprint: print}
		if n, err := tool.ParseName(name); err == nil {
			a.Current = s.Subject(n) == sub
		}
		out = append(out, a)
	}
	return out, nil
}

// shows reports whether the caller may see its approvals of a subject. A caller
// with a profile, or a token with fewer rights, sees only those of tools that
// it may use.
func (s *Standing) shows(caller *tool.Caller, subject string) bool {
	if !caller.Limited() {
		return true
	}
	name, _, _ := strings.Cut(subject, " ")
	n, err := tool.ParseName(name)
	if err != nil {
		return false
	}
	if e := s.Tools.Snapshot().Lookup(n); e != nil {
		n = e.Original.Name // rights refer to the original name
	}
	return caller.MayUse(n)
}

// Revoke removes a caller's permanent approvals of a tool.
func (s *Standing) Revoke(ctx context.Context, caller, name string) error {
	found := false
	err := s.change(ctx, caller, func(subjects []string) []string {
		rest := slices.DeleteFunc(slices.Clone(subjects), func(s string) bool { return s == name || strings.HasPrefix(s, name+" ") })
		if found = len(rest) < len(subjects); !found {
			return nil
		}
		return rest
	})
	if err != nil {
		return unavailable(err)
	}
	if !found {
		return notApproved(name)
	}
	return nil
}

func notApproved(name string) error {
	return &tool.Error{Kind: tool.MethodNotFound, Msg: fmt.Sprintf("%s has no standing approval", tool.Shorten(name, 200))}
}

func unavailable(err error) error {
	return &tool.Error{Kind: tool.Unavailable, Msg: "approvals cannot be read or written now; try again shortly", RetryAfter: 2 * time.Second, Err: err}
}
