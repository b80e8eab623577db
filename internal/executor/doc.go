// Package executor executes calls.
//
// Every call takes the same steps whichever face received it: resolve,
// authorise, limit, consult the tool's circuit, validate, ask for approval,
// dispatch, record. It leaves exactly one record in the call log and one line
// in the program's log, even if it panics or is cancelled. The record is
// committed before the result is returned.
//
// The package depends on no transport and no database. It declares the small
// interfaces it needs ([Catalog], [Upstreams], [CallLog], [Meter]); app
// implements them.
//
// # Design
//
// A callRun is one call. [Executor.Call] takes it through execute,
// [Executor.Forward] takes other requests through forward, and [Executor.Group]
// records work of the gateway itself, such as a script. callRun.end is deferred
// by all three, so that a panic or a cancelled call is recorded too. If the
// record cannot be written, the result is withheld, unless store.whenAway is open.
//
// dispatch sends the request with two timeouts. Progress restarts the idle
// timeout, and a question to the user pauses it; both start when a queued call is
// sent (timeouts.go). A call of a tool that is marked read-only or idempotent is
// sent once more if the connection broke.
//
// Each tool has a breaker:
//
//	closed ──threshold failures in the window──► open ──cool-down──► half-open
//	   ▲                                           ▲ trial failed ──────┤
//	   └──────────────────────── trial succeeded ───────────────────────┘
//
// Only failures of the upstream count: a connection that broke during the call,
// a timeout, a JSON-RPC error other than invalid params and method not found. A
// call to a server that is known to be down does not count.
//
// Goroutines: the package starts none; a call runs on its caller's goroutine.
// Timers cancel its context.
//
// Locks: breaker, timeouts, limiter, bucket and lateContext have one each. No
// two are held together, and none during a query or a request. A call that
// needs a new share of a budget requests it from the store; other calls of the
// same bucket wait for the result, with a deadline.
//
// When the caller disconnects, its context cancels the request to the server,
// and the call is recorded as cancelled. When the gateway stops, StopWaiting
// cancels pending approvals and questions to users, and calls in flight finish.
// If the process dies, a call without a record was not answered. Circuits and
// statistics are kept in this process only and start empty.
//
// Start reading at Executor.execute, then callRun.end and dispatch.
package executor
