// Package upstream manages the connections to MCP servers: it dials all of them
// in parallel, supervises them, reconnects, and sends requests.
//
// It promises that a slow, dead or broken server neither delays nor breaks
// another; that a request to a server that is down fails soon, with the
// reason, and the first one after its return succeeds; and that everything a
// server sends is bounded. The package applies no rules and checks no
// permissions. The tools of servers go to a [Sink]; credentials come from an
// [Authorizer].
//
// # Design
//
// A [Supervisor] has one upstream value per configured server; a change of its
// connection settings replaces the value. Its states are
//
//	disabled
//	connecting ──► connected ◄──► disconnected   auth_required is disconnected,
//	     └──────────────────────────────▲        waiting for a sign-in
//
// connecting is the first attempt, and the one after a sign-in: callers wait for
// it, up to startTimeoutMs (Supervisor.startWait). While disconnected, a
// request triggers an attempt (retryNow), waits up to retryWait for it, and
// fails with the reason if there is no connection then. While auth_required it
// triggers one and fails at once. A package runner may stay in connecting for
// five minutes while it downloads the server; it is not killed before.
//
// A singleton that another process runs has the state of that server: connecting
// until the owner has published its tools (SetRemote), then connected. Its
// requests are forwarded to the owner.
//
// If each caller has its own login (Config.PersonalLogins) there is no shared
// connection and no connect loop, and the state is connected; see personal.go.
//
// Goroutines: upstream.run owns the lifecycle of one server and runs
// connectLoop (attempt, monitor, waitForRetry with exponential backoff).
// monitor owns one connection: it pings idle servers, relists tools after
// list_changed, and closes idle sessions. For a singleton on a shared store,
// runWithLease renews the lease, and runs connectLoop on a separate goroutine
// while this process holds it. Each session is made on its own goroutine
// (makeSession), so that cancelling the call that first needed it does not
// abort it. Requests run on their callers' goroutines.
//
// Locks: Supervisor.mu guards the set of servers, upstream.mu the state of one;
// they are taken in this order, and neither is held during I/O or while calling
// the Sink. Routing reads an atomic snapshot (routes) and takes no Supervisor
// lock. Some locks order requests to a server and are held during them; they
// are taken before upstream.mu: conn.listing (the tools of one caller), and
// sharedState.changing and sharedState.setting (one subscription, the log
// level). personalTools.publishing comes after conn.listing and before
// upstream.mu, and is held until the Sink has received the callers' lists, so
// that they are published in order. The lock of sharedState itself is taken
// last.
//
// When a child process dies, pending calls fail with its exit status, and the
// next attempt waits until the process and its descendants are gone. When the
// gateway dies, package child kills the children. When a remote server loses a
// session (404), mcpclient makes a new one and resends the request once. A new
// connection or session gets the subscriptions and log levels of the last one
// (restore.go). A process that cannot renew the lease of a singleton for five
// seconds stops the server, before the lease expires and another process starts
// it.
//
// Start reading at Supervisor.Do, then upstream.do, connection and connectLoop.
package upstream
