package oauth

import (
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// client is the OAuth client registration at an authorization server.
type client struct {
	ID       string    `json:"id"`
	Secret   string    `json:"secret,omitempty"`
	Method   string    `json:"method"`             // of authentication at the token endpoint
	Redirect string    `json:"redirect,omitempty"` // it was registered with
	Ends     time.Time `json:"ends,omitzero"`      // expiry of the secret; zero for never

	Bound json.RawMessage `json:"bound,omitempty"` // the key that tokens are bound to; nil for none

	key      string // the configured private key for methodKey; never stored
	audience string // audience of its assertions
}

// The client authentication methods.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodKey   = "private_key_jwt"
)

// record is the login to an upstream, as stored encrypted. It is bound to the
// upstream's URL: if the name later refers to another server, the record is
// not used.
type record struct {
	URL        string            `json:"url"`
	Resource   string            `json:"resource"`
	Issuer     string            `json:"issuer,omitempty"`
	Token      string            `json:"tokenEndpoint"`
	Revocation string            `json:"revocationEndpoint,omitempty"`
	Reach      addressPolicyJSON `json:"reach"`
	Client     client            `json:"client"`
	Own        bool              `json:"clientCredentials,omitempty"` // obtained with the client's own credentials

	Access   string    `json:"access"`
	Scheme   string    `json:"scheme,omitempty"` // of the access token; "" is Bearer
	Refresh  string    `json:"refresh,omitempty"`
	Scope    []string  `json:"scope,omitempty"` // granted, if known
	Asked    []string  `json:"asked,omitempty"` // requested
	Obtained time.Time `json:"obtained"`
	Expires  time.Time `json:"expires,omitzero"` // zero: not known
	Since    time.Time `json:"since"`            // time of the login
	Name     string    `json:"name,omitempty"`   // display name of the caller whose login it is
}

// addressPolicyJSON stores the address policy of the login, so that a refresh
// uses the same policy.
type addressPolicyJSON struct {
	Private   bool `json:"private,omitempty"`
	Loopback  bool `json:"loopback,omitempty"`
	LinkLocal bool `json:"linkLocal,omitempty"`
	Plain     bool `json:"plain,omitempty"`
}

func (r addressPolicy) json() addressPolicyJSON {
	return addressPolicyJSON{r.private, r.loopback, r.linkLocal, r.plain}
}
func (j addressPolicyJSON) policy() addressPolicy {
	return addressPolicy{j.Private, j.Loopback, j.LinkLocal, j.Plain}
}

// String, GoString and LogValue keep a record out of logs and messages.
func (r *record) String() string       { return telemetry.Redacted }
func (r *record) GoString() string     { return telemetry.Redacted }
func (r *record) LogValue() slog.Value { return slog.StringValue(telemetry.Redacted) }

// lifetime returns the lifetime of the token since it was issued; 0 if unknown.
func (r *record) lifetime() time.Duration {
	if r.Expires.IsZero() {
		return 0
	}
	return r.Expires.Sub(r.Obtained)
}

// due reports whether the token should be refreshed, at 80 % of its lifetime.
func (r *record) due(now time.Time) bool {
	life := r.lifetime()
	return !r.Expires.IsZero() && !now.Before(r.Obtained.Add(life*8/10))
}

// expired reports whether the token has expired, or will expire before a
// request arrives.
func (r *record) expired(now time.Time) bool {
	return r.Access == "" || !r.Expires.IsZero() && !now.Before(r.Expires.Add(-min(2*time.Second, r.lifetime()/20)))
}

// refreshable reports whether a new token can be obtained without a user.
func (r *record) refreshable() bool { return r.Refresh != "" || r.Own }

// isNewerThan reports whether the record has the same or a later token of the
// same login as old.
func (r *record) isNewerThan(old *record) bool {
	return old != nil && old.Since.Equal(r.Since) && !old.Obtained.After(r.Obtained)
}

// secrets returns the values that logs must not contain.
func (r *record) secrets() []telemetry.Secret {
	return slices.DeleteFunc([]telemetry.Secret{
		telemetry.Secret(r.Access), telemetry.Secret(r.Refresh), telemetry.Secret(r.Client.Secret),
	}, func(s telemetry.Secret) bool { return s == "" })
}

// flow is a pending login, as stored encrypted. It is in the store because
// another node may receive the callback.
type flow struct {
	Server   string            `json:"server"`
	URL      string            `json:"url"`
	Resource string            `json:"resource"`
	Meta     serverMeta        `json:"meta"`
	Reach    addressPolicyJSON `json:"reach"`
	Client   client            `json:"client"`
	Redirect string            `json:"redirect"`
	Verifier string            `json:"verifier"`
	Scopes   []string          `json:"scopes,omitempty"`
	Expires  time.Time         `json:"expires"`

	Owner    string    `json:"owner"`               // who began it
	Name     string    `json:"ownerName,omitempty"` // display name of the owner
	Personal bool      `json:"personal,omitempty"`  // the login is the owner's own
	Admin    bool      `json:"admin,omitempty"`     // begun with administrator's rights
	Replaces time.Time `json:"replaces,omitzero"`   // record.Since of the login that existed
}

// login returns the login that the flow is for.
func (f *flow) login() upstream.Login {
	l := upstream.Login{Server: f.Server}
	if f.Personal {
		l.Caller = f.Owner
	}
	return l
}

func (f *flow) String() string   { return telemetry.Redacted }
func (f *flow) GoString() string { return telemetry.Redacted }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // cannot happen: strings, times and slices of them always marshal
		panic("oauth: " + err.Error())
	}
	return b
}
