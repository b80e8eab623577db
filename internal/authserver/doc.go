// Package authserver is the gateway's own OAuth 2.1 authorization server, for
// clients that can only sign in with OAuth.
//
// A person consents to a client once. The client gets tokens that represent
// the person through that client: a short-lived signed access token and a
// refresh token that is replaced with each use. Consents ([Grant]) are in the
// store; revoking one invalidates its tokens on every node.
//
// The package implements the protocol (authorization code with PKCE, RFC 7591
// registration, client id metadata documents, RFC 7009 revocation, RFC 8414
// metadata, RFC 8707 resource indicators, RFC 9207 issuer identification) and
// the consent page. Package auth decides who a person is and what they may do.
//
// # Design
//
// All state is in the store, so that any node can serve each step. A step
// that must happen once is a conditional write: of two concurrent requests, one
// gets a conflict.
//
//	authorize ──► consent page ──► code ──► grant with a refresh token
//	grant ──refresh──► grant with the next refresh token
//	grant ──► ended: revoked, unused for 30 days, a code or token reused, too many
//
// A code is valid for a minute and is consumed by the first attempt, even a
// failed one. Reusing a code ends its grant (replayed), and so does reusing a
// replaced refresh token: one of its two holders has stolen it. A person has
// at most 100 grants; the least recently used one is removed for a new one.
// For 10 seconds the refresh token that was replaced last still gets its
// successor, which is derived from it, in case a response was lost or a client
// refreshes in parallel. Access tokens are signed, valid for 15 minutes, and
// checked against their grant with each use; a grant is cached for a second
// (grants.find).
//
// Goroutines: the package has none; every step runs on the goroutine of its
// request.
//
// Locks: keyring.mu is held while the signing keys are read or created, so
// that concurrent requests share one read. grants.mu, limits.mu and
// documents.mu are not held during a query or a request. No two locks are held
// together.
//
// If the process dies, the store has every grant and code. A client that lost
// a response sends its refresh token again within 10 seconds, or signs in
// again. While the store is unavailable, the endpoints respond with 503.
//
// Start reading at Server.token (exchange, refresh), then consent.go and
// grant.go.
package authserver
