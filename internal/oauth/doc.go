// Package oauth gets and keeps the tokens with which upstreams are reached.
//
// It does what MCP asks of an OAuth 2.1 client: it finds a server's
// authorization server (RFC 9728, RFC 8414, OpenID), introduces itself there
// (a configured client, a client id metadata document, or registration),
// has a person consent (PKCE, resource indicators, a checked issuer), renews
// tokens before they end, and asks for more scopes when a server wants them.
//
// It promises that a call never waits for a person: when consent is needed
// the call fails at once, with the address to open. A refresh token is
// redeemed by one party at a time, in this process and among all that share
// the store, and never again once it was replaced. A network that is down
// loses no login. Tokens and client secrets are sealed in the store, and
// never in a log, an error or an answer. Requests to addresses that a server
// named go to public addresses alone, unless the server itself is on a
// private one.
//
// The package knows no face. It implements [upstream.Authorizer].
package oauth
