package authserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"junctor/internal/store"
)

const (
	// keysName is the name of the sealed keys in the vault.
	keysName = "authserver/keys"
	// signingKeyTTL is how long a key is used for signing. Its public key
	// remains published while tokens that it signed may be valid.
	signingKeyTTL = 30 * 24 * time.Hour
	// reloadInterval is the minimum interval between reloads of the keys
	// because of unknown key ids.
	reloadInterval = time.Second
)

// keyring manages the keys that sign access tokens. All nodes of a store share
// them.
type keyring struct {
	store  store.Values
	sealer func() (*store.Sealer, error)
	now    func() time.Time

	mu   sync.Mutex
	have keySet
	read time.Time
}

// keySet is stored encrypted in the vault.
type keySet struct {
	Keys []signingKey `json:"keys"` // newest first
	// Secret derives refresh tokens and form tokens.
	Secret []byte `json:"secret"`
}

type signingKey struct {
	Key     jose.JSONWebKey `json:"key"`
	Created time.Time       `json:"created"`
}

// current returns the keys; the first one signs. It creates a new signing key
// if the current one is older than signingKeyTTL.
func (k *keyring) current(ctx context.Context) (keySet, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.due() {
		if err := k.reload(ctx); err != nil {
			return keySet{}, err
		}
	}
	return k.have, nil
}

func (k *keyring) due() bool {
	return len(k.have.Keys) == 0 || k.now().Sub(k.have.Keys[0].Created) >= signingKeyTTL
}

// find returns the public key with an id. If the id is unknown, it reloads the
// keys, because another node may have created one.
func (k *keyring) find(ctx context.Context, id string) (jose.JSONWebKey, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, ok := k.have.find(id)
	if ok || k.now().Sub(k.read) < reloadInterval {
		return key, ok, nil
	}
	if err := k.reload(ctx); err != nil {
		return key, false, err
	}
	key, ok = k.have.find(id)
	return key, ok, nil
}

func (s keySet) find(id string) (jose.JSONWebKey, bool) {
	for _, key := range s.Keys {
		if key.Key.KeyID == id {
			return key.Key.Public(), true
		}
	}
	return jose.JSONWebKey{}, false
}

func (k *keyring) public(ctx context.Context) (jose.JSONWebKeySet, error) {
	have, err := k.current(ctx)
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, key := range have.Keys {
		set.Keys = append(set.Keys, key.Key.Public())
	}
	return set, err
}

// reload reads the keys and, if rotation is due, adds a new one and stores
// them. If several nodes do so concurrently, one write succeeds and the others
// read its result. k.mu is held.
func (k *keyring) reload(ctx context.Context) error {
	sealer, err := k.sealer()
	if err != nil {
		return err
	}
	vault := store.NewVault(k.store, sealer)
	for range 5 {
		plain, version, err := vault.Get(ctx, keysName)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("read the signing keys: %w", err)
		}
		have := keySet{}
		if err == nil {
			if err := json.Unmarshal(plain, &have); err != nil {
				return fmt.Errorf("read the signing keys: %w", err)
			}
		}
		k.have, k.read = have, k.now()
		if !k.due() {
			return nil
		}
		next, err := k.rotated(have)
		if err != nil {
			return err
		}
		text, err := json.Marshal(next)
		if err != nil {
			return err
		}
		_, err = vault.Put(ctx, keysName, text, version)
		if err == nil {
			k.have = next
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("write the signing keys: %w", err)
		}
	}
	return errors.New("the signing keys are being changed by other nodes")
}

// rotated returns the keys with a new signing key, without those whose tokens
// have all expired.
func (k *keyring) rotated(have keySet) (keySet, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keySet{}, err
	}
	now := k.now().UTC()
	next := keySet{Secret: have.Secret, Keys: []signingKey{{
		Key:     jose.JSONWebKey{Key: private, KeyID: rand.Text()[:12], Algorithm: string(jose.ES256), Use: "sig"},
		Created: now,
	}}}
	if len(next.Secret) == 0 {
		next.Secret = make([]byte, 32)
		rand.Read(next.Secret) // never fails: crypto/rand crashes the program instead
	}
	for i, key := range have.Keys { // the previous signing key comes first
		if i == 0 || now.Sub(have.Keys[i-1].Created) < 2*accessTokenTTL {
			next.Keys = append(next.Keys, key)
		}
	}
	return next, nil
}

// derive returns a secret derived from parts. It cannot be computed without
// the keys.
func (s keySet) derive(purpose string, parts ...string) string {
	mac := hmac.New(sha256.New, s.Secret)
	for _, part := range append([]string{purpose}, parts...) {
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
