// Package oauth obtains and refreshes the tokens for upstreams.
//
// It is an OAuth 2.1 client as MCP requires: it discovers a server's
// authorization server (RFC 9728, RFC 8414, OpenID), identifies itself (a
// configured client, a client id metadata document, or registration), lets a
// person consent (PKCE, resource indicators, a checked issuer), refreshes
// tokens before they expire, and requests more scopes when a server needs them.
// It implements [upstream.Authorizer].
//
// Guarantees: a call never waits for a person. If consent is needed, the call
// fails immediately with the URL to open. A refresh token is redeemed by one
// process at a time and never again once it was replaced. No login is lost
// because a store or an authorization server is unavailable. Tokens and client
// secrets are encrypted in the store and appear in no log, error or response.
// Requests to URLs that a server published go to public addresses only, unless
// the server itself or an address in its configuration is private.
//
// # Design
//
// A login is shared by all callers, or each caller has one ([upstream.Login]).
// Each login has a state with its tokens (record) and, while one runs, its
// refresh (refreshCall). A login goes through these steps:
//
//	begin ──► pendingLogin (URL, flow stored by state) ──► Complete ──► record
//	record ──► refresh at 80 % of its lifetime, or after a 401 ──► record
//	record ──► lost (refused, signed out, its caller's key revoked) ──► a new sign-in
//
// A flow belongs to the caller that began it. It can be used once, expires
// after ten minutes, and ends when the key that began it is revoked. Only an
// administrator can replace a shared login that works; this is checked when
// the flow begins and again when it completes. A completed flow invalidates
// older ones. The flow for one caller's own login requires a confirmation on a
// page that names the caller, unless [Service.Login] waits for it in this
// process.
//
// Refreshing is single-flight at two levels: startRefresh joins callers of
// this process on one refreshCall, and refreshLocked acquires a lease in the
// store, reads the record again under it, and redeems only the newest refresh
// token. If the store does not accept the new record, it stays in memory and
// refreshDue retries the write, under the same lease and never during a
// refresh. A concurrent sign-in or sign-out takes precedence over the new
// record.
//
// Goroutines: Run refreshes tokens that are due every five seconds, so that
// idle logins do not expire. Each refresh and each preparation of a sign-in
// runs on a separate goroutine (spawn). Canceling the caller does not
// interrupt it, and Close waits for it, because a redeemed token must be
// stored.
//
// Locks, in this order: state.leased, which accompanies the lease in the store
// and is held during a refresh; state.mu, which guards one login; Service.mu,
// which guards the maps. The last two are not held during a query or a
// request. Service.listening is acquired before Service.mu and is held while a
// loopback listener is opened, including the store query that this needs.
//
// A flow is in the store: if the process dies during a sign-in, the process that
// gets the callback completes it. If it dies after the authorization server has
// replaced the refresh token and before the new one is stored, or if that
// response is lost, the login may be lost and a person signs in again.
//
// Start reading at Service.Authorize, then afterUnauthorized and refreshLocked;
// for sign-ins at Service.Begin and Complete.
package oauth
