// Package mcpserver serves MCP clients, in both eras of the protocol, over
// streamable HTTP, the legacy SSE transport, byte streams and in process.
//
// [Server] serves one [Handler]. In the handshake era a [Session] lives in the
// sessionTable, bounded in number and idle time; in the stateless era there is
// none. A call moves through
//
//	received ──► running ──► answered
//	                │ a question to a stateless client
//	                └──► parked (input_required) ──retry──► running
//
// # Goroutines
//
// A call over HTTP runs on a goroutine of the workerPool, and what it sends is
// written by the goroutine of its request (writeStream). A call of the stateless
// era that cannot be parked runs on the goroutine of its request, and another
// one writes only if there is something to write before the answer
// (runAndWrite). A call on a byte stream has a goroutine of its own.
//
// What a call sends goes to an outlet: an eventStream for HTTP, which is kept for
// a while so that it can be resumed with Last-Event-ID, or a connOutlet on a byte
// stream, whose outbox one goroutine writes. The standalone stream of a session has no goroutine of the HTTP
// server while it is idle (hijackedStream). Outlets never block a call: a slow
// reader loses notifications, and is asked no more when 16 MiB of questions wait,
// but loses no response.
//
// # Locks
//
// sessionTable, Session, eventStream and call have one each, none of which is
// held during I/O. A call's is taken before those of its outlet and of
// parkedCalls. Only hijackedStream and sseServerLink hold a lock while they
// write, with a deadline; it is taken before that of the eventStream.
//
// # When the other side dies
//
// When a client leaves, its calls are cancelled: at once in the stateless era,
// after ResumeTimeout in the handshake era, and after DrainFor on a byte stream
// whose input has ended, because a program may write its requests and close the
// pipe. A parked call waits for its retry for ParkTimeout. Every call, parked ones
// included, ends with the credential of its caller. When the process dies, sessions on a shared store continue on another node; running and parked
// calls do not. With a [Cluster], sessions, streams and parked calls are found
// on other nodes (cluster.go, cluster_relay.go).
//
// Start reading at [Server.ServeHTTP] and call.run.
package mcpserver
