package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/address"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// The spaces and names in the store. Each secret is encrypted for its name.
const (
	spaceFlows  = "oauth-flows"
	tokenPrefix = "oauth/token/"  // followed by the name of the login
	clientName  = "oauth/client/" // followed by a hash of issuer and redirect URI
)

// vault returns the encrypted part of the store. The encryption key is read on
// first use.
func (s *Service) vault() (*store.Vault, *store.Sealer, error) {
	sealer, err := s.opts.Sealer()
	if err != nil {
		return nil, nil, &tool.Error{Kind: tool.Internal, Msg: "the key that encrypts tokens cannot be read; the gateway's log has the cause", Err: err}
	}
	return store.NewVault(s.opts.Store, sealer), sealer, nil
}

// nameOf returns the name of a login in the store: the upstream's name and,
// for a caller's own login, a slash and the encoded caller. Names of upstreams
// contain no slash.
func nameOf(l upstream.Login) string {
	if l.Caller == "" {
		return l.Server
	}
	return l.Server + "/" + base64.RawURLEncoding.EncodeToString([]byte(l.Caller))
}

// load reads a login; nil if there is none.
func (s *Service) load(ctx context.Context, l upstream.Login) (*record, int64, error) {
	v, _, err := s.vault()
	if err != nil {
		return nil, 0, err
	}
	plain, version, err := v.Get(ctx, tokenPrefix+nameOf(l))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, 0, nil
	case errors.Is(err, store.ErrSealed):
		return nil, version, &tool.Error{Kind: tool.UpstreamFailed, Err: err, Msg: "its login was encrypted with another key; give every gateway on this store the same JUNCTOR_SECRET_KEY, or sign in again: junctor servers login " + l.Server}
	case err != nil:
		return nil, 0, fmt.Errorf("read the login of %s: %w", l.Server, err)
	}
	var rec record
	if err := json.Unmarshal(plain, &rec); err != nil {
		return nil, version, fmt.Errorf("read the login of %s: %w", l.Server, err)
	}
	s.redactTokens(&rec)
	return &rec, version, nil
}

// save writes a login if the stored one still has the version.
func (s *Service) save(ctx context.Context, l upstream.Login, rec *record, version int64) (int64, error) {
	v, _, err := s.vault()
	if err != nil {
		return 0, err
	}
	return v.Put(ctx, tokenPrefix+nameOf(l), encode(rec), version)
}

// redactTokens registers the tokens of a login with the redactor. Tokens that
// have not been seen for redactTTL are removed.
func (s *Service) redactTokens(rec *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range rec.secrets() {
		if _, known := s.redacted[secret]; !known {
			s.opts.Redactor.Add(secret)
		}
		s.redacted[secret] = time.Now()
	}
	if len(s.redacted) < maxRedacted || time.Since(s.swept) < redactSweepInterval {
		return
	}
	s.swept = time.Now()
	var gone []telemetry.Secret
	for secret, seen := range s.redacted {
		if time.Since(seen) > redactTTL {
			gone = append(gone, secret)
			delete(s.redacted, secret)
		}
	}
	s.opts.Redactor.Forget(gone...) // in one call, because each call costs as much as there are secrets
}

const (
	maxRedacted         = 256
	redactTTL           = 24 * time.Hour
	redactSweepInterval = 10 * time.Minute // logins of many callers may be read many times a second
)

// registrationName returns the name of the stored registration with an issuer.
// It does not include the port of a loopback address, which may change between
// logins.
func registrationName(issuer, redirect string) string {
	u, err := url.Parse(redirect)
	if err == nil {
		if c, ok := address.OfHost(u.Hostname()); ok && c == address.Loopback {
			u.Host = u.Hostname()
			redirect = u.String()
		}
	}
	sum := sha256.Sum256([]byte(issuer + "\n" + redirect))
	return clientName + hex.EncodeToString(sum[:16])
}

// registration returns the stored registration; ok is false if there is no
// usable one.
func (s *Service) registration(ctx context.Context, issuer, redirect string) (client, bool, error) {
	v, _, err := s.vault()
	if err != nil {
		return client{}, false, err
	}
	plain, _, err := v.Get(ctx, registrationName(issuer, redirect))
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrSealed) {
		return client{}, false, nil
	}
	if err != nil {
		return client{}, false, fmt.Errorf("read the registration with %s: %w", issuer, err)
	}
	var c client
	if json.Unmarshal(plain, &c) != nil || !c.Ends.IsZero() && time.Until(c.Ends) < time.Hour {
		return client{}, false, nil
	}
	s.redactTokens(&record{Client: c})
	return c, true, nil
}

func (s *Service) storeRegistration(ctx context.Context, issuer string, c client) error {
	v, _, err := s.vault()
	if err != nil {
		return err
	}
	if _, err := v.Put(ctx, registrationName(issuer, c.Redirect), encode(c), store.AnyVersion); err != nil {
		return fmt.Errorf("store the registration with %s: %w", issuer, err)
	}
	return nil
}

func (s *Service) deleteRegistration(ctx context.Context, issuer, redirect string) error {
	v, _, err := s.vault()
	if err != nil {
		return err
	}
	return v.Delete(ctx, registrationName(issuer, redirect))
}

// flowName returns a hash of the state, so that readers of the store cannot use
// it.
func flowName(state string) string {
	sum := sha256.Sum256([]byte(state))
	return hex.EncodeToString(sum[:])
}

func (s *Service) storeFlow(ctx context.Context, state string, f flow) error {
	_, sealer, err := s.vault()
	if err != nil {
		return err
	}
	name := flowName(state)
	_, err = s.opts.Store.PutValue(ctx, store.Value{
		Space: spaceFlows, Name: name, Data: sealer.Seal(name, encode(f)), Expires: f.Expires,
	}, 0)
	if err != nil {
		return fmt.Errorf("store the pending login: %w", err)
	}
	return nil
}

// errNoFlow returns the error for an unknown, used or expired state.
func errNoFlow() error {
	return &tool.Error{Kind: tool.InvalidRequest, Msg: "this sign-in is unknown: its link was already used, or it took longer than 10 minutes; start it again"}
}

// storedFlow returns the stored value of a pending login.
func (s *Service) storedFlow(ctx context.Context, state string) (store.Value, error) {
	if len(state) == 0 || len(state) > 128 || strings.ContainsFunc(state, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return store.Value{}, errNoFlow()
	}
	v, err := s.opts.Store.Value(ctx, spaceFlows, flowName(state))
	if errors.Is(err, store.ErrNotFound) {
		return store.Value{}, errNoFlow()
	} else if err != nil {
		return store.Value{}, fmt.Errorf("read the pending login: %w", err)
	}
	return v, nil
}

// openFlow decrypts a pending login.
func (s *Service) openFlow(v store.Value) (flow, error) {
	_, sealer, err := s.vault()
	if err != nil {
		return flow{}, err
	}
	plain, err := sealer.Open(v.Name, v.Data)
	if err != nil {
		return flow{}, errNoFlow()
	}
	var f flow
	if json.Unmarshal(plain, &f) != nil || time.Now().After(f.Expires) {
		return flow{}, errNoFlow()
	}
	return f, nil
}

// peekFlow returns the pending login for a state without consuming it.
func (s *Service) peekFlow(ctx context.Context, state string) (flow, error) {
	v, err := s.storedFlow(ctx, state)
	if err != nil {
		return flow{}, err
	}
	return s.openFlow(v)
}

// takeFlow returns the pending login for a state and consumes it.
func (s *Service) takeFlow(ctx context.Context, state string) (flow, error) {
	v, err := s.storedFlow(ctx, state)
	if err != nil {
		return flow{}, err
	}
	// Of two concurrent callbacks only one may continue. A conditional write
	// ensures that; a delete would succeed for both.
	_, err = s.opts.Store.PutValue(ctx, store.Value{Space: spaceFlows, Name: v.Name, Expires: v.Expires}, v.Version)
	if errors.Is(err, store.ErrConflict) {
		return flow{}, errNoFlow()
	} else if err != nil {
		return flow{}, fmt.Errorf("claim the pending login: %w", err)
	}
	_ = s.opts.Store.DeleteValue(ctx, spaceFlows, v.Name, store.AnyVersion) // it would also expire
	return s.openFlow(v)
}

// state is the state of one login in this process.
type state struct {
	login upstream.Login
	asked atomic.Int64 // time of the last use, in Unix nanoseconds

	leased sync.Mutex // held with the lease, because goroutines of one process share the lease

	mu      sync.Mutex
	rec     *record // nil: no login
	version int64
	read    time.Time // when the store was last read; zero: never
	unsaved bool      // rec is newer than the stored record

	refreshing *refreshCall // the refresh in progress
	retryAt    time.Time
	failures   int
	lastErr    error
	forced     string // the token that was obtained after a 401
	nonce      string // the nonce that the server requires in DPoP proofs

	beginning map[string]*preparedLogin // logins in preparation, by loginRequest.attemptKey
	pending   map[string]*pendingLogin  // logins that wait for the user, by the same key

	wanted *loginRequest // what the last refused request needs; nil if none was refused since the login

	reached netip.Addr // address of the upstream's last connection
	watched time.Time  // when that was recorded
}
