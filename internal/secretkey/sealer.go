// Package secretkey finds or creates the key that seals secrets in the store:
// from the environment, or else in the keyring of the operating system, or else
// in a file that only this user can read.
//
// A key stays where it was first stored. Processes that create one concurrently
// end up with the same key. A keyring that does not respond causes no more than
// a short timeout.
package secretkey

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"junctor/internal/store"
	"junctor/internal/telemetry"
)

// retryDelay is how long a failure to read the key is remembered: each attempt
// may ask a person to unlock the keyring.
const retryDelay = time.Minute

// Sealer returns a function that returns the sealer of the secrets in the store
// and finds or creates its key on the first call. After a failure, a later call
// tries again, since a locked keyring can be unlocked. keys are the keys from the
// environment, separated by commas: the first seals and all open, so that keys
// can be rotated. If keys is empty, it uses the key of dataDir; a new one is
// created in the keyring of the operating system if useKeyring is set and there
// is one, or else in a file.
func Sealer(keys telemetry.Secret, dataDir string, useKeyring bool) func() (*store.Sealer, error) {
	open := func() (*store.Sealer, error) {
		if keys == "" {
			key, err := sealingKey(dataDir, useKeyring)
			if err != nil {
				return nil, err
			}
			return store.NewSealer(key)
		}
		all, err := Parse(keys)
		if err != nil {
			return nil, err
		}
		return store.NewSealer(all[0], all[1:]...)
	}
	var (
		mu     sync.Mutex
		sealer *store.Sealer
		err    error
		failed time.Time
	)
	return func() (*store.Sealer, error) {
		mu.Lock()
		defer mu.Unlock()
		if sealer == nil && time.Since(failed) >= retryDelay {
			if sealer, err = open(); err != nil {
				failed = time.Now()
			}
		}
		return sealer, err
	}
}

// Parse parses the keys of JUNCTOR_SECRET_KEY, separated by commas.
func Parse(keys telemetry.Secret) ([][]byte, error) {
	var all [][]byte
	texts := strings.Split(keys.Reveal(), ",")
	for i, text := range texts {
		key, err := store.ParseKey(text)
		switch {
		case err != nil && len(texts) == 1:
			return nil, fmt.Errorf("JUNCTOR_SECRET_KEY is not valid: %w", err)
		case err != nil:
			return nil, fmt.Errorf("key %d of %d in JUNCTOR_SECRET_KEY is not valid: %w", i+1, len(texts), err)
		}
		all = append(all, key)
	}
	return all, nil
}
