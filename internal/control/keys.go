package control

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"junctor/internal/auth"
	"junctor/internal/store"
	"junctor/internal/tool"
)

func (c *Control) listKeys(r *http.Request) (any, error) {
	keys, err := c.Keys.Keys(r.Context())
	if err != nil {
		return nil, err
	}
	if keys == nil {
		keys = []store.Key{}
	}
	return map[string]any{"keys": keys}, nil
}

// NewKey describes an API key to create.
type NewKey struct {
	Name      string   `json:"name"` // 1 to 64 characters of A-Z a-z 0-9 _ -
	Admin     bool     `json:"admin,omitempty"`
	Servers   []string `json:"servers,omitempty"`          // globs of the servers that the key may use; absent for all
	Tools     []string `json:"tools,omitempty"`            // globs of the tools that the key may use; absent for all
	Profile   string   `json:"profile,omitempty"`          // profile to which the key is limited; absent for none
	Chat      *bool    `json:"chat,omitempty"`             // whether the key may use models; default: unless it is limited to servers, tools or a profile
	Tokens    int64    `json:"tokensPerDay,omitempty"`     // maximum number of model tokens per day; 0 means no limit
	ExpiresIn int64    `json:"expiresInSeconds,omitempty"` // in seconds; 0 means never
}

// maxKeySeconds is the longest validity of a key: 100 years.
const maxKeySeconds = 100 * 365 * 24 * 3600

// addKey creates a key and returns it. The key is not shown again.
func (c *Control) addKey(r *http.Request, in NewKey) (any, error) {
	if !tool.ValidServer(in.Name) {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("invalid key name %q; use 1 to %d characters of A-Z a-z 0-9 _ -", in.Name, tool.MaxServerName)}
	}
	if in.ExpiresIn < 0 || in.ExpiresIn > maxKeySeconds {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("expiresInSeconds must be from 0 to %d, but is %d; leave it out for a key that never expires", maxKeySeconds, in.ExpiresIn)}
	}
	if in.Tokens < 0 {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("tokensPerDay must not be negative, but is %d; leave it out for no limit", in.Tokens)}
	}
	secret, key := auth.NewKey(in.Name)
	key.Admin, key.Servers, key.Tools, key.Profile, key.Chat, key.Tokens = in.Admin, in.Servers, in.Tools, in.Profile, in.Chat, in.Tokens
	if in.ExpiresIn > 0 {
		key.Expires = key.Created.Add(time.Duration(in.ExpiresIn) * time.Second)
	}
	if err := auth.CheckRights(key, c.Profiles.Names()); err != nil {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: err.Error()}
	}
	err := c.Keys.AddKey(r.Context(), key)
	if errors.Is(err, store.ErrConflict) {
		err = &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("a key named %q already exists; revoke it first", in.Name)}
	}
	if err != nil {
		return nil, err
	}
	c.Audit(r.Context(), "key.add", key.Name, key)
	return map[string]any{"key": secret.Reveal(), "record": key}, nil
}

func (c *Control) revokeKey(r *http.Request) (any, error) {
	key, err := c.Keys.RevokeKey(r.Context(), r.PathValue("name"), time.Now())
	if errors.Is(err, store.ErrNotFound) {
		err = &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("no active key named %q", r.PathValue("name"))}
	}
	if err != nil {
		return nil, err
	}
	c.Audit(r.Context(), "key.revoke", key.Name, map[string]any{"id": key.ID})
	return key, nil
}
