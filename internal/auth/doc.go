// Package auth authenticates HTTP requests and determines the rights of their
// callers.
//
// [Gate] is in front of every HTTP face. It promises that a request reaches a
// face only from a host and an origin that may send it, and only with a
// [tool.Caller] in its context: the local user on open loopback, the bearer of
// an API key, of the page's cookie, or of an issuer's token. What a caller may
// see and call is written in the Caller; the core enforces it.
//
// The package holds no secrets of upstreams. Its only outgoing requests are to
// issuers and OpenID providers.
package auth
