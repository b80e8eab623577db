// Package mcpclient connects to MCP servers, in both eras of the protocol, over
// stdio, streamable HTTP, the legacy SSE transport and in process.
//
// [Connect] opens a [Transport], negotiates the era and returns a [Client]. A
// client moves through
//
//	opening ──► negotiating ──► ready ──► ended
//
// and never back; to use the server again, call Connect again. The exception is
// an HTTP session that the server lost: the wire makes a new one in place and
// calls OnSessionReplaced.
//
// # Goroutines
//
// On a link (stdio, in process, SSE) one goroutine reads messages in order
// (Client.handle) and resolves the pendingRequest of each response, so that a
// notification never arrives after the response that follows it. A caller
// writes its request itself while the pipe takes it; what does not fit waits in
// a queue that one goroutine writes. Over streamable HTTP the goroutine of a
// call reads its own response, and one goroutine holds the GET stream; a lost
// session is replaced on a goroutine that outlives the call that noticed the
// loss, and other calls wait for it (session.go). A request of the server (elicitation,
// sampling) runs on a goroutine of its own and ends with the call that it belongs
// to (attribute.go); one that cannot be attributed to a call is declined, and from
// then on calls that could cause questions wait for each other (turn.go).
//
// # Locks
//
// Client.mu guards the tables of calls, of requests of the server and of
// subscriptions; pendingRequest.mu guards one call. Client.mu comes first, and
// neither is held during I/O.
//
// # When the server dies
//
// Client.end records the reason once, closes Done and wakes every call, which
// fails with a [tool.Error]. Nothing is sent twice: whether a call may be
// repeated is for the caller to decide.
//
// The client knows no tools, policies or configuration. Start reading at
// [Client.Do], then pending.go, route.go and, for a transport, linkwire.go or
// streamable.go.
package mcpclient
