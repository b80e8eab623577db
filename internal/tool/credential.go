package tool

import (
	"context"
	"errors"
)

// Credential is what a caller was admitted with, for as long as it is valid.
type Credential interface {
	// OnEnd calls f, in its own goroutine, when the credential has been
	// revoked, has expired or no longer gives the same rights. stop gives up
	// waiting for that; it must be called once f is of no use any more.
	OnEnd(f func()) (stop func())
}

// ErrCredentialEnded is the cause with which everything ends that was begun
// with a credential which is no longer valid.
var ErrCredentialEnded = errors.New("the credential was revoked, has expired or has lost rights")

type credentialKey struct{}

// SetCredential returns a context that says what its caller was admitted
// with. The rule of [SetValue] applies.
func SetCredential(ctx context.Context, c Credential) context.Context {
	return SetValue(ctx, credentialKey{}, c)
}

// CredentialFrom returns what the caller of ctx was admitted with; nil for one
// that needs no credential.
func CredentialFrom(ctx context.Context) Credential {
	c, _ := ctx.Value(credentialKey{}).(Credential)
	return c
}

// OnCredentialEnd calls f when the credential of ctx has ended. Without a
// credential it never does. stop is as in [Credential].
func OnCredentialEnd(ctx context.Context, f func()) (stop func()) {
	if c := CredentialFrom(ctx); c != nil {
		return c.OnEnd(f)
	}
	return func() {}
}
