// Package secretkey finds the key that seals secrets in the store, or makes one:
// from the environment, else in the keyring of the operating system, else in a
// file that only this user can read.
//
// It promises that a key stays where it was put first, that two processes which
// make one at the same time end up with the same, and that a keyring which does
// not answer holds nobody up.
package secretkey

import (
	"strings"
	"sync"

	"junctor/internal/store"
	"junctor/internal/telemetry"
)

// Sealer returns what secrets in the store are sealed with, once it is asked
// for: the key from the environment, else one in the keyring of the operating
// system where it may be used, else one in a file that only this user can
// read. Several keys may be given, separated by commas: the first seals, all
// open, so that a key can be replaced.
func Sealer(keys telemetry.Secret, dataDir string, useKeyring bool) func() (*store.Sealer, error) {
	return sync.OnceValues(func() (*store.Sealer, error) {
		if keys == "" {
			key, err := sealingKey(dataDir, useKeyring)
			if err != nil {
				return nil, err
			}
			return store.NewSealer(key)
		}
		var all [][]byte
		for text := range strings.SplitSeq(keys.Reveal(), ",") {
			key, err := store.ParseKey(text)
			if err != nil {
				return nil, err
			}
			all = append(all, key)
		}
		return store.NewSealer(all[0], all[1:]...)
	})
}
