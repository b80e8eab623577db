package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// SpaceSecrets is the space of the values that a Vault stores.
const SpaceSecrets = "secrets"

// Vault stores secrets such as tokens and client registrations in a store that
// must not see them. Each is sealed and bound to its name.
type Vault struct {
	values Values
	sealer *Sealer
}

// NewVault returns a Vault on values.
func NewVault(values Values, sealer *Sealer) *Vault {
	return &Vault{values: values, sealer: sealer}
}

// Get returns a secret and its version; ErrNotFound when there is none,
// ErrSealed when it was sealed with a key that the Sealer does not have.
func (v *Vault) Get(ctx context.Context, name string) (plain []byte, version int64, err error) {
	val, err := v.values.Value(ctx, SpaceSecrets, name)
	if err != nil {
		return nil, 0, err
	}
	plain, err = v.sealer.Open(name, val.Data)
	return plain, val.Version, err
}

// Put writes a secret if its version is still ifVersion (see
// [Values.PutValue]) and returns the new version; ErrConflict otherwise.
func (v *Vault) Put(ctx context.Context, name string, plain []byte, ifVersion int64) (version int64, err error) {
	val, err := v.values.PutValue(ctx, Value{Space: SpaceSecrets, Name: name, Data: v.sealer.Seal(name, plain)}, ifVersion)
	return val.Version, err
}

// Delete deletes a secret. A secret that does not exist is not an error.
func (v *Vault) Delete(ctx context.Context, name string) error {
	return v.values.DeleteValue(ctx, SpaceSecrets, name, AnyVersion)
}

// SecretInfo describes a secret without revealing it.
type SecretInfo struct {
	Name    string
	Updated time.Time
	sealed  []byte
}

// List returns the names of all secrets, in order.
func (v *Vault) List(ctx context.Context) ([]SecretInfo, error) {
	vals, err := v.values.Values(ctx, SpaceSecrets)
	if err != nil {
		return nil, err
	}
	out := make([]SecretInfo, len(vals))
	for i, val := range vals {
		out[i] = SecretInfo{Name: val.Name, Updated: val.Updated, sealed: val.Data}
	}
	return out, nil
}

// Open returns a secret as it was when List read it; ErrSealed when it was
// sealed with a key that the Sealer does not have.
func (v *Vault) Open(s SecretInfo) ([]byte, error) { return v.sealer.Open(s.Name, s.sealed) }

// Reseal re-encrypts with the first key the secrets that were sealed with
// another one, and returns how many it changed. Secrets that cannot be opened
// are left unchanged and reported in the error.
func (v *Vault) Reseal(ctx context.Context) (int, error) {
	vals, err := v.values.Values(ctx, SpaceSecrets)
	if err != nil {
		return 0, err
	}
	var n int
	var errs []error
	for _, val := range vals {
		if !v.sealer.Stale(val.Data) {
			continue
		}
		plain, err := v.sealer.Open(val.Name, val.Data)
		if err == nil {
			_, err = v.Put(ctx, val.Name, plain, val.Version)
		}
		switch {
		case err == nil:
			n++
		case !errors.Is(err, ErrConflict): // after a conflict, the other writer has sealed it
			errs = append(errs, fmt.Errorf("reseal %s: %w", val.Name, err))
		}
	}
	return n, errors.Join(errs...)
}
