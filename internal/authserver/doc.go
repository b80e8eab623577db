// Package authserver is the gateway's own OAuth 2.1 authorization server, for
// clients that can sign in by OAuth alone.
//
// A person consents to a client once, and the client gets tokens that stand
// for the person through that client: a short-lived signed access token and a
// refresh token that is replaced with each use. Consents ([Grant]) are in the
// store; revoking one ends its tokens on every node.
//
// The package implements the protocol (authorization code with PKCE, RFC 7591
// registration, client id metadata documents, RFC 7009 revocation, RFC 8414
// metadata, RFC 8707 resource indicators, RFC 9207 issuer identification) and
// the consent page. Who a person is, and what they may do, is decided by
// package auth.
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
// A code is valid for a minute and used up by the first attempt, whatever is
// wrong with it. A reused code ends its grant (replayed), and so does a refresh
// token that was replaced before: one of its two holders has stolen it. A person
// has at most 100 grants; the oldest ends for a new one. For 10 seconds the refresh token that was replaced last still gets its
// successor, which is derived from it: for an answer that was lost, and for
// clients that refresh in parallel. Access tokens are signed, valid for 15
// minutes, and checked against their grant with each use; a grant is kept in
// memory for a second (grants.find).
//
// Goroutines: the package has none; every step runs on the goroutine of its
// request.
//
// Locks: keyring.mu is held while the signing keys are read or made, so that
// requests wait for one read. grants.mu, limits.mu and the lock of documents are
// not held during a query or a request. None is held together with another.
//
// When the process dies, every grant and code is what the store has. A client
// whose answer was lost sends its refresh token again within 10 seconds, or signs
// in again. When the store is unavailable, the endpoints answer 503.
//
// Start reading at Server.token (exchange, refresh), then consent.go and
// grant.go.
package authserver
