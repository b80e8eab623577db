// Package executor executes calls.
//
// Every call takes the same steps whichever face it came from: resolve,
// authorise, limit, consult the tool's circuit, validate, ask for approval,
// dispatch, record. It leaves exactly one record in the call log and one line
// in the program's log, even if it panics or is cancelled, and the record is
// committed before the answer is handed back.
//
// The package knows no transport and no database. It declares the small
// interfaces it needs ([Catalog], [Upstreams], [CallLog], [Meter]); app
// supplies them.
//
// # Design
//
// A callRun is one call. [Executor.Call] takes it through execute,
// [Executor.Forward] takes other requests through forward, and [Executor.Group]
// records work of the gateway itself, such as a script. callRun.end is deferred
// by all three, so that a panic or a cancelled call is recorded too. If the
// record cannot be written, the answer is withheld, unless store.whenAway is open.
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
// Only failures of the upstream count: a connection that broke during the call, a
// timeout, a JSON-RPC error other than invalid params and method not found. A call
// to a server that is known to be down does not count.
//
// Goroutines: the package has none; a call runs on its caller's. Timers cancel
// its context.
//
// Locks: breaker, timeouts, limiter, bucket and lateContext have one each. They
// are taken alone and never held during a query or a request. A call that needs
// a new share of a budget asks the store for it; others of the same bucket wait
// for its answer, with a deadline.
//
// When the caller leaves, its context cancels the request to the server, and the
// call is recorded as cancelled. When the gateway stops, StopWaiting withdraws
// what waits for a person, and calls in flight finish. When the process dies, a
// call that has not been recorded was not answered. Circuits and statistics
// belong to this process and start empty.
//
// Start reading at Executor.execute, then callRun.end and dispatch.
package executor
