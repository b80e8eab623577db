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

// Valid reports whether the key opens anything at the time given.
func (k Key) Valid(now time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || now.Before(k.Expires))
}

// MayChat reports whether the key may use models. Unless that is set, a key
// may that is not limited to servers, tools or a profile.
func (k Key) MayChat() bool {
	if k.Chat != nil {
		return *k.Chat
	}
	return k.Servers == nil && k.Tools == nil && k.Profile == ""
}

// Keys keeps the API keys. Changes are announced under [TopicKeys].
type Keys interface {
	// AddKey adds a key; ErrConflict when its name or hash is taken.
	AddKey(ctx context.Context, k Key) error

	// Keys returns all keys, the revoked too, oldest first. There are few:
	// those who check callers keep them in memory and watch for changes.
	Keys(ctx context.Context) ([]Key, error)

	// KeyByHash returns the key with the hash, valid or not, or ErrNotFound.
	KeyByHash(ctx context.Context, hash []byte) (Key, error)

	// RevokeKey ends the key in effect with that name or id and returns it;
	// ErrNotFound when there is none.
	RevokeKey(ctx context.Context, nameOrID string, at time.Time) (Key, error)

	// TouchKeys notes when keys, by id, were last used. It never moves that
	// time backwards and announces nothing.
	TouchKeys(ctx context.Context, used map[string]time.Time) error
}
