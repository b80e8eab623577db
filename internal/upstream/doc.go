// Package upstream manages the connections to MCP servers: it dials all of them
// in parallel, supervises them, reconnects, and sends requests.
//
// It promises that a slow, dead or broken server neither delays nor breaks
// another; that a request to a server that is down fails at once, with the
// reason, and the first one after its return succeeds; and that everything a
// server sends is bounded. The package knows neither rules nor permissions. The
// tools of servers go to a [Sink]; credentials come from an [Authorizer].
//
// # Design
//
// A [Supervisor] has one upstream value per configured server. Its states are
//
//	disabled
//	connecting ──► connected ──► disconnected ──► connected …
//	     └───────────────────────────▲   auth_required is a disconnected that
//	                                     waits for a sign-in
//
// connecting is the first attempt only: callers wait for it, up to
// startTimeoutMs (Supervisor.waitForStart). In every later state a request
// either has a connection, or triggers one quick attempt (retryNow) and fails
// with the stored reason. A package runner may stay in connecting for five
// minutes while it downloads the server; it is never killed for that.
//
// A singleton that another process runs has the state of that server: connecting
// until the owner has published its tools (SetRemote), then connected. Its
// requests are forwarded to the owner.
//
// Where each caller has a login of its own (Config.PersonalLogins) there is no
// shared connection and no connect loop, and the state is connected; see
// personal.go.
//
// Goroutines: upstream.run owns the life of one server and runs connectLoop
// (attempt, monitor, waitForRetry with exponential backoff). monitor owns one
// connection: it pings idle servers, relists tools after list_changed, and
// sweeps the sessions of single callers. For a singleton on a shared store,
// runWithLease wraps connectLoop and runs it only while this process holds the
// lease. Requests run on their callers' goroutines.
//
// Locks: upstream.mu guards the state of one server and is never held during
// I/O or while calling the Sink. Supervisor.mu guards the set of servers and is
// taken before upstream.mu. personalTools.publishing, which keeps the lists of
// callers in order, is taken before upstream.mu too, and held until the Sink has
// them. Routing reads an atomic snapshot (routes) and takes no Supervisor lock.
//
// When a child process dies, pending calls fail with its exit status, and the
// next attempt waits until the process and its descendants are gone. When the
// gateway dies, package child ends the children. When a remote server loses a
// session (404), mcpclient makes a new one and resends the request once. A
// process that cannot renew the lease of a singleton for five seconds stops the
// server, before the lease ends and another process starts it.
//
// Start reading at Supervisor.Do, then upstream.do, connection and connectLoop.
package upstream
