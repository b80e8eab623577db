package store

import (
	"context"
	"time"

	"junctor/internal/tool"
)

// Key is an API key of the HTTP faces. The key itself is not kept, only its
// hash: who reads the store cannot call.
type Key struct {
	ID       string    `json:"id"`   // unique forever
	Name     string    `json:"name"` // unique among keys that are not revoked
	Hash     []byte    `json:"-"`    // SHA-256 of the key
	Hint     string    `json:"hint"` // its first characters, to know it again
	Admin    bool      `json:"admin"`
	Servers  []string  `json:"servers,omitempty"` // globs, as in tool.Caller
	Tools    []string  `json:"tools,omitempty"`
	Profile  string    `json:"profile,omitempty"` // to which it is bound; "" for none
	Rate     tool.Rate `json:"rate,omitzero"`
	Chat     *bool     `json:"chat,omitempty"`         // may use models; nil: unless it is limited, see MayChat
	Tokens   int64     `json:"tokensPerDay,omitempty"` // of models; zero: no limit
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero"`  // zero: never
	Revoked  time.Time `json:"revoked,omitzero"`  // zero: in effect
	LastUsed time.Time `json:"lastUsed,omitzero"` // zero: not used yet
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
