package tool

import (
	"context"
	"errors"
)

// Credential is the credential with which a caller was authenticated.
type Credential interface {
	// OnEnd calls f, in its own goroutine, when the credential is revoked,
	// expires or loses rights. stop unregisters f; it must be called when f is
	// no longer needed.
	OnEnd(f func()) (stop func())
}

// ErrCredentialEnded is the cause with which contexts are cancelled whose
// credential is no longer valid.
var ErrCredentialEnded = errors.New("the credential was revoked, has expired or has lost rights")

type credentialKey struct{}

// SetCredential returns a context with the credential of its caller. The rule
// of [SetValue] applies.
func SetCredential(ctx context.Context, c Credential) context.Context {
	return SetValue(ctx, credentialKey{}, c)
}

// CredentialFrom returns the credential of ctx's caller, or nil if the caller
// needs none.
func CredentialFrom(ctx context.Context) Credential {
	c, _ := ctx.Value(credentialKey{}).(Credential)
	return c
}

// OnCredentialEnd calls f when the credential of ctx is no longer valid.
// Without a credential f is never called. stop is as in [Credential].
func OnCredentialEnd(ctx context.Context, f func()) (stop func()) {
	if c := CredentialFrom(ctx); c != nil {
		return c.OnEnd(f)
	}
	return func() {}
}
