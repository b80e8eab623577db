package store

import (
	"context"
	"time"

	"junctor/internal/tool"
)

// Key is the record of an API key. The key itself is not stored, only its hash,
// so that access to the store does not allow calls.
type Key struct {
	ID       string    `json:"id"`                     // unique, and never reused
	Name     string    `json:"name"`                   // unique among keys that are not revoked
	Hash     []byte    `json:"-"`                      // SHA-256 of the key
	Hint     string    `json:"hint"`                   // first characters of the key, to recognise it by
	Admin    bool      `json:"admin"`                  // the key is an administrator's
	Servers  []string  `json:"servers,omitempty"`      // globs of the servers that the key may use; absent for all
	Tools    []string  `json:"tools,omitempty"`        // globs of the tools that the key may use; absent for all
	Profile  string    `json:"profile,omitempty"`      // profile to which the key is limited; absent for none
	Rate     tool.Rate `json:"rate,omitzero"`          // maximum number of calls; absent for no limit
	Chat     *bool     `json:"chat,omitempty"`         // whether the key may use models; if absent, it may unless it is limited to servers, tools or a profile
	Tokens   int64     `json:"tokensPerDay,omitempty"` // maximum number of model tokens per day; absent for no limit
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero"`  // absent if the key does not expire
	Revoked  time.Time `json:"revoked,omitzero"`  // absent if the key is not revoked
	LastUsed time.Time `json:"lastUsed,omitzero"` // absent if the key has not been used
}

// Valid reports whether the key is neither revoked nor expired at the given
// time.
func (k Key) Valid(now time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || now.Before(k.Expires))
}

// MayChat reports whether the key may use models. If Chat is nil, the key may
// unless it is limited to servers, tools or a profile.
func (k Key) MayChat() bool {
	if k.Chat != nil {
		return *k.Chat
	}
	return k.Servers == nil && k.Tools == nil && k.Profile == ""
}

// Keys stores the API keys. Changes are announced under [TopicKeys].
type Keys interface {
	// AddKey adds a key; ErrConflict when its ID, its hash, or its name among
	// the keys not revoked, is in use.
	AddKey(ctx context.Context, k Key) error

	// Keys returns all keys, including revoked ones, oldest first. There are
	// few: code that authenticates callers caches them and watches for changes.
	Keys(ctx context.Context) ([]Key, error)

	// KeyByHash returns the key with the hash, valid or not, or ErrNotFound.
	KeyByHash(ctx context.Context, hash []byte) (Key, error)

	// RevokeKey revokes the key with that name or ID and returns it;
	// ErrNotFound when there is none that is not revoked.
	RevokeKey(ctx context.Context, nameOrID string, at time.Time) (Key, error)

	// TouchKeys records when keys, by ID, were last used. It never sets that
	// time back and announces nothing.
	TouchKeys(ctx context.Context, used map[string]time.Time) error
}
