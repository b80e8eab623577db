package auth

import (
	"context"
	"time"

	"junctor/internal/tool"
)

// identity is the sender of a request and its credential.
type identity struct {
	caller tool.Caller

	// credential identifies the source of the caller's rights: "key:<id>",
	// "session:<id>", "grant:<id>", "token:<hash>". It is never reused for
	// another credential. Empty for a caller without one.
	credential string
	// expires is the expiry of the credential; zero means never.
	expires time.Time
	// renew checks the credential again. Nil for a caller without a credential
	// and without rights.
	renew func(context.Context) (identity, error)
}

type identityKey struct{}

func withIdentity(ctx context.Context, id *identity) context.Context {
	return tool.SetValue(tool.SetCaller(ctx, &id.caller), identityKey{}, id)
}

func identityFrom(ctx context.Context) identity {
	var id identity
	if known, ok := ctx.Value(identityKey{}).(*identity); ok {
		id = *known
	}
	id.caller = tool.CallerFrom(ctx) // which may have been narrowed since
	return id
}

// openLoopback is the name shared by all callers of an open loopback listener
// in place of a credential.
const openLoopback = "open"

// stillOpen is the renew function of callers without a credential. It fails
// once loopback is no longer open.
func (g *Gate) stillOpen(context.Context) (identity, error) {
	if !g.rules.Load().open {
		return identity{}, &tool.Error{Kind: tool.Unauthenticated, Msg: "callers on this machine now need a key"}
	}
	return g.local, nil
}
