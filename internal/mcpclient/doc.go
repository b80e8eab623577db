// Package mcpclient connects to MCP servers, in both eras of the protocol, over
// stdio, streamable HTTP, the legacy SSE transport and in process.
//
// # Design
//
// [Connect] opens a [Transport], negotiates the era and returns a [Client]. A
// client moves through
//
//	opening ──► negotiating ──► ready ──► ended
//
// and never back; to use the server again, call Connect again. The exception is
// an HTTP session that the server lost: the wire makes a new one in place and
// calls OnSessionReplaced. The client knows no tools, policies or configuration.
//
// # Goroutines
//
// On a link (stdio, in process, SSE) one goroutine reads messages in order
// (Client.handle). It queues notifications and the response in the
// pendingRequest of their call, whose own goroutine drains it, so that a slow
// caller does not delay the others and no notification arrives after the
// response that follows it. A caller writes its request to a child's pipe
// itself. If other messages are queued or the pipe is full, and always in
// process and on SSE, a second goroutine writes.
//
// Over streamable HTTP the goroutine of a call reads its own response. One more
// goroutine holds the GET stream of the handshake era or the subscriptions of
// the stateless era (listen.go). A lost session is replaced on a goroutine that
// outlives the call that noticed the loss; other calls wait for it (session.go).
//
// A request of the server (elicitation, sampling) runs on a separate goroutine
// and is cancelled with the call that it belongs to (attribute.go). One that
// cannot be attributed to a call is declined; if several calls could have
// caused it, calls that could cause questions wait for each other from then on
// (turn.go).
//
// # Locks
//
// Client.mu guards the tables of calls, of requests of the server and of
// subscriptions; pendingRequest.mu guards one call. They are never held together
// and not during I/O. Over HTTP pendingRequest.mu is held while the caller gets a
// notification, which must not block. Two channels serve as locks for I/O, so
// that a wait for them can end: linkWire.writing during a write, and
// httpWire.sessionLock while a session is created.
//
// # When the server dies
//
// Client.end records the reason once, closes Done and wakes every call on a
// link, which fails with a [tool.Error] unless its response has arrived. A call
// over HTTP fails with its own request; a broken event stream of the handshake
// era is resumed first, where its events have ids (eventstream.go).
//
// A tool call that the server may have executed is never retried. A request is
// retried, once for each reason, if the server refused it for its session, its
// credentials or its headers; or if it changes nothing (repeatable) and the
// server closed a reused connection without a response.
//
// Start reading at [Client.Do], then pending.go, route.go and, for a transport,
// linkwire.go or streamable.go.
package mcpclient
