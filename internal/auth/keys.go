package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// keyPrefix is the prefix of every generated API key. It lets people and
// secret scanners recognize one.
const keyPrefix = "jct_"

// NewKey creates an API key and its record. The key is shown to its owner once;
// only its hash and a short hint are stored.
func NewKey(name string) (telemetry.Secret, store.Key) {
	key := keyPrefix + rand.Text()
	return telemetry.Secret(key), store.Key{
		ID: rand.Text(), Name: name, Hash: hash(key), Hint: key[:len(keyPrefix)+4], Created: time.Now().UTC(),
	}
}

// CheckRights reports why a key cannot have the rights of k: its globs select
// nothing, its profile is not one of profiles, or it has a profile and is an
// administrator's.
func CheckRights(k store.Key, profiles []string) error {
	if err := tool.CheckGlobs(k.Servers); err != nil {
		return err
	}
	if err := tool.CheckGlobs(k.Tools); err != nil {
		return err
	}
	switch {
	case k.Profile == "":
		return nil
	case !slices.Contains(profiles, k.Profile) && len(profiles) == 0:
		return fmt.Errorf("there is no profile %q; define it under profiles in the configuration", k.Profile)
	case !slices.Contains(profiles, k.Profile):
		return fmt.Errorf("there is no profile %q; use one of: %s", k.Profile, strings.Join(profiles, ", "))
	case k.Admin:
		return errors.New("a key with a profile cannot be an administrator's, because it could change the profile")
	}
	return nil
}

func hash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// KeyStore is the part of the store that looks up API keys.
type KeyStore interface {
	KeyByHash(ctx context.Context, hash []byte) (store.Key, error)
	TouchKeys(ctx context.Context, used map[string]time.Time) error
}

const (
	// keyCacheTTL is how long a stored key is used without another lookup, and
	// thus how long a revocation may take to apply on every node.
	keyCacheTTL = 2 * time.Second
	// maxKeyStaleness is how long a known key is accepted while the store is
	// unavailable.
	maxKeyStaleness = 5 * time.Minute
	// maxKnownKeys bounds the keys kept in memory.
	maxKnownKeys = 10_000
)

// errUnknownKey means that no such key is in effect.
var errUnknownKey = errors.New("unknown, expired or revoked key")

// keyring looks up API keys.
type keyring struct {
	keys KeyStore

	mu    sync.Mutex
	fixed map[string]store.Key // by hash: from the file and the environment
	known map[string]knownKey  // by hash: cached from the store
	used  map[string]time.Time
}

type knownKey struct {
	key     store.Key
	checked time.Time
}

func newKeyring(keys KeyStore) *keyring {
	return &keyring{keys: keys, known: map[string]knownKey{}, used: map[string]time.Time{}}
}

// setFixed sets the keys that are not in the store. The id of each contains a
// part of its hash, so that a replaced key with the same name has another id.
func (r *keyring) setFixed(cfg Config, admin telemetry.Secret) {
	fixed := map[string]store.Key{}
	for _, k := range fixedKeys(cfg, admin) {
		fixed[string(k.Hash)] = k
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fixed = fixed
}

// FixedCallers returns the callers of the keys that are not in the store.
func FixedCallers(cfg Config, admin telemetry.Secret) []tool.Caller {
	var out []tool.Caller
	for _, k := range fixedKeys(cfg, admin) {
		out = append(out, callerOf(k))
	}
	return out
}

func fixedKeys(cfg Config, admin telemetry.Secret) []store.Key {
	var fixed []store.Key
	add := func(secret telemetry.Secret, k store.Key) {
		k.Hash = hash(secret.Reveal())
		k.ID = "fixed-" + k.Name + "-" + hex.EncodeToString(k.Hash[:6])
		fixed = append(fixed, k)
	}
	for _, k := range cfg.Keys {
		expires, _ := k.Expiry() // checked by Validate
		key := store.Key{Name: k.Name, Admin: k.Admin, Servers: k.Servers, Tools: k.Tools, Profile: k.Profile, Chat: k.Chat, Tokens: k.TokensPerDay, Expires: expires}
		if k.Rate != nil {
			key.Rate = tool.Rate{Calls: k.Rate.Calls, Per: k.Rate.Per()}
		}
		add(k.Key, key)
	}
	if admin != "" {
		add(admin, store.Key{Name: "admin", Admin: true})
	}
	return fixed
}

// fixedKey returns the key of the file or the environment with the hash.
func (r *keyring) fixedKey(h []byte) (store.Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.fixed[string(h)]
	return k, ok
}

// find returns the valid key with the hash.
func (r *keyring) find(ctx context.Context, h []byte) (store.Key, error) {
	now := time.Now()
	r.mu.Lock()
	if k, ok := r.fixed[string(h)]; ok {
		r.mu.Unlock()
		return valid(k, now)
	}
	cached, ok := r.known[string(h)]
	r.mu.Unlock()
	if ok && now.Sub(cached.checked) < keyCacheTTL {
		return r.use(cached.key, now)
	}
	k, err := r.keys.KeyByHash(ctx, h)
	switch {
	case errors.Is(err, store.ErrNotFound):
		r.forget(h)
		return store.Key{}, errUnknownKey
	case err != nil && ok && now.Sub(cached.checked) < maxKeyStaleness:
		return r.use(cached.key, now)
	case err != nil:
		return store.Key{}, fmt.Errorf("look up a key: %w", err)
	}
	r.mu.Lock()
	if len(r.known) >= maxKnownKeys {
		clear(r.known)
	}
	r.known[string(h)] = knownKey{k, now}
	r.mu.Unlock()
	return r.use(k, now)
}

// markStale marks the cached keys for another lookup. They remain usable while
// the store is unavailable.
func (r *keyring) markStale() {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := time.Now().Add(-keyCacheTTL)
	for h, k := range r.known {
		if k.checked.After(old) {
			k.checked = old
			r.known[h] = k
		}
	}
}

func (r *keyring) forget(h []byte) {
	r.mu.Lock()
	delete(r.known, string(h))
	r.mu.Unlock()
}

func valid(k store.Key, now time.Time) (store.Key, error) {
	if !k.Valid(now) {
		return store.Key{}, errUnknownKey
	}
	return k, nil
}

// use records that the key was used, for flush.
func (r *keyring) use(k store.Key, now time.Time) (store.Key, error) {
	k, err := valid(k, now)
	if err == nil {
		r.mu.Lock()
		r.used[k.ID] = now
		r.mu.Unlock()
	}
	return k, err
}

// flush stores when keys were last used.
func (r *keyring) flush(ctx context.Context) error {
	r.mu.Lock()
	used := r.used
	r.used = map[string]time.Time{}
	r.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	return r.keys.TouchKeys(ctx, used)
}

// callerOf returns the caller of a key, bound to the key's profile.
func (g *Gate) callerOf(k store.Key) tool.Caller {
	return bind(g.opts.Profiles, callerOf(k), k.Profile)
}

// callerOf returns the caller of a key without the key's profile. It is
// identified by the key's id, which is never reused, and not by its name.
func callerOf(k store.Key) tool.Caller {
	return tool.Caller{
		ID: "key:" + k.ID, Name: k.Name, Admin: k.Admin,
		Servers: k.Servers, Tools: k.Tools, Rate: k.Rate, Chat: k.MayChat(), TokensPerDay: k.Tokens,
	}
}
