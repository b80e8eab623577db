// Package mcpserver serves MCP clients, in both eras of the protocol, over
// streamable HTTP, the legacy SSE transport, byte streams and in process.
//
// # Design
//
// [Server] serves one [Handler]. In the handshake era a client has a [Session];
// over HTTP it is in the sessionTable until it is deleted, idle for SessionIdle,
// evicted for another one, or its credential ends. In the stateless era there is
// none. A call moves through
//
//	received ──► running ──► answered
//	                │ a question to a stateless client
//	                └──► parked (input_required) ──retry──► running
//
// A call sends its messages to an outlet: an eventStream for HTTP, a connOutlet
// on a byte stream. An HTTP response is plain JSON if the call sends only its
// response, and within StreamAfter; otherwise it becomes an event stream,
// unless the client accepts only one of the two. In the handshake era an event
// stream can be resumed:
//
//	plain ──► event stream ──connection lost──► detached ──Last-Event-ID──► event stream
//	                                               └ after ResumeTimeout: calls cancelled
//
// # Goroutines
//
// A call over HTTP runs on a goroutine of the workerPool, and the goroutine of
// its request writes its messages (writeStream). A call of the stateless era
// whose client cannot be asked anything, and so cannot be parked, runs on the
// goroutine of its request; another goroutine writes if there is something to
// write before the response, or after StreamAfter (runAndWrite). On a byte
// stream one goroutine reads, one writes the outbox, and each call has its own.
// The standalone stream of a session over HTTP/1.1 is hijacked from net/http
// and has one goroutine that waits for the client to disconnect
// (hijackedStream).
//
// A slow reader loses notifications, and gets no more questions while 16 MiB of
// them wait, but loses no response. No call waits for a notification or a question
// to be sent. A response on a byte stream waits until there is room in the outbox.
//
// # Locks
//
// The order is subscriptionTable, call, Session, eventStream, response. In
// addition, call comes before conn and parkedCalls, sessionTable before
// Session, connTable before conn, hijackedStream before Session and
// eventStream; an outbox is locked last. A call's lock is held while its
// response waits for room in an outbox, which delays that call only. Three
// locks are held during I/O: hijackedStream and sseServerLink while they write,
// with a deadline, and clusterState.writing while the record of a session is
// read or written.
//
// # When the other side dies
//
// When an HTTP client disconnects, a call whose response is an event stream of
// the handshake era continues for ResumeTimeout; every other call is cancelled
// immediately. On a byte stream whose input has ended, calls may finish within
// DrainTimeout, because a program may write its requests and close the pipe; a
// stream that cannot be written to ends immediately. A parked call waits for
// its retry for ParkTimeout. Every call, parked ones included, is cancelled
// when the credential of its caller ends.
//
// When the process dies, sessions on a shared store continue on another node;
// running and parked calls do not. While it lives, its sessions, streams and
// parked calls are found from other nodes through the [Cluster] (cluster.go,
// cluster_relay.go).
//
// Start reading at [Server.ServeHTTP], postCalls and call.run.
package mcpserver
