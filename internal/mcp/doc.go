// Package mcp implements the Model Context Protocol: JSON-RPC messages as bytes,
// client, server, transports, and its two eras, with handshake and sessions
// (2024-11-05 to 2025-11-25) and stateless (2026-07-28).
//
// It promises that what it does not need to look at passes as the bytes that
// came, that the messages of one connection keep their order, and that
// everything from outside is bounded in size, depth, number and time.
//
// [Client] is the side that faces an upstream, [Server] the side that faces a
// caller. Neither knows tools, policies or configuration.
//
// # Design of the client
//
// [Connect] opens a transport (stdio, streamable HTTP, legacy SSE, in process),
// negotiates the era and returns a [Client]. One goroutine per connection reads
// messages in order (Client.handle) and resolves the pendingRequest of each
// response, so that a notification never arrives after the response that
// follows it. Callers write requests themselves; a pipe that is full falls back
// to a queue. A request of the server during a call (elicitation, sampling) is
// answered through the call's Exchange where it can be attributed, and declined
// otherwise.
//
// # Design of the server
//
// [Server] serves one [Handler] over HTTP and byte streams, in both eras. In
// the handshake era a [Session] lives in the sessionTable, bounded in number
// and idle time; in the stateless era there is none. A call moves through
//
//	received ──► running ──► answered
//	                │ a question to a stateless client
//	                └──► parked (input_required) ──retry──► running
//
// A call runs on a goroutine of the workerPool. What it sends goes to an
// outlet: an eventStream for HTTP, which the request's own goroutine writes
// (writeStream) and which is kept for a while so that it can be resumed with
// Last-Event-ID, or a connOutlet on a byte stream. Outlets never block the
// call: a slow reader loses notifications, never responses.
//
// Locks: sessionTable, Session, eventStream and call have one each, none of
// which is held during I/O; a call's is taken before that of parkedCalls. With a
// Cluster, sessions, streams and parked calls are found on
// other nodes through the store (cluster.go, cluster_relay.go).
//
// When a client leaves, its calls are cancelled: at once in the stateless era,
// after ResumeFor in the handshake era. When the process dies, sessions on a
// shared store continue on another node; running calls do not.
//
// Start reading at Client.Do for the client, and at Server.ServeHTTP and
// call.run for the server.
package mcp
