package control

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"junctor/internal/auth"
	"junctor/internal/httperr"
	"junctor/internal/store"
	"junctor/internal/tool"
)

func (c *Control) listKeys(w http.ResponseWriter, r *http.Request) {
	keys, err := c.Keys.Keys(r.Context())
	if err != nil {
		httperr.Write(w, r, err)
		return
	}
	if keys == nil {
		keys = []store.Key{}
	}
	answer(w, map[string]any{"keys": keys})
}

// NewKey is what a key is made from.
type NewKey struct {
	Name      string   `json:"name"`
	Admin     bool     `json:"admin,omitempty"`
	Servers   []string `json:"servers,omitempty"`
	Tools     []string `json:"tools,omitempty"`
	Profile   string   `json:"profile,omitempty"`
	Chat      *bool    `json:"chat,omitempty"`
	Tokens    int64    `json:"tokensPerDay,omitempty"`
	ExpiresIn int64    `json:"expiresInSeconds,omitempty"`
}

// addKey makes a key and shows it, once.
func (c *Control) addKey(w http.ResponseWriter, r *http.Request) {
	var in NewKey
	if err := c.read(w, r, &in); err != nil {
		httperr.Write(w, r, err)
		return
	}
	if !tool.ValidServer(in.Name) || in.ExpiresIn < 0 {
		httperr.Write(w, r, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("invalid key name %q; use 1 to %d characters of A-Z a-z 0-9 _ -", in.Name, tool.MaxServerName)})
		return
	}
	if in.Tokens < 0 {
		httperr.Write(w, r, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("tokensPerDay must not be negative, but is %d; leave it out for no limit", in.Tokens)})
		return
	}
	secret, key := auth.NewKey(in.Name)
	key.Admin, key.Servers, key.Tools, key.Profile, key.Chat, key.Tokens = in.Admin, in.Servers, in.Tools, in.Profile, in.Chat, in.Tokens
	if in.ExpiresIn > 0 {
		key.Expires = key.Created.Add(time.Duration(in.ExpiresIn) * time.Second)
	}
	if err := auth.CheckRights(key, c.Profiles.Names()); err != nil {
		httperr.Write(w, r, &tool.Error{Kind: tool.InvalidArguments, Msg: err.Error()})
		return
	}
	err := c.Keys.AddKey(r.Context(), key)
	if errors.Is(err, store.ErrConflict) {
		err = &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("there is a key named %q already; revoke it first", in.Name)}
	}
	if err != nil {
		httperr.Write(w, r, err)
		return
	}
	c.Audit(r.Context(), "key.add", key.Name, key)
	answer(w, map[string]any{"key": secret.Reveal(), "record": key})
}

func (c *Control) revokeKey(w http.ResponseWriter, r *http.Request) {
	key, err := c.Keys.RevokeKey(r.Context(), r.PathValue("name"), time.Now())
	if errors.Is(err, store.ErrNotFound) {
		err = &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("no key named %q is in force", r.PathValue("name"))}
	}
	if err != nil {
		httperr.Write(w, r, err)
		return
	}
	c.Audit(r.Context(), "key.revoke", key.Name, map[string]any{"id": key.ID})
	answer(w, key)
}
